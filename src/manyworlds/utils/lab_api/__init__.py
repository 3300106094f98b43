"""Import paths of the reference for `manyworlds.utils.math` and `manyworlds.utils.string`."""
