"""The command line: what can be said, and what it does."""
