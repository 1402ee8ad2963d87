"""The embedded Kubernetes: an API server, its controllers and a kubelet in memory. Never knows which engine speaks."""
