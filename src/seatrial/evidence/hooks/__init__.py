"""What hooks and Jobs did, and what they lacked."""
