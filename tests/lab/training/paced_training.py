"""`manyworlds train` with a pause after each control step, so that tests have the processor."""

from __future__ import annotations

import sys
import time

from manyworlds.cli.main import main
from manyworlds.envs import ManagerBasedRlEnv

PAUSE_S = 0.03
step = ManagerBasedRlEnv.step


def paced_step(env, action):
    """Step the environment, and rest."""
    time.sleep(PAUSE_S)
    return step(env, action)


ManagerBasedRlEnv.step = paced_step
sys.exit(main())
