"""Modules of mjlab whose structure or meaning differs here.

The alias `mjlab.a.b` shows the names of `facades.a.b`, then those of the module that takes the
place of `mjlab.a.b` here.
"""
