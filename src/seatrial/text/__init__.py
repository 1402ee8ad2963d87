"""Text files and places in them, and YAML as Kubernetes reads it."""
