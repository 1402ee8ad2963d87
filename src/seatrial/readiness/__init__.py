"""BELIEF: when each engine considers an object ready. `kinds/` has the truth."""
