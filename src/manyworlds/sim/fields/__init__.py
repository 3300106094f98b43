"""Facts about the fields of MuJoCo's model and data, and per-world rows of them."""
