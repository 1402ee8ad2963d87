"""ST90x: hazards of Pulumi."""
