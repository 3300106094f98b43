"""Two futures of one moment: with two policies, or with and without a push."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch

from manyworlds.lab.pictures.film.filmer import start_drawing, write_job
from manyworlds.live.fork import restore_snapshot
from manyworlds.live.record import step_past_end
from manyworlds.live.story import StoryStep, step_of
from manyworlds.utils.seeding import rng_state, seed_rng, set_rng_state
from manyworlds.utils.table import render_table
from manyworlds.viewer.video import Format, check_format

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.lab.task.env_policies import EnvironmentPolicy
    from manyworlds.live.edits import RecordedPush
    from manyworlds.live.snapshot import WorldSnapshot

_SEED = 0
_FIELDS = ("qpos", "mocap_pos", "mocap_quat")


@dataclass(frozen=True)
class FutureRollout:
    """Control steps of a world from a moment on."""

    label: str
    steps: list[StoryStep]
    """Control steps, also after a termination; none after the world diverged."""
    states: dict[str, np.ndarray] = field(repr=False)
    """`times` since the moment [s], shape [n + 1], and `qpos`, `mocap_pos`, `mocap_quat` then."""

    @property
    def end(self) -> int | None:
        """Control step, from 1 on, in which a termination was first true; None if none was."""
        return next((i for i, step in enumerate(self.steps, 1) if step.ended_by), None)

    @property
    def reward(self) -> float:
        """Mean reward per second until the end."""
        rewards = [sum(step.rewards.values()) for step in self.steps[: self.end]]
        return float(np.mean(rewards))

    def nearest(self, name: str) -> float:
        """Return the largest nearness to a termination until the end."""
        return max(step.nearness[name] for step in self.steps[: self.end])


@dataclass(frozen=True)
class TwoFutures:
    """Two futures of one moment with the same random numbers."""

    first: FutureRollout
    second: FutureRollout
    model: mujoco.MjModel = field(repr=False)

    def __str__(self) -> str:
        """Return both as a table: ends, rewards, and how near terminations were."""
        futures = (self.first, self.second)
        rows = [
            ("ended by", *map(_ended_by, futures)),
            ("reward per second", *(round(future.reward, 3) for future in futures)),
        ]
        for name in self.first.steps[-1].nearness | self.second.steps[-1].nearness:
            nearest = (round(future.nearest(name), 2) for future in futures)
            rows.append((f"nearest to {name}", *nearest))
        return render_table("", ("", *(future.label for future in futures)), rows)

    def save_film(
        self,
        path: str | Path,
        *,
        body: str = "",
        width: int = 320,
        height: int = 240,
        fps: float = 20.0,
        format: Format = "",
    ) -> Path:
        """Write a film of both, the first one on the left; return its path.

        It is drawn in a process of its own.

        Args:
            path: the file; its suffix becomes that of the format.
            body: body that the camera follows; empty for everything that moves.
            width: width of each half [pixel], even.
            height: height [pixel], even.
            fps: frames per second [1/s].
            format: `mp4`, `gif`, or empty for MP4 where the encoder is installed.

        Raises:
            RuntimeError: the film cannot be drawn, for example without OpenGL.
        """
        seconds = max(float(f.states["times"][-1]) for f in (self.first, self.second))
        frames = max(1, round(seconds * fps))
        job: dict[str, object] = {"frames": frames, "fps": fps, "fovy": 45.0}
        job |= {"width": width, "height": height, "format": check_format(format)}
        job["shot"] = {"kind": "orbit", "target": body, "speed": 0.0}
        with tempfile.TemporaryDirectory(prefix="manyworlds-film-") as name:
            write_job(Path(name), self.model, job, self.first.states, self.second.states)
            with start_drawing(Path(name)) as process:
                assert process.stdout is not None
                said = json.loads(process.stdout.read().splitlines()[-1])
            if "file" not in said:
                raise RuntimeError(f"The film was not drawn: {said.get('error', 'no reason')}.")
            file = Path(name, said["file"])
            target = Path(path).with_suffix(file.suffix)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(file, target)
        return target


def future_of(
    env: ManagerBasedRlEnv,
    snapshot: WorldSnapshot,
    policy: EnvironmentPolicy | None,
    label: str,
    seconds: float,
    push: RecordedPush | None = None,
) -> FutureRollout:
    """Simulate what a world does from a moment on; the global random numbers do not change.

    Random numbers of commands, events and noise are the same at each call.

    Args:
        env: environment of one world, built for a moment like this one; its state is replaced.
        snapshot: the snapshot.
        policy: the policy; None for actions of zero.
        label: name of the future.
        seconds: duration [s].
        push: push with which it begins; None for none.
    """
    before = rng_state()
    world = torch.zeros(1, dtype=torch.long)
    restore_snapshot(env, snapshot)
    env.set_auto_reset(False)
    steps: list[StoryStep] = []
    states = {name: [_state(env, name)] for name in _FIELDS}
    pushed = 0
    if push is not None:
        pushed = push.steps(env)
    try:
        seed_rng(_SEED)
        for step in range(max(1, round(seconds / env.step_dt))):
            if push is not None and step in (0, pushed):
                push.write(env, world, float(step == 0))
            with torch.no_grad():
                obs = env.get_observations()
                zero = torch.zeros(1, env.action_manager.total_action_dim)
                action = zero if policy is None else policy(obs)
                if not torch.isfinite(action).all():  # the world has diverged
                    break
                step_past_end(env, action)
            steps.append(step_of(env))
            for name, values in states.items():
                values.append(_state(env, name))
    finally:
        set_rng_state(before)
    times = np.arange(len(steps) + 1) * env.step_dt
    rows = {name: np.nan_to_num(np.array(values)) for name, values in states.items()}
    return FutureRollout(label, steps, {"times": times, **rows})


def _state(env: ManagerBasedRlEnv, name: str) -> np.ndarray:
    return getattr(env.sim.data, name)[0].double().cpu().numpy().copy()


def _ended_by(future: FutureRollout) -> str:
    if future.end is None:
        return "still running"
    step = future.steps[future.end - 1]
    return f"{', '.join(step.ended_by)} after {future.states['times'][future.end]:.2f} s"
