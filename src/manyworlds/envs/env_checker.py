"""Check of a task for common mistakes, by a short run with random actions."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from manyworlds.entity import SecondActuatorsWarning
from manyworlds.envs.buckets import separate_cfgs
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp.padding import AbsentValues, PresentColumns
from manyworlds.managers import (
    NullCurriculumManager,
    ObservationTermCfg,
    RewardManager,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationManager,
)
from manyworlds.managers.scene_entity_config import SELECTED_KINDS
from manyworlds.managers.selection_reads import read_kinds

_LARGE = 1e3
_ROLLOUT = 5
_COMPARED = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat", "xfrc_applied")


@dataclass(frozen=True)
class Finding:
    """Mistake in a task, and its remedy."""

    where: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where} {self.problem}: {self.remedy}"


@dataclass
class EnvReport:
    """Findings of `check_env`."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Warnings of the build, checks that could not be done, and what may be right, such as
    penalties of zero."""

    @property
    def ok(self) -> bool:
        """True if there are no findings."""
        return not self.findings

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings] or ["ok: nothing found"]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


class _Watch:
    """Wrapper of a term's function that records the range of its return values.

    Args:
        where: name of the term in messages.
        func: wrapped function.
        shown: processing of a value before the policy receives it.
        weight: weight of a reward.
    """

    def __init__(
        self,
        where: str,
        func: Callable[..., Any],
        shown: Callable[[torch.Tensor], torch.Tensor] = lambda value: value.detach(),
        weight: float = 1.0,
    ) -> None:
        self.where = where
        self.func = func
        self.shown = shown
        self.weight = weight
        self.low = torch.inf
        self.high = -torch.inf
        self.finite = True
        self.reads_host = False
        self.keeps = False
        self.values: list[torch.Tensor] = []

    def __call__(self, env: Any, *args: Any, **kwargs: Any) -> Any:
        if env.device.type == "cuda":
            value = self._call_on_gpu(env, *args, **kwargs)
        else:
            value = self.func(env, *args, **kwargs)
        if isinstance(value, torch.Tensor) and value.numel():
            shown = self.shown(value)
            self.finite &= bool(torch.isfinite(shown).all())
            self.low = min(self.low, float(shown.min()))
            self.high = max(self.high, float(shown.max()))
            if self.keeps:
                self.values.append(shown.clone())
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.func, name)  # other attributes of class terms

    def _call_on_gpu(self, *args: Any, **kwargs: Any) -> Any:
        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                value = self.func(*args, **kwargs)
        finally:
            torch.cuda.set_sync_debug_mode(before)
        self.reads_host |= any("synchroniz" in str(warning.message) for warning in caught)
        return value


_DRAWS = {
    torch.rand,
    torch.randn,
    torch.randint,
    torch.randperm,
    torch.normal,
    torch.multinomial,
    torch.rand_like,
    torch.randn_like,
    torch.randint_like,
    torch.bernoulli,
    torch.poisson,
    torch.Tensor.multinomial,
    torch.Tensor.bernoulli,
    torch.Tensor.bernoulli_,
    torch.Tensor.uniform_,
    torch.Tensor.normal_,
    torch.Tensor.log_normal_,
    torch.Tensor.random_,
    torch.Tensor.exponential_,
    torch.Tensor.cauchy_,
    torch.Tensor.geometric_,
}
"""Functions of torch that draw from generators which all worlds share."""


class _PlainDraws(TorchFunctionMode):
    """Finds the terms that draw from torch's own generators while it is entered."""

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        super().__init__()
        self._env = env
        self.found: dict[str, None] = {}
        """Names of the streams of these terms, such as `EventManager/push`."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call a function, and note which term draws."""
        if func in _DRAWS:
            self.found[self._env.random.name] = None
        return func(*args, **(kwargs or {}))


class _Checker:
    def __init__(self, env: ManagerBasedRlEnv, seed: int, report: EnvReport) -> None:
        self.env = env
        self.seed = seed
        self.report = report
        self.observations = self._watch_observations()
        self.rewards = self._watch(env.reward_manager, "reward")
        self.terminations = self._watch(env.termination_manager, "termination")
        self.unread = _watch_sensors(env)
        generator = torch.Generator().manual_seed(seed)
        shape = (env.num_envs, env.action_manager.total_action_dim)
        self.draw = lambda: (2.0 * torch.rand(shape, generator=generator) - 1.0).to(env.device)

    def find(self, where: str, problem: str, remedy: str) -> None:
        self.report.findings.append(Finding(where, problem, remedy))

    def run(self, steps: int) -> None:
        """Run a short rollout, a longer one, and the short one again."""
        env = self.env
        curriculum = self.env.curriculum_manager
        env.curriculum_manager = NullCurriculumManager()  # its effects persist through resets
        actions = [self.draw() for _ in range(_ROLLOUT)]
        learned = [(tensor, tensor.clone()) for tensor in _shared_by_commands(env)]
        plain = _PlainDraws(env)
        with plain:
            first = self._rollout(actions)
        for _ in range(steps):
            action = self.draw()
            with plain:
                env.step(action)
        self._judge_draws(plain)
        for tensor, before in learned:
            tensor.copy_(before)
        self._compare(first, self._rollout(actions))
        env.curriculum_manager = curriculum
        env.reset()
        for watch in self.observations:
            self._judge_observation(watch)
        # A reward, and no penalty, that differs under random actions.
        has_signal = any(w.weight > 0.0 and w.finite and w.low < w.high for w in self.rewards)
        for watch in self.rewards:
            self._judge_reward(watch, has_signal)
        for name in self.unread:
            self.find(
                f"sensor '{name}'",
                "is never read",
                "read it in a term, or leave it out of the scene",
            )
        self._judge_host_reads()

    def _watch_observations(self) -> list[_Watch]:
        manager = self.env.observation_manager
        watches = []
        for group, terms in manager.active_terms.items():
            for name in terms:
                cfg = manager.get_term_cfg(group, name)
                shown = functools.partial(_clip_and_scale, cfg)
                cfg.func = _Watch(f"observation '{group}/{name}'", cfg.func, shown)
                watches.append(cfg.func)
        return watches

    def _watch(self, manager: RewardManager | TerminationManager, kind: str) -> list[_Watch]:
        watches = []
        for name in manager.active_terms:
            cfg = manager.get_term_cfg(name)
            weight = 1.0
            if isinstance(cfg, RewardTermCfg):
                weight = cfg.weight
            if weight != 0.0:
                cfg.func = _Watch(f"{kind} '{name}'", cfg.func, weight=weight)
                watches.append(cfg.func)
        return watches

    def _rollout(self, actions: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Reset with the seed and apply actions; return the results by the part they belong to."""
        env = self.env
        watches = [*self.observations, *self.rewards]
        env.reset(seed=self.seed)
        result: dict[str, torch.Tensor] = {}
        for name in _COMPARED:
            result[f"sim.data.{name}"] = getattr(env.sim.data, name).clone()
        for name in sorted(env.sim.expanded_fields):
            result[f"sim.model.{name}"] = getattr(env.sim.model, name).clone()
        for watch in watches:
            watch.values.clear()
            watch.keeps = True
        for i, action in enumerate(actions):
            env.step(action)
            if i == 0:
                self._judge_first_step()
        for watch in watches:
            watch.keeps = False
            result[watch.where] = torch.stack(watch.values)
        return result

    def _judge_draws(self, plain: _PlainDraws) -> None:
        for stream in plain.found:
            kind, _, name = stream.partition("/")
            self.report.notes.append(
                f"{kind} term '{name}' draws from torch's own generators: its numbers depend on "
                "the number of worlds, and a fork of a world cannot repeat them. Draw from "
                "env.random."
            )

    def _judge_first_step(self) -> None:
        ended = self.env.reset_buf.float().mean().item()
        if ended < 0.5 or any("ends" in finding.problem for finding in self.report.findings):
            return
        manager = self.env.termination_manager
        names = [name for name in manager.active_terms if manager.get_term(name).any()]
        self.find(
            f"termination {', '.join(map(repr, names))}",
            f"ends {ended:.0%} of all episodes in their first step",
            "compare its threshold with the state after a reset, and episode_length_s with "
            f"the control period of {self.env.step_dt:g} s",
        )

    def _compare(self, first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
        """Find what differs between two rollouts with the same seed."""
        if self.env.device.type == "cuda":
            self.report.notes.append("resets are not compared on a GPU, whose sums may differ")
            return
        events = self.env.event_manager
        lasting = []
        for names in events.active_terms.values():
            for name in names:
                term = events.get_term_cfg(name)
                if term.is_global_time or term.min_step_count_between_reset > 0:
                    lasting.append(name)
        if lasting:
            self.report.notes.append(
                f"resets are not compared: the timers of the events {lasting} continue through them"
            )
            return
        differ = {key for key in first if not _same(first[key], second.get(key))}
        state = sorted(key for key in differ if key.startswith("sim."))
        for key in state:
            self.find(
                key,
                "after a reset depends on the state before it",
                "let an event of mode 'reset' write it, from defaults, not from its current value",
            )
        if state:
            return
        for key in sorted(differ):
            self.find(
                key,
                "after a reset depends on the state before it",
                "give the class of the term a reset(env_ids) that clears its state",
            )

    def _judge_observation(self, watch: _Watch) -> None:
        if isinstance(watch.func, AbsentValues | PresentColumns):
            return  # constants of a bucket
        if not watch.finite:
            self.find(
                watch.where,
                "is not finite",
                "look for a division by zero or a root of a negative number",
            )
        elif watch.low == watch.high:
            self.find(
                watch.where,
                f"is always {watch.low:g}, in all worlds",
                "remove it, or check that it names the right entity and elements",
            )
        elif max(-watch.low, watch.high) > _LARGE:
            self.find(
                watch.where,
                f"reaches {max(-watch.low, watch.high):.3g}",
                f"give it a scale or a clip: networks train poorly on values beyond {_LARGE:g}",
            )

    def _judge_reward(self, watch: _Watch, has_signal: bool) -> None:
        if not watch.finite:
            self.find(
                watch.where,
                "is not finite, and counts as zero there",
                "look for a division by zero or an overflow",
            )
        elif watch.low == watch.high == 0.0 and (watch.weight < 0.0 or has_signal):
            kind = "perhaps of a goal"
            if watch.weight < 0.0:
                kind = "a penalty"
            self.report.notes.append(
                f"{watch.where}, {kind}, is always 0 under random actions: check its parameters if "
                "they should cause it"
            )
        elif watch.low == watch.high and watch.weight > 0.0 and has_signal and watch.low > 0.0:
            self.report.notes.append(
                f"{watch.where}, perhaps a reward for staying alive, is always {watch.low:g} under "
                "random actions: nothing ended an episode"
            )
        elif watch.low == watch.high:
            self.find(
                watch.where,
                f"is always {watch.low:g}, in all worlds, under random actions",
                "check its parameters: a constant reward provides no learning signal",
            )

    def _judge_host_reads(self) -> None:
        if self.env.device.type != "cuda":
            self.report.notes.append("terms that synchronize with a GPU are only found on a GPU")
            return
        for watch in (*self.observations, *self.rewards, *self.terminations):
            if watch.reads_host:
                self.find(
                    watch.where,
                    "synchronizes the host with the GPU",
                    "replace .item(), .tolist(), nonzero() and `if tensor` by tensor operations",
                )


def _shared_by_commands(env: ManagerBasedRlEnv) -> Iterator[torch.Tensor]:
    """Yield what commands learn from earlier episodes, such as where robots fail."""
    for name in env.command_manager.active_terms:
        term = env.command_manager.get_term(name)
        for attribute in term.shared_attributes:
            value = getattr(term, attribute)
            if isinstance(value, torch.Tensor):
                yield value


def check_env(
    cfg: ManagerBasedRlEnvCfg,
    *,
    num_envs: int = 8,
    steps: int = 100,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> EnvReport:
    """Build a task with few worlds, run it with random actions, and look for common mistakes.

    It detects terms that cannot be built or have the wrong shape; observations that are not finite,
    constant or badly scaled; rewards that are not finite or constant, where those that are always
    zero are notes if they are penalties, or if another reward differs; episodes that end in their
    first step; sensors that no term reads; actuators of a model beside those of a config; resets
    after which a world still depends on its earlier state; and, on a GPU, terms that synchronize
    the host with the device. Warnings of the build, such as of actions without effect, are notes,
    and so are selections of class terms that do not declare which kinds of elements they read.

    Args:
        cfg: the task; it is copied. Each of its buckets is checked, if it has some.
        num_envs: number of worlds.
        steps: number of control steps.
        seed: seed of the task and of the actions. The global random generators are seeded with it.
        device: torch device; None selects CUDA if it is available, else the CPU.
    """
    report = EnvReport()
    if cfg.scene.buckets:
        for name, part in separate_cfgs(cfg, num_envs).items():
            found = check_env(part, num_envs=num_envs, steps=steps, seed=seed, device=device)
            for finding in found.findings:
                where = f"{finding.where} of bucket '{name}'"
                report.findings.append(dataclasses.replace(finding, where=where))
            report.notes += [note for note in found.notes if note not in report.notes]
        return report
    cfg = copy.deepcopy(cfg)
    cfg.scene.num_envs = num_envs
    cfg.seed = seed
    cfg.auto_reset = True
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            env = ManagerBasedRlEnv(cfg, device)
        doubts: dict[str, None] = {}
        for warning in caught:
            message = warning.message
            if isinstance(message, SecondActuatorsWarning):
                report.findings.append(Finding(message.where, message.problem, message.remedy))
            elif isinstance(message, UserWarning):
                doubts[str(message)] = None
        report.notes += doubts
        report.notes += _unchecked_selections(cfg)
        with torch.inference_mode():
            _Checker(env, seed, report).run(steps)
    except Exception as error:  # any error of a user's term is a finding
        notes = " ".join([str(error), *getattr(error, "__notes__", ())])
        report.findings.append(
            Finding("the task", f"raises {type(error).__name__}", " ".join(notes.split()))
        )
        return report
    if not cfg.rewards or not any(cfg.terminations.values()):
        report.notes.append("without rewards or terminations there is nothing to learn from")
    env.close()
    return report


def _unchecked_selections(cfg: ManagerBasedRlEnvCfg) -> Iterator[str]:
    """Yield a note for each class term whose selection is not checked for a wrong kind."""
    groups: dict[str, Mapping[str, Any]] = {
        "reward": cfg.rewards,
        "termination": cfg.terminations,
        "event": cfg.events,
        "metric": cfg.metrics,
        "curriculum": cfg.curriculum,
    }
    for group, observations in cfg.observations.items():
        if observations is not None:
            groups[f"observation of {group}"] = observations.terms
    for kind, terms in groups.items():
        for name, term in terms.items():
            if term is None or not inspect.isclass(term.func):
                continue
            for parameter, value in term.params.items():
                if not isinstance(value, SceneEntityCfg):
                    continue
                given = sorted(each for each in SELECTED_KINDS if value.is_given(each))
                if given and read_kinds(term.func, parameter) is None:
                    kinds = ", ".join(map(repr, given))
                    yield (
                        f"{kind} '{name}': {term.func.__name__} declares no `selects`, so that a "
                        f"selection in '{parameter}' that it does not read passes unnoticed. If it "
                        f"reads these, write selects = frozenset({{{kinds}}}) in its class."
                    )


def _watch_sensors(env: ManagerBasedRlEnv) -> set[str]:
    """Record reads of the scene's own sensors; return the names of those that are not read."""
    unread: set[str] = set()

    def watch(sensor: Any, name: str) -> None:
        cls = type(sensor)

        def data(self: Any) -> Any:
            unread.discard(name)
            return cls.data.fget(self)

        sensor.__class__ = type(cls.__name__, (cls,), {"data": property(data)})

    for cfg in env.cfg.scene.sensors:
        unread.add(cfg.name)
        watch(env.scene[cfg.name], cfg.name)
    return unread


def _clip_and_scale(cfg: ObservationTermCfg, value: torch.Tensor) -> torch.Tensor:
    """Return values of a term as the policy sees them."""
    value = value.detach()
    if cfg.clip is not None:
        value = value.clamp(*cfg.clip)
    if cfg.scale is not None:
        value = value * torch.as_tensor(cfg.scale, device=value.device)
    return value


def _same(first: torch.Tensor, second: torch.Tensor | None) -> bool:
    if second is None or first.shape != second.shape:
        return False
    if not first.is_floating_point():
        return torch.equal(first, second)
    return torch.equal(first.nan_to_num(nan=12345.0), second.nan_to_num(nan=12345.0))
