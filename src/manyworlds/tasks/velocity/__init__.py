"""Velocity tasks: legged robots follow velocity commands."""
