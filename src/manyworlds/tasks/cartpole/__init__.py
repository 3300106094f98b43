"""Cartpole: balance the pole, or swing it up first."""
