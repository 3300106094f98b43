"""Facades of mjlab's modules; see `manyworlds.compat.mjlab.facades`."""
