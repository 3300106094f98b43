"""Processing of one observation term: noise, clip, scale, NaN policy, delay, history, padding."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import torch

from manyworlds.managers.manager_base import shape_or_type
from manyworlds.managers.not_finite import is_not_finite
from manyworlds.signals import CircularBuffer, DelayBuffer, NoiseCfg, NoiseModel, NoiseModelCfg
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.rules import refuse
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.managers.observation_manager import ObservationTermCfg

NanPolicy = Literal["disabled", "warn", "sanitize", "error"]
Stage: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"


class NanStage:
    """Replacement of values that are not finite by zero, with a mask of the worlds.

    Args:
        where: name of the term or group in messages.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self.quiet = False
        """True to replace values by zero without notice."""
        self.not_finite: torch.Tensor | None = None
        """Mask of worlds with such values since it was read, shape [num_envs]; None if unknown."""

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """Return finite values, shape [num_envs, ...]."""
        if not value.is_floating_point():
            return value
        if not self.quiet:
            self._note(value)
        return value.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)

    def _note(self, value: torch.Tensor) -> torch.Tensor:
        """Return a mask of worlds with values that are not finite, shape [num_envs]."""
        bad = is_not_finite(value).flatten(1).any(dim=1)
        if self.not_finite is None:
            self.not_finite = bad
        else:
            self.not_finite = self.not_finite | bad
        return bad


class ObservationPipeline(Stateful):
    """Noise, clip, scale, NaN policy, delay, history and padding of one term of one group.

    Args:
        where: name of the term in messages.
        cfg: configuration of the term.
        nan_policy: handling of values that are not finite.
        sample: values of the term, shape [num_envs, ...], from which the shape is taken.
        num_envs: number of worlds.
        random: random numbers of the worlds, for noise and delays.

    Raises:
        ValueError: the values or the configuration do not fit.
    """

    state_attributes = ("_noise", "_delay", "_history")
    derived_attributes = ("_stages", "nan_stage")  # have masks of the last step

    def __init__(
        self,
        where: str,
        cfg: ObservationTermCfg,
        nan_policy: NanPolicy,
        sample: object,
        num_envs: int,
        random: WorldRandom,
    ) -> None:
        if not isinstance(sample, torch.Tensor) or sample.ndim < 2 or len(sample) != num_envs:
            raise ValueError(
                f"{where} returned {shape_or_type(sample)}, expected ({num_envs}, ...): "
                "return at least one column per world."
            )
        self._where = where
        self._noise: NoiseModel | None = None
        self._delay: DelayBuffer | None = None
        self._history: CircularBuffer | None = None
        self._stages: list[Stage] = []
        try:
            self._build(cfg, sample, random)
            for stage in self._stages:
                sample = stage(sample)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        self.nan_stage = nan_stage(nan_policy, where)
        if self.nan_stage is not None:
            self._stages.append(self.nan_stage)
        self._flatten = cfg.flatten_history_dim
        shape = tuple(sample.shape[1:])
        if self._history is not None:
            shape = (cfg.history_length, *shape)
            if self._flatten:
                shape = (math.prod(shape),)
        self.own_shape: tuple[int, ...] = shape
        """Shape of one world's values without padding."""
        self.shape: tuple[int, ...] = cfg.pad_to or shape
        """Shape of one world's observation."""
        self._padding = _padding(where, shape, self.shape)
        remembers = self._delay is not None or self._history is not None or bool(self._padding)
        self.works = remembers or bool(self._stages)
        """True if a call changes or stores the values."""
        self.copies = remembers or bool(self._noise or cfg.clip or cfg.scale is not None)
        """True if results never share memory with the values that the term returned."""

    @property
    def noise(self) -> NoiseModel | None:
        """Noise of the term, if any."""
        return self._noise

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore a state that `state_dict` returned.

        Raises:
            ValueError: the term of the saved state had another noise, delay or history.
        """
        for name in self.state_attributes:
            here = getattr(self, name) is not None
            saved = state[name] is not None
            if here == saved:
                continue
            what = f"has a {name.strip('_')}, but the saved state has none"
            if saved:
                what = f"has no {name.strip('_')}, but the saved state has one"
            raise ValueError(
                f"{self._where} {what}: use the configuration that the state was saved with."
            )
        super().load_state_dict(state)

    def __call__(self, value: torch.Tensor, beginning: Worlds | None) -> torch.Tensor:
        """Process the values of a control step; return the observation, shape [num_envs, ...].

        Args:
            value: values that the term returned, shape [num_envs, ...].
            beginning: worlds whose episode begins with this value; delays and histories of the
                others do not change. None advances all worlds by one step.
        """
        for stage in self._stages:
            value = stage(value)
        if self._delay is not None:
            if beginning is None:
                self._delay.append(value)
                value = self._delay.compute()
            else:
                self._delay.backfill(beginning.take(value), beginning)
                value = self._delay.peek()
        if self._history is not None:
            if beginning is None:
                self._history.append(value)
            else:
                self._history.backfill(beginning.take(value), beginning)
            value = self._history.buffer
            if self._flatten:
                value = value.flatten(1)
        if self._padding is not None:
            value = torch.nn.functional.pad(value, self._padding)
        return value

    def reset(self, worlds: Worlds) -> None:
        """Reset noise, delay and history of the given worlds."""
        if self._noise is not None:
            self._noise.reset(worlds.for_term(self._noise.reset))
        for buffer in (self._delay, self._history):
            if buffer is not None:
                buffer.reset(worlds)

    def _build(self, cfg: ObservationTermCfg, sample: torch.Tensor, random: WorldRandom) -> None:
        """Make noise, clip and scale, which are stages, and delay and history."""
        num_envs = len(sample)
        device = sample.device
        if cfg.noise is not None:
            noise = cfg.noise
            if isinstance(noise, NoiseCfg):
                noise = NoiseModelCfg(noise_cfg=noise)
            self._noise = noise.class_type(noise, num_envs, device)
            self._noise.draw_from(random, f"{self._where}/noise")
            self._stages.append(self._noise)
        if cfg.clip is not None:
            if not cfg.clip[0] <= cfg.clip[1]:
                refuse(
                    f"clip is {cfg.clip}, between which there is nothing: give the lower bound "
                    "first."
                )
            self._stages.append(functools.partial(torch.clamp, min=cfg.clip[0], max=cfg.clip[1]))
        if cfg.scale is not None:
            self._stages.append(_scale(cfg.scale, sample))
        if cfg.delay_max_lag or cfg.delay_min_lag:
            self._delay = DelayBuffer(
                min_lag=cfg.delay_min_lag,
                max_lag=cfg.delay_max_lag,
                batch_size=num_envs,
                device=device,
                per_env=cfg.delay_per_env,
                hold_prob=cfg.delay_hold_prob,
                update_period=cfg.delay_update_period,
                per_env_phase=cfg.delay_per_env_phase,
            )
            self._delay.draw_from(random, f"{self._where}/delay")
        if cfg.history_length:
            self._history = CircularBuffer(cfg.history_length, num_envs, device)


def _padding(where: str, own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the argument of `torch.nn.functional.pad`; None if the shapes are equal.

    Raises:
        ValueError: values of the one shape do not fit into the other.
    """
    if own == shape:
        return None
    if len(own) != len(shape) or any(a > b for a, b in zip(own, shape, strict=True)):
        raise ValueError(
            f"{where} has values of shape {own}, which pad_to={shape} cannot hold: give as many "
            "dimensions, and no smaller ones."
        )
    amounts: list[int] = []
    for a, b in zip(reversed(own), reversed(shape), strict=True):  # the last dimension comes first
        amounts += [0, b - a]
    return tuple(amounts)


def _scale(scale: tuple[float, ...] | float | torch.Tensor, sample: torch.Tensor) -> Stage:
    """Return the stage that multiplies by a factor."""
    if isinstance(scale, int | float):
        return functools.partial(torch.mul, other=scale)
    if not isinstance(scale, torch.Tensor) and len(scale) != sample.shape[-1]:
        raise ValueError(
            f"has {sample.shape[-1]} columns but {len(scale)} scales: "
            "give one factor, or one per column."
        )
    with torch.inference_mode(False):
        factor = torch.as_tensor(scale, dtype=torch.float32).to(sample.device, copy=True)
    try:
        fits = torch.broadcast_shapes(factor.shape, sample.shape) == sample.shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"has values of shape {(*sample.shape,)}, to which scale of shape {(*factor.shape,)} "
            "does not broadcast: give one factor, one per column, or a tensor that does."
        )
    return functools.partial(torch.mul, other=factor)


def nan_stage(policy: NanPolicy, where: str) -> NanStage | None:
    """Return the stage that handles values that are not finite; None if there is nothing to do.

    Raises:
        ValueError: the policy is unknown.
    """
    if policy not in get_args(NanPolicy):
        raise ValueError(
            f"{where} has nan_policy '{policy}': choose one of {', '.join(get_args(NanPolicy))}."
        )
    if policy == "disabled":
        return None
    if policy == "sanitize":
        return NanStage(where)
    return NanReport(where, policy == "error")


class NanReport(NanStage):
    """Check that raises, or warns and replaces values that are not finite; synchronizes.

    Args:
        where: name of the term or group in messages.
        strict: whether to raise.
    """

    def __init__(self, where: str, strict: bool) -> None:
        super().__init__(where)
        self._strict = strict

    def _note(self, value: torch.Tensor) -> torch.Tensor:
        bad = super()._note(value)
        if not bad.any():
            return bad
        message = f"{self._where} is not finite in worlds {bad.nonzero().squeeze(-1).tolist()}"
        if self._strict:
            raise ValueError(
                f"{message}: look for a diverged simulation, or set nan_policy='sanitize'."
            )
        warnings.warn(f"{message}: its values are replaced by zero there.", stacklevel=3)
        return bad
