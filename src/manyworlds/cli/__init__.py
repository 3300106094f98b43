"""Commands of the `manyworlds` program."""
