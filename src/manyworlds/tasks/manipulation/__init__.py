"""Manipulation tasks: robot arms lift objects to target positions."""
