"""Program of each of several training processes: train, and write down the results."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from manyworlds.live.edits import SetValue
from manyworlds.live.run_edits import RunEdits
from manyworlds.rl import runner as runner_module
from manyworlds.rl.training import train
from manyworlds.tasks import load_env_cfg, load_rl_cfg


class NotingRunner(runner_module.OnPolicyRunner):
    """Writes down what each process starts from and ends with."""

    folder: Path

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.edits = RunEdits(self)

    def learn(self, *args, **kwargs) -> None:
        """Learn, then write; `EDIT` names a path to set to a value after the first iteration."""
        env = self.env.unwrapped
        if (edit := os.environ.get("EDIT")) and self.ranks.is_main:
            path, _, value = edit.partition("=")
            self.edits.send(SetValue(path=path, value=float(value)))
        start = env.sim.data.qpos.clone()
        super().learn(*args, **kwargs)
        noted = {
            "start": start,
            "end": env.sim.data.qpos.clone(),
            "networks": self.alg.save(),
            "threads": env.sim.num_threads,
            "edits": [(record.after, record.text) for record in self.edits.records],
            "weight": env.reward_manager.get_term_cfg("smooth_reward").weight,
            "writes": self.logger.writer is not None,
        }
        torch.save(noted, self.folder / f"rank{self.ranks.rank}.pt")


def main(log_root: str, iterations: str, resume: str = "") -> None:
    """Train cartpole in two worlds a process."""
    NotingRunner.folder = Path(log_root)
    NotingRunner.folder.mkdir(exist_ok=True)
    env_cfg, rl_cfg = load_env_cfg("Cartpole-Swingup"), load_rl_cfg("Cartpole-Swingup")
    env_cfg.scene.num_envs = 2
    rl_cfg.num_steps_per_env, rl_cfg.save_interval = 8, 1
    rl_cfg.max_iterations = int(iterations)
    rl_cfg.actor.obs_normalization = True
    train(
        "Cartpole-Swingup",
        env_cfg,
        rl_cfg,
        Path(log_root) / "runs",
        device="cpu",
        resume=Path(resume) if resume else None,
        runner_cls=NotingRunner,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
