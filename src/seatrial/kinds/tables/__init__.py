"""Tables read from upstream: served kinds, removed versions, default roles, type names, force-new fields."""
