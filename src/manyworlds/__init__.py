"""manyworlds: train robots in many different worlds at once; walk into any one of them."""

__version__ = "0.1.0"
