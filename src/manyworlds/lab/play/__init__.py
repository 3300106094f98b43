"""Playing with a live world: pushes, launched bodies, contacts, drawings."""
