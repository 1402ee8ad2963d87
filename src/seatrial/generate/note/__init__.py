"""A note about the order of a release: written from a rehearsal, or an existing one held against it."""
