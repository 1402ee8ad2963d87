"""Flux Kustomizations and HelmReleases become objects."""
