"""Robots that track motions."""
