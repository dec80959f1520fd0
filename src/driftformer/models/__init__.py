"""Transformers that act in context: plain modules that know nothing about the rules of a bandit."""
