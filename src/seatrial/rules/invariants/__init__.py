"""Checks for every step of every trial. They run after the rules and report only what no rule explains."""
