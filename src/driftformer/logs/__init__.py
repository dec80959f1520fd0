"""Logged decisions: what agents would have earned in a system that somebody else was running."""
