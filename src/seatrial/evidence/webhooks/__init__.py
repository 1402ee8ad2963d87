"""Webhook calls, their causes, and what each webhook needs."""
