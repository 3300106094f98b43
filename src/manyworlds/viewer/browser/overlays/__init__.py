"""Overlays of one world for all pages: which there are, what they read, and how they are drawn."""
