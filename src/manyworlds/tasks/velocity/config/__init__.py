"""The velocity task of each robot."""
