"""Notes on an environment that can be built, but probably does not do what was meant."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from manyworlds.managers.event_manager import event_fields, plain_function

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg


def warn_of_doubts(env: ManagerBasedRlEnv) -> None:
    """Warn of what probably was not meant, each in one sentence; `check_env` notes warnings."""
    for note in (*_time_limits(env.cfg), *_friction_without_effect(env)):
        warnings.warn(note, stacklevel=3)


def _time_limits(cfg: ManagerBasedRlEnvCfg) -> Iterator[str]:
    """Yield notes on terminations by time."""
    for name, term in cfg.terminations.items():
        if term is None or getattr(plain_function(term.func), "__name__", "") != "time_out":
            continue
        if not cfg.episode_length_s:
            yield (
                f"terminations.{name} ends each episode in its first step, because "
                "episode_length_s is 0: set the length of episodes, or remove the term."
            )
        if not term.time_out and not cfg.is_finite_horizon:
            yield (
                f"terminations.{name} counts the time limit as a failure, whose value is 0: set "
                "time_out=True, or is_finite_horizon=True if the limit is part of the task."
            )


def _friction_without_effect(env: ManagerBasedRlEnv) -> Iterator[str]:
    """Yield notes on randomized friction that contacts with the ground do not have.

    MuJoCo takes the larger friction of two geoms of equal priority, and else that of the geom with
    the higher one: https://mujoco.readthedocs.io/en/stable/modeling.html#contact-parameters
    """
    events = env.event_manager
    names = [name for terms in events.active_terms.values() for name in terms]
    events_of_friction = [
        name
        for name in names
        if "geom_friction" in event_fields(events.get_term_cfg(name).func).written
    ]
    if not events_of_friction or "geom_friction" not in env.sim.expanded_fields:
        return
    model = env.sim.mj_model
    friction = env.sim.model.geom_friction[..., 0].cpu()
    compiled = env.sim.get_default_field("geom_friction")[..., 0].cpu()
    drawn = (friction != compiled).any(dim=0)
    static = model.body_weldid[model.geom_bodyid] == 0
    for ground in static.nonzero()[0].tolist():
        for geom in drawn.nonzero().flatten().tolist():
            collide = (
                model.geom_contype[geom] & model.geom_conaffinity[ground]
                or model.geom_contype[ground] & model.geom_conaffinity[geom]
            )
            if static[geom] or not collide:
                continue
            higher = int(model.geom_priority[ground]) - int(model.geom_priority[geom])
            lost = friction[:, geom] < friction[:, ground]
            if higher < 0 or (higher == 0 and not lost.any()):
                continue
            most = float(friction[:, ground].max())
            why = "which has the higher priority"
            if higher == 0:
                why = f"where it is less than {most:g}, because MuJoCo takes the larger of two"
            feet = model.geom(geom).name
            floor = model.geom(ground).name
            yield (
                f"Events {events_of_friction} randomize the friction of geom '{feet}', but its "
                f"contacts have that of '{floor}', {why}: give the geom a higher priority "
                "(CollisionCfg.priority), or the ground less friction."
            )
            return
