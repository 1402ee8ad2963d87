"""The embedded Kubernetes: an API server, its controllers and a kubelet in memory. Knows no engine."""
