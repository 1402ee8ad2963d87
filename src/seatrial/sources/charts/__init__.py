"""Helm charts: files, values, dependencies, rendering, and where rendered text was written."""
