"""What no ordinary rehearsal shows: steps that die on the way, and orders between a slow and a fast cluster."""
