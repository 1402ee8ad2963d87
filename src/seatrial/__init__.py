"""seatrial rehearses a Kubernetes release before it reaches a cluster."""

__version__ = "0.1.0"
