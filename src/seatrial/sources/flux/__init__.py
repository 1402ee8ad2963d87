"""From Flux Kustomizations and HelmReleases to objects."""
