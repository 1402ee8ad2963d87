"""What is in the cluster before the first step: declared by the user, or needed by the release."""
