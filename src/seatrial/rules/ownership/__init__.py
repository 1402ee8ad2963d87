"""ST4xx: who owns an object, and what is lost with its owner."""
