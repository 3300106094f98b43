"""Spaces of observations and actions, as gymnasium defines them."""

from gymnasium.spaces import Box, Dict, Space
from gymnasium.vector.utils import batch_space

__all__ = ["Box", "Dict", "Space", "batch_space"]
