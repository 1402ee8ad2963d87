"""Shell scripts and kubectl calls in containers: what they ask of the API and how they end."""
