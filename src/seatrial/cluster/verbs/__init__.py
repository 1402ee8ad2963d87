"""The verbs: get, list, create, update, patch, apply, delete."""
