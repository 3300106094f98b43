"""Evaluation of tracking policies."""
