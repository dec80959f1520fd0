"""Grids of environments, agents and options."""
