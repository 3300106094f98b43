"""Robots of the tracking task."""
