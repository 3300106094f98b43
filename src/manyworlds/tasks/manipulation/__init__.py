"""Arms pick things up and bring them to where they are wanted."""
