"""ST5xx: webhooks and APIServices."""
