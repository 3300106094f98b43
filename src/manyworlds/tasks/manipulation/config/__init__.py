"""The robots that lift cubes."""
