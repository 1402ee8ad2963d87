"""Helm charts: files, values, dependencies, rendering, and the source lines of rendered text."""
