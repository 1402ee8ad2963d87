"""Server-side apply: managedFields, field sets, merging."""
