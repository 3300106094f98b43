"""Reach task: an arm with two joints reaches goals; the template for new tasks."""
