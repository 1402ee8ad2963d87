"""seatrial inside other tools."""
