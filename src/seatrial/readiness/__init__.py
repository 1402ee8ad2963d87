"""BELIEF: when each engine is content with an object. What is truly so stands in `kinds/`."""
