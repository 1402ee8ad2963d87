"""Objects that are invalid, refused, duplicated or missing from the render."""
