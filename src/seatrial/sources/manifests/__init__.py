"""Plain manifests and kustomizations become releases."""
