"""A two-finger rover that sorts blocks on terrain of our own."""
