"""Fields of a model that change while its world runs."""
