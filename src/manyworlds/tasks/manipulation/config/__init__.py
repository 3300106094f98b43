"""Robots of the manipulation tasks."""
