"""What a timeline shows, as data. Rules read it; nothing here writes sentences."""
