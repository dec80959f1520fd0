"""Transformers that act in context: plain modules that know nothing about a bandit's rules."""
