"""Spellings of other frameworks, for projects that were written for them."""
