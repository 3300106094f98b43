"""Check of a task for what keeps a control step from being captured as a CUDA graph.

The check needs no GPU: it runs control steps on the CPU, with MuJoCo Warp and on the paths of GPUs,
and notes the calls of torch that would break a capture; see `capture_obstacles`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from manyworlds.envs.capture_obstacles import Obstacle, obstacles_of
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg

_NUM_ENVS = 4


@dataclass
class CaptureReport:
    """Obstacles to the capture of a control step; see `check_capture`."""

    obstacles: list[Obstacle] = field(default_factory=list)
    """Each line once, in the order in which they were met."""

    @property
    def ok(self) -> bool:
        """True if nothing keeps the step from being captured."""
        return not self.obstacles

    def __str__(self) -> str:
        if self.ok:
            return "ok: the control step can be captured"
        lines = [str(obstacle) for obstacle in self.obstacles]
        return "\n".join([f"{len(lines)} lines prevent the capture of a control step", *lines])


def check_capture(cfg: ManagerBasedRlEnvCfg) -> CaptureReport:
    """Run control steps of a task, and report what keeps them from being captured.

    Episodes end in some of the steps, intervals of events expire, and commands are sampled again,
    so that the code of resets and events is part of it.

    Args:
        cfg: configuration of the environment; a copy is changed.

    Raises:
        MissingExtraError: the extra 'gpu' is not installed.
    """
    cfg = copy.deepcopy(cfg)
    cfg.scene.num_envs = _NUM_ENVS
    cfg.sim.engine = "warp"
    cfg.sim.nan_guard.enabled = False
    cfg.sim.capture = "off"
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    obstacles = obstacles_of(env)
    env.close()
    return CaptureReport(obstacles)
