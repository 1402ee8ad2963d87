"""ST951 to ST953: steps that die on the way, and what repeating them does."""
