"""What teams write by hand: orders, gate Jobs, health checks, notes and tests, written from the graph of a release.

One module or folder per artefact. Each returns text; only the command line writes it.
"""
