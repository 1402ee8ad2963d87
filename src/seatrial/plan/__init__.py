"""From options to plans: which trials, which cases, which prerequisites. Rehearses nothing."""
