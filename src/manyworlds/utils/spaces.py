"""Spaces of observations and actions: gymnasium's, under the names that tasks look for here."""

from gymnasium.spaces import Box, Dict, Space
from gymnasium.vector.utils import batch_space

__all__ = ["Box", "Dict", "Space", "batch_space"]
