"""Facts about Helm: hooks, kind order, release records. One adapter each for the SDK and the binary."""
