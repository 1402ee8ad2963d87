"""ST2xx: hooks."""
