"""Robots and props, as MJCF built in Python."""
