"""Robots of the task."""
