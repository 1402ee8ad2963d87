"""ST006: what the user wrote for seatrial itself."""
