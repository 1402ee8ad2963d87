"""What Pulumi programs show."""
