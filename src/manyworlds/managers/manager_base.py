"""Base classes of managers and terms: copying configs, resolving entities and calling terms."""

from __future__ import annotations

import copy
import inspect
import reprlib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

import torch

from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.managers.selection_reads import check_selection
from manyworlds.utils.declared import declared
from manyworlds.utils.state import Stateful
from manyworlds.utils.table import render_table
from manyworlds.utils.world_random import RandomStream
from manyworlds.validation.names import near_matches
from manyworlds.validation.rules import RULES, refuse
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.step_segments import Segments
    from manyworlds.utils.debug_visualizer import DebugVisualizer, Drawable

_SHORT = reprlib.Repr()
_SHORT.maxdict = 12
_SHORT.maxother = 200
_SHORT.maxstring = 200


class MissingElementsError(ValueError):
    """Error of a term that selects what the scene does not have."""


class TensorFunc(Protocol):
    """Function that computes a tensor for all worlds: `func(env, **params)`."""

    def __call__(self, env: ManagerBasedRlEnv, /, *args: Any, **params: Any) -> torch.Tensor:
        """Return one row per world, shape [num_envs, ...]."""
        ...


class EventFunc(Protocol):
    """Function that changes worlds: `func(env, env_ids, **params)`."""

    def __call__(
        self, env: ManagerBasedRlEnv, env_ids: Any, /, *args: Any, **params: Any
    ) -> object:
        """Change the given worlds; None for all."""
        ...


TensorTerm = TensorFunc | Callable[..., TensorFunc]
"""Function, or class whose instances are called like one."""
EventTerm = EventFunc | Callable[..., EventFunc]
"""Function, or class whose instances are called like one."""


FuncT = TypeVar("FuncT", bound=Callable[..., Any])


@dataclass
class ManagerTermBaseCfg(Generic[FuncT]):
    """Base configuration of a term: a function of the environment with parameters."""

    func: FuncT
    """Function called as `func(env, **params)`; a class is first instantiated with `cfg=` and
    `env=`."""
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments; every `SceneEntityCfg` among them is resolved against the scene."""
    optional: bool = field(default=False, kw_only=True)
    """Leave the term out where the scene lacks what the parameters select: an entity, elements of
    it, or the sensor `sensor_name`."""


CfgT = TypeVar("CfgT", bound=ManagerTermBaseCfg)
TermT = TypeVar("TermT")
BuiltT_co = TypeVar("BuiltT_co", covariant=True)
TermTable = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""Title, columns and rows of a table of terms."""


class _OfEnv(Stateful):
    """Object that belongs to an environment."""

    num_envs: int = declared()
    """Number of worlds."""
    device: torch.device = declared()
    """Device of the tensors."""

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self._env = env
        self.num_envs = env.num_envs
        self.device = env.device

    def _worlds(self, env_ids: EnvIds) -> Worlds:
        if isinstance(env_ids, Worlds):
            return env_ids
        return Worlds(env_ids, self.num_envs, self.device)


class ManagerTermBase(_OfEnv):
    """Base class of terms that keep state between calls."""

    derived_attributes = ("cfg",)  # a curriculum that changes the config restores it
    selects: ClassVar[frozenset[str] | None] = None
    """Kinds of elements, such as "joint", that the term reads of its selections, so that others are
    refused; None accepts all. A subclass repeats those of its base."""

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self.random = env.random
        """Random numbers of the term, by world."""

    @property
    def name(self) -> str:
        """Name of the term's class."""
        return type(self).__name__

    @takes_worlds
    def reset(self, env_ids: torch.Tensor | None = None) -> Any:
        """Reset the state of the given worlds; None for all."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the term."""
        raise NotImplementedError


class ManagerBase(_OfEnv, Generic[CfgT]):
    """Base class of managers, each of which runs the terms of one kind.

    A subclass sets `_terms = self._prepare_all(cfg)`: the configuration is copied, and in the
    copy, terms that are None are left out, entities in parameters are resolved, and classes are
    instantiated.
    """

    _shown: ClassVar[tuple[str, ...]] = ()
    """Attributes of a term's config that `str()` includes."""
    # Curricula that change configs restore them.
    derived_attributes = ("_terms", "_streams", "capture")
    capture: Segments | None = None
    """Recorder of the running control step while it is captured, else None."""
    not_finite_status: ClassVar[str] = ""
    """Name under `Status/` of the number of worlds whose values are not finite; empty if the
    manager has no values."""
    not_finite_effect: ClassVar[str] = ""
    """What becomes of such values, in messages."""

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._functions: dict[str, Callable[..., object]] = {}
        self._class_terms: dict[str, Any] = {}
        self._terms: dict[str, CfgT] = {}
        self._streams: dict[str, RandomStream] = {}

    def __str__(self) -> str:
        """Return a table of the terms."""
        return "\n".join(render_table(*table) for table in self._tables())

    @property
    def kind(self) -> str:
        """Name of the manager, used in messages."""
        return type(self).__name__

    @property
    def active_terms(self) -> Any:
        """Names of the terms."""
        return list(self._terms)

    def get_term_cfg(self, term_name: str) -> CfgT:
        """Return the manager's own copy of a term's config.

        Raises:
            ValueError: the term does not exist.
        """
        if term_name not in self._terms:
            raise ValueError(self._missing(term_name, self._terms))
        return self._terms[term_name]

    def not_finite(self) -> torch.Tensor | None:
        """Return a mask of worlds with values that are not finite, shape [num_envs], if any may."""
        return None

    def not_finite_terms(self) -> dict[str, torch.Tensor]:
        """Return these masks by term."""
        return {}

    def nan_policy(self, term_name: str) -> str:
        """Return how values of a term that are not finite are handled."""
        return "warn"

    def get_active_iterable_terms(self, env_idx: int) -> Sequence[tuple[str, Sequence[float]]]:
        """Return the current values of each term in one world."""
        return []

    def get_visualizable_terms(self) -> list[tuple[str, Drawable]]:
        """Return the terms with a `debug_vis` method, by name."""
        return [
            (name, term) for name, term in self._class_terms.items() if hasattr(term, "debug_vis")
        ]

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw all terms in a viewer."""
        for _, term in self.get_visualizable_terms():
            term.debug_vis(visualizer)

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Reset the terms in given worlds; return values to log of their episodes, shape []."""
        if self._class_terms:
            worlds = self._worlds(env_ids)
            for name, term in self._class_terms.items():
                if hasattr(term, "reset"):
                    self._env.random = self._streams[name]
                    capture = self.capture
                    if capture is not None and capture.breaks_at(self.kind, name):
                        capture.call(_reset, term, worlds)
                    else:
                        term.reset(worlds.for_term(term.reset))
        return {}

    def saved_values(self) -> dict[str, object]:
        """Return the saved values of the manager, and its stateful terms."""
        return {**super().saved_values(), "terms": dict(self._stateful_terms())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned.

        Raises:
            ValueError: the saved state does not fit this manager.
        """
        terms = dict(self._stateful_terms())
        saved = state["terms"]
        if set(terms) != set(saved):
            raise ValueError(f"Saved {self.kind} has terms {[*saved]}, expected {[*terms]}.")
        super().load_state_dict(state)
        for name, term in terms.items():
            term.load_state_dict(saved[name])

    def state_parts(self) -> Iterator[tuple[str, object]]:
        """Yield the parts that `state_dict` saves, and all terms; see `Stateful.state_parts`."""
        yield from super().state_parts()
        for name, term in self.term_objects.items():
            yield f" term '{name}'", term

    @property
    def term_objects(self) -> dict[str, object]:
        """Functions and objects of the terms, by name; those of groups as 'group/name'."""
        return {**self._functions, **self._class_terms}

    def _stateful_terms(self) -> Iterator[tuple[str, Any]]:
        for name, term in self._class_terms.items():
            if hasattr(term, "state_dict"):
                yield name, term

    def _tables(self) -> Iterable[TermTable]:
        """Yield title, columns and rows of each table that `str()` includes."""
        rows = []
        for i, (name, term) in enumerate(self._terms.items()):
            function = getattr(term.func, "__name__", type(term.func).__name__)
            rows.append([i, name, function, *(getattr(term, key) for key in self._shown)])
        yield self.kind, ("index", "name", "function", *self._shown), rows

    def _prepare_all(self, cfg: Mapping[str, CfgT | None], group: str = "") -> dict[str, CfgT]:
        return {
            name: self._prepare(group + name, copy.deepcopy(term_cfg))
            for name, term_cfg in cfg.items()
            if term_cfg is not None and not (term_cfg.optional and self._lacks(term_cfg.params))
        }

    def _lacks(self, params: Mapping[str, object]) -> bool:
        """Return whether the scene lacks what parameters select."""
        scene = self._env.scene
        sensor = params.get("sensor_name")
        try:
            if isinstance(sensor, str):
                scene[sensor]
            for entity_cfg in entity_cfgs(dict(params)):
                copy.deepcopy(entity_cfg).resolve(scene)
        except (KeyError, ValueError):
            return True
        return False

    def _prepare(self, name: str, term_cfg: CfgT) -> CfgT:
        func = term_cfg.func
        if not callable(func):
            raise TypeError(f"{self.kind} term '{name}' needs a callable func, got {func}")
        for key, default in _default_entities(func):
            if key not in term_cfg.params and default.name in self._env.scene.entities:
                term_cfg.params[key] = copy.deepcopy(default)
        try:
            for entity_cfg in entity_cfgs(term_cfg.params):
                entity_cfg.resolve(self._env.scene)
            for key, value in term_cfg.params.items():
                if isinstance(value, SceneEntityCfg):
                    check_selection(func, key, value)
        except (KeyError, ValueError) as error:
            message = error.args[0] if error.args else error
            raise MissingElementsError(f"{self.kind} term '{name}': {message}") from None
        if inspect.isroutine(func):
            self._check_params(name, func, term_cfg.params)
        self._begin_stream(name)
        if inspect.isclass(func):
            try:
                term_cfg.func = cast("Callable[..., Any]", func)(cfg=term_cfg, env=self._env)
            except Exception as error:
                self._blame(error, name, term_cfg.params)
                raise
        if inspect.isroutine(term_cfg.func):
            self._functions[name] = term_cfg.func
        else:
            self._class_terms[name] = term_cfg.func
        return term_cfg

    def _check_params(
        self, name: str, func: Callable[..., object], params: Mapping[str, object]
    ) -> None:
        """Check that a function takes the environment and the parameters of its term.

        Raises:
            ValueError: it takes others.
        """
        try:
            signature = inspect.signature(func, follow_wrapped=False)
        except (TypeError, ValueError):  # of a function in C
            return
        known = [*signature.parameters.values()]
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
            return
        where = f"{self.kind} term '{name}': {func.__name__}{signature} {_place(func)}"
        for key in params:
            if key not in signature.parameters:
                names = [parameter.name for parameter in known]
                refuse(f"{where} has no parameter '{key}'.{near_matches(key, names)}")
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if not known or known[0].kind not in (*positional, inspect.Parameter.VAR_POSITIONAL):
            refuse(f"{where} must take the environment as its first argument.")

    def _begin_stream(self, name: str) -> None:
        """Let a term draw from a stream of its own, which `env.random` is during its calls."""
        self._streams[name] = self._env.random_streams.stream(f"{self.kind}/{name}")
        self._env.random = self._streams[name]

    def _call(self, name: str, term_cfg: ManagerTermBaseCfg, *args: object) -> Any:
        """Call a term; errors name the manager and the term."""
        capture = self.capture
        if capture is not None and capture.breaks_at(self.kind, name):
            return capture.call(self._call, name, term_cfg, *args)
        self._env.random = self._streams[name]
        try:
            return term_cfg.func(self._env, *args, **term_cfg.params)
        except Exception as error:
            self._blame(error, name, term_cfg.params)
            raise

    def _call_per_world(self, name: str, term_cfg: ManagerTermBaseCfg) -> torch.Tensor:
        """Call a term that returns one value per world, shape [num_envs]; errors name the term."""
        value = self._call(name, term_cfg)
        if not isinstance(value, torch.Tensor) or value.shape != (self.num_envs,):
            raise ValueError(
                f"{self.kind} term '{name}' returned {shape_or_type(value)}, expected "
                f"({self.num_envs},): return one value per world."
            )
        return value

    def _blame(self, error: Exception, name: str, params: Mapping[str, object]) -> None:
        """Prepend the term to the error's message, and note the line of the term that raised it.

        If the message is not one string, the term is noted, too.
        """
        shown = " ".join(_SHORT.repr(params).split())
        where = f"{self.kind} term '{name}' with params {shown}"
        plain = type(error).__str__ in (BaseException.__str__, KeyError.__str__)
        if plain and len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (f"{where}: {error.args[0]}",)
        else:
            error.add_note(f"in {where}")
        error.__manyworlds_term__ = where  # type: ignore[attr-defined]
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename != __file__:  # the first frame outside this file: the term's
                error.add_note(f"({frame.filename}, line {frame.lineno})")
                break

    def _missing(self, name: str, terms: Iterable[str]) -> str:
        return f"{self.kind} has no term '{name}'. Available: {', '.join(terms) or 'none'}."


def _reset(term: ManagerTermBase, worlds: Worlds) -> None:
    term.reset(cast("Any", worlds.for_term(term.reset)))


def _place(func: Callable[..., object]) -> str:
    """Return file and line of a function, in brackets; empty for one without a source."""
    code = getattr(func, "__code__", None)
    if code is None:
        return ""
    return f"({code.co_filename}, line {code.co_firstlineno})"


class BuildsTerm(Protocol[BuiltT_co]):
    """Configuration that builds its term."""

    def build(self, env: ManagerBasedRlEnv, /) -> BuiltT_co:
        """Build the term."""
        ...


class BuiltTermManager(ManagerBase[Any], Generic[TermT]):
    """Manager of terms that are objects, each built by its configuration."""

    _class_terms: dict[str, TermT]

    def __init__(self, cfg: Mapping[str, BuildsTerm[TermT] | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._terms = self._class_terms
        for name, term_cfg in cfg.items():
            if term_cfg is None or _is_left_out(term_cfg, env):
                continue
            term_cfg = copy.deepcopy(term_cfg)
            self._begin_stream(name)
            try:
                self._class_terms[name] = term_cfg.build(env)
            except Exception as error:
                self._blame(error, name, vars(term_cfg))
                raise

    @property
    def active_terms(self) -> list[str]:
        """Names of the terms."""
        return list(self._class_terms)

    def get_term(self, name: str) -> TermT:
        """Return a term by name.

        Raises:
            ValueError: the term does not exist.
        """
        if name not in self._class_terms:
            raise ValueError(self._missing(name, self._class_terms))
        return self._class_terms[name]

    def get_term_cfg(self, name: str) -> Any:  # type: ignore[override]  # mjlab's parameter
        """Return the manager's own copy of a term's config.

        Raises:
            ValueError: the term does not exist.
        """
        term: Any = self.get_term(name)
        return term.cfg


def _is_left_out(cfg: Any, env: ManagerBasedRlEnv) -> bool:
    """Return whether a term is optional, and the scene lacks its entity."""
    if not getattr(cfg, "optional", False):
        return False
    entity = getattr(cfg, "entity_name", None)
    return entity is not None and entity not in env.scene.entities


def shape_or_type(value: object) -> tuple[int, ...] | str:
    """Return the shape of a tensor, or the name of another value's type, for messages."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    return type(value).__name__


def _default_entities(func: Callable[..., Any]) -> Iterator[tuple[str, SceneEntityCfg]]:
    """Yield the parameters of a term that default to a `SceneEntityCfg`, if these are added."""
    module = getattr(func, "__module__", None) or ""  # None in code that `exec` runs
    is_ours = module.partition(".")[0] == "manyworlds"
    if RULES[-1].keeps_params and not is_ours:
        return
    called = func
    if inspect.isclass(func):
        called = func.__call__
    try:
        parameters = inspect.signature(called).parameters
    except (TypeError, ValueError):  # a built-in without such defaults
        return
    for key, parameter in parameters.items():
        if isinstance(parameter.default, SceneEntityCfg):
            yield key, parameter.default


def entity_cfgs(value: object) -> Iterator[SceneEntityCfg]:
    """Yield every `SceneEntityCfg` in a value, including those in lists, tuples and dicts."""
    if isinstance(value, SceneEntityCfg):
        yield value
    elif isinstance(value, dict):
        yield from entity_cfgs(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from entity_cfgs(item)
