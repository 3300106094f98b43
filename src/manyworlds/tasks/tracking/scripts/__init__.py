"""Judging what was learned."""
