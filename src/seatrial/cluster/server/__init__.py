"""The embedded API on loopback HTTP: connections, routes, replies."""
