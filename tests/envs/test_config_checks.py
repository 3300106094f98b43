"""Numbers in the configuration of a task that are out of range."""

import math
import re
from dataclasses import dataclass, field

import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.config_checks import check_episode_length, check_numbers
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg
from manyworlds.tasks import list_tasks, load_env_cfg


@pytest.mark.parametrize(
    ("task", "path", "change"),
    [
        (
            "Velocity-Flat-Quadruped",
            "commands.twist.ranges.lin_vel_x is (2, -1)",
            lambda cfg: setattr(cfg.commands["twist"].ranges, "lin_vel_x", (2.0, -1.0)),
        ),
        (
            "Reach",
            "resampling_time_range is (4, 1)",
            lambda cfg: [
                setattr(command, "resampling_time_range", (4, 1))
                for command in cfg.commands.values()
            ],
        ),
        (
            "Velocity-Flat-Quadruped",
            "commands.turned.pose_range.yaw is (1, nan)",
            lambda cfg: cfg.commands.update(turned=Turned()),
        ),
    ],
)
def test_a_reversed_range_is_named(task, path, change):
    """Refuse ranges of commands whose lower bound is not first, with their path."""
    cfg = load_env_cfg(task)
    change(cfg)
    with pytest.raises(ValueError, match=re.escape(path) + ".*give the lower bound first"):
        check_numbers(cfg)


@dataclass
class Turned:
    """Command with a range that ends nowhere, beside a pair that is none."""

    size: tuple[int, int] = (3, 2)
    pose_range: dict[str, tuple[float, float]] = field(
        default_factory=lambda: {"x": (0.0, 0.0), "yaw": (1.0, math.nan)}
    )


def test_a_mean_and_a_deviation_are_no_range():
    """Leave the ranges of events to their terms: those of a gaussian are mean and deviation."""
    cfg = load_env_cfg("Velocity-Flat-Quadruped")
    params = {"ranges": (1.0, 0.1), "distribution": "gaussian", "operation": "scale"}
    cfg.events["heavy"] = EventTermCfg(func=dr.geom_friction, mode="startup", params=params)
    check_numbers(cfg)


@pytest.mark.parametrize("length", [0.001, -1.0, math.nan])
def test_episodes_have_a_control_step(env_cfg, length):
    """Refuse a time limit below a control step when the environment is built."""
    env_cfg.episode_length_s = length
    with pytest.raises(ValueError, match=r"episode_length_s is .* at least one control step"):
        ManagerBasedRlEnv(env_cfg)


def test_configurations_of_all_tasks_pass():
    """Accept what each task has, and an episode of exactly one control step."""
    for task in list_tasks():
        for play in (False, True):
            cfg = load_env_cfg(task, play=play)
            check_numbers(cfg)
            check_episode_length(cfg, cfg.decimation * cfg.sim.mujoco.timestep)
            cfg.episode_length_s = cfg.decimation * cfg.sim.mujoco.timestep
            check_episode_length(cfg, cfg.episode_length_s)
