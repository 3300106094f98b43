"""Robots of a live world: who controls each of them, and by which law."""
