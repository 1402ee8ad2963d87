"""RBAC: roles, bindings, and who may do what."""
