"""RBAC: roles, bindings, and the authorizer."""
