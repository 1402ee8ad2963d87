"""Webhook configurations, admission policies and APIServices: what the API server calls."""
