"""Modules below `mjlab.actuator`."""
