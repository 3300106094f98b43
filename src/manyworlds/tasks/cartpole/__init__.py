"""Cartpole tasks: balancing and swinging up a pole."""
