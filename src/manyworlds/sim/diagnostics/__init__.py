"""Status of worlds, and records of the calls before a world failed."""
