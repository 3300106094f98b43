"""Moments of a live world: saved states, timeline, undo."""
