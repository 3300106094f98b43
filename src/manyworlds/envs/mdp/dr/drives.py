"""Randomization of actuators and encoders: gains, limits, delays and offsets."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyworlds.actuator import Actuator
from manyworlds.envs.mdp.dr.distributions import (
    ADD,
    Distribution,
    Operation,
    resolve_operation,
)
from manyworlds.envs.mdp.dr.field_draws import (
    ROBOT,
    Bounds,
    Randomization,
    Range,
    make_bounds,
    randomizes,
    resolved,
    selected,
)
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.validation.worlds import EnvIds, Worlds, assign

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.envs import ManagerBasedRlEnv

_DRIVEN = ("joint", "tendon", "site")


@dataclass(frozen=True)
class _ParameterDraw:
    """Draw of one parameter of one actuator."""

    actuator: Actuator
    name: str
    columns: torch.Tensor
    """Positions among the actuator's targets."""
    bounds: Bounds
    operation: Operation
    """How the draw becomes the parameter, from the parameter as built."""

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw for some worlds."""
        drawn = self.bounds.sample(env.random, worlds, len(self.columns)).squeeze(-1)
        # Only the tail of a distribution is below zero, where springs would push.
        drawn = drawn.clamp(min=0.0)
        built = worlds.pick(self.actuator.default_param(self.name), self.columns)
        value = self.operation.combine(built, drawn)
        self.actuator.set_param(self.name, value, worlds, self.columns)


@dataclass(frozen=True)
class _ParameterDraws(Randomization):
    """Draws of parameters of actuators, in order."""

    draws: list[_ParameterDraw]

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw for some worlds."""
        for draw in self.draws:
            draw.apply(env, worlds)


def _parameter_draws(
    env: ManagerBasedRlEnv,
    asset_cfg: SceneEntityCfg,
    ranges: Mapping[str, Range],
    distribution: Distribution | str,
    operation: Operation | str,
) -> _ParameterDraws:
    """Find parameters of the selected actuators, whatever their kinds."""
    asset_cfg = resolved(env, asset_cfg)
    names = " or ".join(ranges)
    operation = resolve_operation(operation)
    if operation == ADD:
        raise ValueError(
            f"An actuator's {names} cannot be randomized by operation '{operation.name}': use "
            "'scale', 'abs' or a dr.Operation."
        )
    bounds = {n: make_bounds([[pair]], distribution, env.sim.device) for n, pair in ranges.items()}
    for name, pair in ranges.items():
        if pair[0] < 0.0:
            raise ValueError(f"The range of {name} must not be negative, got {pair}.")
    # Whether actuators, or what they drive, are selected by name or id.
    selective = any(asset_cfg.names(kind) is not None for kind in ("actuator", *_DRIVEN))
    draws: list[_ParameterDraw] = []
    for actuator in env.scene.entity(asset_cfg.name).actuators:
        columns = _selected_columns(asset_cfg, actuator)
        able = [name for name in ranges if name in actuator.param_names]
        if len(columns) and not able and selective:
            raise ValueError(
                f"The {type(actuator).__name__} of {', '.join(actuator.target_names)} has no "
                f"{names}: select other actuators in asset_cfg."
            )
        draws += [
            _ParameterDraw(actuator, name, columns, bounds[name], operation)
            for name in able
            if len(columns)
        ]
    if not draws:
        raise ValueError(
            f"'{asset_cfg.name}' has no actuator with {names} among those selected: configure "
            "one in EntityCfg.articulation, or select others in asset_cfg."
        )
    return _ParameterDraws(draws)


def _selected_columns(asset_cfg: SceneEntityCfg, actuator: Actuator) -> torch.Tensor:
    """Return the positions of the selected targets of an actuator, shape [targets].

    A selection may name actuators, and the joints, tendons or sites that they drive.
    """
    columns = torch.arange(len(actuator.target_ids), device=actuator.target_ids.device)
    if isinstance(asset_cfg.actuator_ids, list):
        columns = actuator.target_columns(asset_cfg.actuator_ids)
    named = [kind for kind in _DRIVEN if asset_cfg.names(kind) is not None]
    kind = actuator.transmission_type.value
    if named and kind not in named:
        return columns[:0]
    ids = asset_cfg.ids(kind)
    if isinstance(ids, list):
        wanted = torch.tensor(ids, device=columns.device)
        columns = columns[torch.isin(actuator.target_ids[columns], wanted)]
    return columns


@randomizes("actuator_gainprm", "actuator_biasprm", selects=("actuator", *_DRIVEN))
def pd_gains(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    kp_range: Range,
    kd_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "scale",
) -> _ParameterDraws:
    """Randomize stiffness and damping of actuators, for each of their targets.

    Actuators that have only one of them take that. Draws below zero count as zero.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        kp_range: bounds of the stiffness [N m/rad or N/m], or of its factor.
        kd_range: bounds of the damping [N m s/rad or N s/m], or of its factor.
        asset_cfg: the entity and which of its actuators, by their own names or by those of the
            joints or tendons that they drive; by default those that have gains.
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        operation: 'scale' multiplies the gains as built, 'abs' sets them.

    Raises:
        ValueError: an actuator that was selected has no gains, or none has, or the operation is
            another one.
    """
    ranges = {"stiffness": kp_range, "damping": kd_range}
    return _parameter_draws(env, asset_cfg, ranges, distribution, operation)


@randomizes(
    "actuator_forcerange",
    "actuator_ctrlrange",
    "jnt_actfrcrange",
    "tendon_actfrcrange",
    reads=("actuator_gear",),
    selects=("actuator", *_DRIVEN),
)
def effort_limits(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    effort_limit_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "scale",
) -> _ParameterDraws:
    """Randomize the largest efforts of actuators, for each of their targets.

    Limits are the actuators' own, before gears. A range that is not symmetric keeps its shape.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        effort_limit_range: bounds of the limit [N m or N], or of its factor.
        asset_cfg: see `pd_gains`.
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        operation: 'scale' multiplies the limits as built, 'abs' sets them.

    Raises:
        ValueError: an actuator that was selected has no limits, or none has, or the operation is
            another one.
    """
    ranges = {"force_limit": effort_limit_range}
    return _parameter_draws(env, asset_cfg, ranges, distribution, operation)


@dataclass(frozen=True)
class _EncoderBias(Randomization):
    """Draw of errors of encoders."""

    entity: Entity
    joints: torch.Tensor
    bounds: Bounds

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw for some worlds."""
        bias = self.bounds.sample(env.random, worlds, len(self.joints)).squeeze(-1)
        assign(self.entity.data.encoder_bias, bias, worlds, self.joints)


@randomizes(selects=("joint",))
def encoder_bias(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    bias_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> _EncoderBias:
    """Give the encoder of every joint an error that stays: `entity.data.encoder_bias`.

    `joint_pos_biased` shows positions with it, and position actions make up for it as a robot
    would that believes its encoders. The model stays.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        bias_range: bounds of the error [rad or m].
        asset_cfg: the entity and which of its joints.
    """
    asset_cfg = resolved(env, asset_cfg)
    selected(env, asset_cfg, "joint")
    entity = env.scene.entity(asset_cfg.name)
    every = torch.arange(entity.num_joints, device=env.sim.device)
    bounds = make_bounds([[bias_range]], "uniform", env.sim.device)
    return _EncoderBias(entity, every[asset_cfg.index("joint")], bounds)


@dataclass(frozen=True)
class _CommonLag(Randomization):
    """Draw of one delay for several actuators."""

    actuators: list[Actuator]
    low: int
    high: int

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw for some worlds."""
        lags = env.random.integers(self.low, self.high + 1, env_ids=worlds)
        for actuator in self.actuators:
            actuator.set_lags(lags, worlds)


@randomizes()
def sync_actuator_delays(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    lag_range: tuple[int, int] | None = None,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> _CommonLag:
    """Give all actuators of an entity that have a delay the same one, drawn for each world.

    A reset draws the delays of actuators one by one, before events: use mode 'reset'.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        lag_range: smallest and largest delay [physics steps]; None for what all of them can have.
        asset_cfg: the entity.

    Raises:
        ValueError: no actuator has a delay, or one cannot have all those of the range.
    """
    entity = env.scene.entity(resolved(env, asset_cfg).name)
    delayed = [actuator for actuator in entity.actuators if actuator.has_delay]
    if not delayed:
        raise ValueError(
            "dr.sync_actuator_delays found no actuator that has a delay: set delay_max_lag."
        )
    low = max(actuator.cfg.delay_min_lag for actuator in delayed)
    high = min(actuator.cfg.delay_max_lag for actuator in delayed)
    if lag_range is None:
        lag_range = (low, high)
    if not low <= lag_range[0] <= lag_range[1] <= high:
        raise ValueError(
            f"dr.sync_actuator_delays cannot draw from {lag_range}: all actuators that have a "
            f"delay can be late by {low} to {high} physics steps, see delay_min_lag and "
            "delay_max_lag."
        )
    if any(actuator.cfg.delay_hold_prob < 1.0 for actuator in delayed):
        warnings.warn(
            "dr.sync_actuator_delays sets delays that actuators soon draw again, one by one: set "
            "delay_hold_prob=1.0.",
            UserWarning,
            4,
        )
    return _CommonLag(delayed, *lag_range)
