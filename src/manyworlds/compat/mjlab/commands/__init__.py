"""Commands of mjlab as functions of configs."""
