"""The `manyworlds` command."""
