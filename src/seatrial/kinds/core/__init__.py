"""Namespaces, CRDs, Secrets, ConfigMaps, ServiceAccounts, quotas, and what all kinds share."""
