"""Motion tracking: a robot learns to move as a recorded or generated motion does."""
