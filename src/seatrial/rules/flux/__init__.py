"""ST92x: hazards of Flux."""
