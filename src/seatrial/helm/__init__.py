"""Facts about Helm: hooks, kind order, release records; the SDK and the binary behind one adapter each."""
