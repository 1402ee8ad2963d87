"""The embedded Kubernetes: an API server, its controllers and a kubelet in memory. Does not know which engine calls
it."""
