"""Objects that exist before the first step: declared by the user, or assumed because the release needs them."""
