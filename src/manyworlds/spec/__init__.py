"""Edits of MuJoCo specs, before a model is compiled."""
