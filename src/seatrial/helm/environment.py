"""The environment that the real Helm needs here. Imports nothing: the command line reads it before anything else."""

QPS = 1_000_000
"""Lifts client-go's rate limit: Helm would ask five times a second while it waits."""
HELM_ENVIRONMENT = {"HELM_QPS": str(QPS), "HELM_BURST_LIMIT": str(QPS), "GOGC": "300"}
"""The same for a helm in another process, and a relaxed garbage collection of Go: Helm re-reads discovery for every
object. That saves a twelfth of a large chart."""
