"""What Flux reconciliations show."""
