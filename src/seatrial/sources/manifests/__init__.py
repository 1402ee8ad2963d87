"""From manifests and kustomizations to releases."""
