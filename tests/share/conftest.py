"""Settings of short trainings."""

from tests.rl.conftest import rl_cfg

__all__ = ["rl_cfg"]
