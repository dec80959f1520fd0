"""Policies that learn from one reward a round, in batches; privileged ones that show what could be reached."""
