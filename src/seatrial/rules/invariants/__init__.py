"""What holds for every step of every trial. Checked after the rules, which may explain a breach."""
