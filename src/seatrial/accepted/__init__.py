"""Findings that the user accepts: ignored by a comment, an annotation or an entry of seatrial.yaml. Finds none."""
