"""What `kubectl get` shows, kind by kind. Read from `pkg/printers/internalversion/printers.go` of Kubernetes 1.34."""
