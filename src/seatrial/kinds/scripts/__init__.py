"""Shell scripts and kubectl calls in containers: their API requests and how they end."""
