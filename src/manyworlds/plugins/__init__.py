"""Programs and services around a lab, which does not know them."""
