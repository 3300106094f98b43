"""Robots of the velocity task."""
