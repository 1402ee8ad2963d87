"""From a plan to a rehearsal: one trial, one engine, one schedule."""
