"""ST8xx: hazards of Argo CD."""
