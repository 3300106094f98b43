"""An arm of two joints reaches for goals: the template for tasks of your own."""
