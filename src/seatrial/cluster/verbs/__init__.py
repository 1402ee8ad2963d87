"""What each verb does: get, list, create, update, patch, apply, delete."""
