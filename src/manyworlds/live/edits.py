"""Edits of a running environment: values of terms, start states, disturbances, randomization.

An edit is plain data, so that it can be sent, stored and repeated. It is applied whole or not at
all. The state of an edited environment contains the edits (`EditLog`): a checkpoint restores them
before it restores the state of the terms.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch

from manyworlds.envs.mdp import dr
from manyworlds.live.user_events import StartState, repeat_push, start_from_states
from manyworlds.live.values import Undo, put_event, put_value
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.utils.seeding import rng_state, set_rng_state
from manyworlds.utils.state import Stateful

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv
    from manyworlds.managers.manager_base import EventFunc

EDITS = "edits"
"""Name of the edits in the state of an environment."""
START_STATES = "sent_start_states"
"""Name of the event that begins episodes in states that were sent back."""
_LONGEST_S = 600.0


@dataclass(frozen=True, kw_only=True)
class EnvironmentEdit(ABC):
    """Change of an environment that other episodes or all steps from now on see."""

    kind: ClassVar[str]

    @abstractmethod
    def apply(self, env: ManagerBasedRlEnv) -> Undo:
        """Change the environment; return a function that takes the change back.

        Raises:
            Exception: the edit is wrong; then nothing has changed.
        """

    @property
    @abstractmethod
    def text(self) -> str:
        """The edit in one line."""

    def plain(self) -> dict[str, object]:
        """Return the edit as plain data, as JSON has it."""
        return json.loads(json.dumps({"kind": self.kind, **asdict(self)}))


@dataclass(frozen=True, kw_only=True)
class SetValue(EnvironmentEdit):
    """Set a value of a term: a weight, a parameter, a range of commands, a stage of a curriculum.

    Ranges of an event of mode 'startup' hold from each world's next reset on.
    """

    kind: ClassVar[str] = "set"
    path: str
    """Path of the value as in the task's configuration, such as `rewards.upright.weight`."""
    value: Any
    """New value, of the type of the present one."""

    def apply(self, env: ManagerBasedRlEnv) -> Undo:
        """Set the value."""
        return put_value(env, self.path, self.value)

    @property
    def text(self) -> str:
        """The edit in one line."""
        return f"{self.path} = {self.value}"


@dataclass(frozen=True, kw_only=True)
class AddStartState(EnvironmentEdit):
    """Begin a share of the episodes in a recorded state, or in one of those sent before."""

    kind: ClassVar[str] = "start_state"
    state: StartState
    weight: float = 1.0
    """Frequency relative to the other recorded states."""
    share: float = 0.1
    """Share of the episodes that begin in a recorded state."""

    def apply(self, env: ManagerBasedRlEnv) -> Undo:
        """Add the state."""
        states: tuple[StartState, ...] = (self.state,)
        weights: tuple[float, ...] = (self.weight,)
        if START_STATES in env.event_manager.active_terms.get("reset", ()):
            known = env.event_manager.get_term_cfg(START_STATES).params
            states = (*known["states"], *states)
            weights = (*known["weights"], *weights)
        params = {"states": states, "weights": weights, "share": self.share}
        cfg = EventTermCfg(func=start_from_states, mode="reset", params=params)
        return put_event(env, START_STATES, cfg)

    @property
    def text(self) -> str:
        """The edit in one line."""
        return f"start state, weight {self.weight:g}, share of episodes {self.share:g}"


@dataclass(frozen=True, kw_only=True)
class RecordedPush:
    """Force and torque on a body for some time."""

    body: str
    """Body that is pushed, `entity/body`."""
    force: tuple[float, float, float]
    """Force in the world, at the body's center of mass [N]."""
    torque: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Torque in the world [N m]."""
    duration_s: float
    """Duration of the push [s]."""

    @property
    def asset_cfg(self) -> SceneEntityCfg:
        """The body as the parameter of a term."""
        entity, _, body = self.body.partition("/")
        return SceneEntityCfg(entity, body_names=(body,))

    @property
    def text(self) -> str:
        """The push in one line."""
        force = ", ".join(f"{part:.4g}" for part in self.force)
        return f"({force}) N on {self.body} for {self.duration_s:g} s"

    def check(self, env: ManagerBasedRlEnv) -> None:
        """Raise an error if an environment has no such body, or a number is out of range."""
        self.asset_cfg.resolve(env.scene)
        if not (self.duration_s > 0.0 and all(map(math.isfinite, (*self.force, *self.torque)))):
            raise ValueError(f"{self} has no positive duration, or a force that is not finite.")

    def steps(self, env: ManagerBasedRlEnv) -> int:
        """Return its duration in control steps, at least 1."""
        return max(1, round(self.duration_s / env.step_dt))

    def write(self, env: ManagerBasedRlEnv, env_ids: torch.Tensor, factor: float = 1.0) -> None:
        """Write the force and the torque, times a factor, to the body in some worlds."""
        chosen = self.asset_cfg
        chosen.resolve(env.scene)
        wrench = torch.tensor([self.force, self.torque], device=env.device) * factor
        force, torque = (part.expand(len(env_ids), 3) for part in wrench)
        env.scene.entity(chosen.name).write_external_wrench_to_sim(
            force, torque, env_ids, chosen.index("body")
        )


@dataclass(frozen=True, kw_only=True)
class AddDisturbance(RecordedPush, EnvironmentEdit):
    """Repeat a recorded push in all worlds, after random pauses."""

    kind: ClassVar[str] = "disturbance"
    name: str
    """Name of the event."""
    pause_s: tuple[float, float] = (2.0, 6.0)
    """Bounds of the pause before each push [s]."""
    scale: tuple[float, float] = (1.0, 1.0)
    """Bounds of the factor by which each push is multiplied."""
    any_direction: bool = False
    """Turn each push about the vertical by a random angle."""

    @staticmethod
    def of(
        push: RecordedPush,
        name: str,
        pause_s: tuple[float, float] = (2.0, 6.0),
        scale: tuple[float, float] = (1.0, 1.0),
        any_direction: bool = False,
    ) -> AddDisturbance:
        """Return the edit that repeats a push."""
        return AddDisturbance(
            **asdict(push), name=name, pause_s=pause_s, scale=scale, any_direction=any_direction
        )

    def apply(self, env: ManagerBasedRlEnv) -> Undo:
        """Add the event."""
        _check_name(env, self.name)
        params = {
            "force": self.force,
            "torque": self.torque,
            "duration_s": self.duration_s,
            "cooldown_s": self.pause_s,
            "scale_range": self.scale,
            "any_direction": self.any_direction,
            "asset_cfg": self.asset_cfg,
        }
        cfg = EventTermCfg(func=repeat_push, mode="step", params=params)
        return put_event(env, self.name, cfg)

    @property
    def text(self) -> str:
        """The edit in one line."""
        return f"disturbance {self.name}: {super().text}"


@dataclass(frozen=True, kw_only=True)
class AddRandomization(EnvironmentEdit):
    """Randomize model rows in each world, from its next reset on."""

    kind: ClassVar[str] = "randomization"
    name: str
    """Name of the event."""
    func: str
    """Function of `manyworlds.envs.mdp.dr`, such as `body_mass`."""
    params: Mapping[str, Any]
    """Its parameters; `asset_cfg` is a dict with `name` and names of elements."""

    def apply(self, env: ManagerBasedRlEnv) -> Undo:
        """Add the event."""
        _check_name(env, self.name)
        function = vars(dr).get(self.func)
        if self.func not in dr.__all__ or not hasattr(function, "model_fields"):
            raise ValueError(f"manyworlds.envs.mdp.dr has no randomization '{self.func}'.")
        params = {name: _tuples(value) for name, value in self.params.items()}
        entity = params.get("asset_cfg")
        if isinstance(entity, Mapping):
            params["asset_cfg"] = SceneEntityCfg(**entity)
        cfg = EventTermCfg(func=cast("EventFunc", function), mode="startup", params=params)
        return put_event(env, self.name, cfg)

    @property
    def text(self) -> str:
        """The edit in one line."""
        params = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return f"randomization {self.name}: {self.func}({params})"


@dataclass(frozen=True, kw_only=True)
class AddCase(EnvironmentEdit):
    """Test policies in a moment from now on, with or without a push; training does not change.

    It succeeds in a world if no termination ends the episode before its time.
    """

    kind: ClassVar[str] = "case"
    name: str
    """Name of the case."""
    state: StartState
    push: RecordedPush | None = None
    """Push with which the case begins."""
    seconds: float = 5.0
    """Duration of the case [s]."""

    def apply(self, env: ManagerBasedRlEnv) -> Undo:
        """Check the case."""
        applied = edit_log(env).applied
        known = [edit["name"] for edit in applied if edit["kind"] == self.kind]
        if not self.name or not isinstance(self.name, str):
            raise ValueError("a case needs a name.")
        if self.name in known:
            raise ValueError(f"there is a case '{self.name}' already: choose another name.")
        if not 0.0 < self.seconds <= _LONGEST_S:
            raise ValueError(f"a case lasts more than 0 and at most {_LONGEST_S:g} s.")
        problem = self.state.problem(env)
        if problem:
            raise ValueError(problem)
        if self.push is not None:
            self.push.check(env)
        return lambda: None

    @property
    def text(self) -> str:
        """The edit in one line."""
        if self.push is None:
            return f"case {self.name}"
        return f"case {self.name}, push on {self.push.body}"


_KINDS: dict[str, type[EnvironmentEdit]] = {
    cls.kind: cls for cls in (SetValue, AddStartState, AddDisturbance, AddRandomization, AddCase)
}


def edit_from_plain(plain: object) -> EnvironmentEdit:
    """Return the edit that `EnvironmentEdit.plain` described.

    Raises:
        ValueError: the data describes no edit.
    """
    values: dict[str, Any] = {}
    if isinstance(plain, Mapping):
        values = {name: _tuples(value) for name, value in plain.items()}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"There is no edit of kind '{kind}': choose from {', '.join(_KINDS)}.")
    cls = _KINDS[kind]
    try:
        if "state" in values:
            values["state"] = StartState(**values["state"])
        if values.get("push") is not None:
            values["push"] = RecordedPush(**values["push"])
        edit = cls(**values)
    except (TypeError, KeyError) as error:
        known = ", ".join(f.name for f in fields(cls))
        message = str(error)
        _, _, reason = message.partition("() ")  # without the name of the constructor
        raise ValueError(f"An edit '{kind}' has the fields {known}: {reason or message}.") from None
    _text(edit)
    return edit


class EditLog(Stateful):
    """Edits that were applied to an environment since its build; its state contains them.

    Args:
        env: the environment; `edit_log` returns its log.
    """

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self._env = env
        self.applied: list[dict[str, object]] = []
        """The edits as plain data, in their order."""
        env.attach_state(EDITS, self)

    def apply(self, edit: EnvironmentEdit) -> Undo:
        """Apply an edit between two control steps, or leave the environment as it is.

        Returns:
            A function that takes the edit back, if it is called before the next step.

        Raises:
            ValueError: the edit is refused; the message has the reason.
        """
        text = _text(edit)
        generators = rng_state()
        random = self._env.random
        streams = self._env.random_streams.state_dict()

        def forget_draws() -> None:
            set_rng_state(generators)
            self._env.random = random
            self._env.random_streams.go_back(streams)

        try:
            with torch.inference_mode(False), torch.no_grad():
                undo_term = edit.apply(self._env)
        except Exception as error:
            forget_draws()
            reason = type(error).__name__
            if error.args:
                reason = error.args[0]
            raise ValueError(f"The edit '{text}' is refused: {reason}") from error
        self.applied = [*self.applied, edit.plain()]

        def undo() -> None:
            undo_term()
            self.applied = self.applied[:-1]
            forget_draws()

        return undo

    def saved_values(self) -> dict[str, object]:
        """Return the edits; nothing if there are none, so that the state needs no log."""
        if not self.applied:
            return {}
        return {"applied": self.applied}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Apply the edits of a saved state that the environment does not have yet.

        Raises:
            ValueError: the environment has other edits than the state, or one is refused.
        """
        edits = edits_in({EDITS: state})
        have = len(self.applied)
        if edits[:have] != self.applied:
            raise ValueError(
                f"The environment has {have} edits, which are not the first ones of the saved "
                f"state's {len(edits)}: load the state into a new environment."
            )
        for plain in edits[have:]:
            self.apply(edit_from_plain(plain))


def edit_log(env: ManagerBasedRlEnv) -> EditLog:
    """Return the log of an environment's edits, which is attached to it by the first call."""
    log = env.attached_states.get(EDITS)
    if isinstance(log, EditLog):
        return log
    return EditLog(env)


def edits_in(state: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the edits in a saved state of an environment or of a world, as plain data."""
    saved = state.get(EDITS, [])
    if isinstance(saved, Mapping):
        saved = saved.get("applied", [])
    assert isinstance(saved, list)  # the state itself is one in checkpoints before `EditLog`
    return saved


def apply_edit(env: ManagerBasedRlEnv, edit: EnvironmentEdit) -> Undo:
    """Apply an edit between two control steps; see `EditLog.apply`."""
    return edit_log(env).apply(edit)


def _text(edit: EnvironmentEdit) -> str:
    """Return an edit in one line.

    Raises:
        ValueError: a value is of another type than its field.
    """
    try:
        return edit.text
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"A value of {edit} is of a wrong type: {error}.") from None


def _check_name(env: ManagerBasedRlEnv, name: str) -> None:
    """Refuse a name that is no identifier or has been taken."""
    if not name.isidentifier():
        raise ValueError(f"'{name}' is no valid name of an event: use letters, digits and '_'.")
    taken = [known for names in env.event_manager.active_terms.values() for known in names]
    if name in taken:
        raise ValueError(f"There is an event '{name}' already: choose another name.")


def _tuples(value: Any) -> Any:
    """Convert lists of JSON to tuples, and keys that are numbers to integers, as in configs."""
    if isinstance(value, list | tuple):
        return tuple(_tuples(item) for item in value)
    if not isinstance(value, Mapping):
        return value
    converted = {}
    for key, item in value.items():
        if isinstance(key, str) and key.isdecimal():  # column of a field
            key = int(key)
        converted[key] = _tuples(item)
    return converted
