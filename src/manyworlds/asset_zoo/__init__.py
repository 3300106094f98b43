"""Robots and props as MJCF models built in Python."""
