"""Worlds whose rewards change: what an environment is, the linear bandit, and how it drifts."""
