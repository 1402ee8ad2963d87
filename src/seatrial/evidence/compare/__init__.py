"""Engines compared with each other, and two inputs compared."""
