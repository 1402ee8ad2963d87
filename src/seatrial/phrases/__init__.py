"""Sentences that several rules share. Decides nothing."""
