"""Checks and normal forms of what users pass: values, names, and worlds."""
