"""Operators and the custom kinds they act on: a table of well-known ones, and one file per kind with code."""
