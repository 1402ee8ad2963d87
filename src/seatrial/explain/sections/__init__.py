"""What the page of an engine shows, from the tables that its rehearsals use: one module for each engine."""
