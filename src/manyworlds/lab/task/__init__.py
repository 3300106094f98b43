"""Environment of a task that advances a live world."""
