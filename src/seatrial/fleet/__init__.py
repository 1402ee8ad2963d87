"""Many charts in one run. Importing it starts nothing."""
