"""Training of tracking policies."""
