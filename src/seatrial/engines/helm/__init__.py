"""Helm as an engine: the real SDK, a helm binary, and a model of Helm 3."""
