"""Runs projects that were written for other frameworks."""
