"""Operators and their custom kinds: a table of well-known operators, and one file per kind with code."""
