"""ST3xx: fields that cannot change."""
