"""One compiled world: how it is loaded, the names of its elements, its options."""
