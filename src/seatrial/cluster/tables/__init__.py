"""The columns of `kubectl get`, by kind. From `pkg/printers/internalversion/printers.go` of Kubernetes 1.34."""
