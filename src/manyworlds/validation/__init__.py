"""Validation and normalization of user arguments: values, names, and world ids."""
