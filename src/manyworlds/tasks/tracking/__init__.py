"""Motion tracking tasks: a robot learns to follow a recorded or generated motion."""
