"""Values of terms that change while an environment runs."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.envs.config_checks import check_ranges
from manyworlds.utils.state import Stateful

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv
    from manyworlds.managers import EventTermCfg
    from manyworlds.managers.manager_base import ManagerBase

Undo = Callable[[], None]
"""Takes a change back."""
_FIXED = {"func", "mode", "entity_name", "class_type"}


def put_value(env: ManagerBasedRlEnv, path: str, value: object) -> Undo:
    """Set a value of a term in a running environment.

    Args:
        env: the environment, between two control steps.
        path: path as in the task's configuration, such as `rewards.upright.weight`.
        value: the value; lists stand for tuples.

    Returns:
        A function that takes the change back.

    Raises:
        ValueError: there is no such value, it has another type, a curriculum sets it, or the term
            refuses it; then nothing has changed.
    """
    group, name, keys = _split(env, path)
    term = _managers(env)[group].get_term_cfg(name)
    owner = _curriculum_of(env, name, keys)
    if owner:
        raise ValueError(
            f"the curriculum '{owner}' sets it at each reset: change a value of "
            f"'curriculum.{owner}.params' instead."
        )
    changed = _with(term, keys, value, path)
    if group == "events":
        if isinstance(changed.func, Stateful):  # an instance, to be built again from its class
            changed = dataclasses.replace(changed, func=type(changed.func))
        return put_event(env, name, changed)
    if group == "commands":
        return _put_command(env, name, changed)
    return _put_term(env, group, name, changed, keys)


def put_event(env: ManagerBasedRlEnv, name: str, cfg: EventTermCfg) -> Undo:
    """Add an event to a running environment, or replace one; see `EventManager.with_term`.

    Returns:
        A function that takes the change back.

    Raises:
        Exception: the event is wrong; then nothing has changed.
    """
    before = env.event_manager
    env.use_events(before.with_term(name, cfg))
    env.setup_manager_visualizers()

    def undo() -> None:
        env.use_events(before)
        env.setup_manager_visualizers()

    return undo


def _managers(env: ManagerBasedRlEnv) -> dict[str, ManagerBase[Any]]:
    return {
        "rewards": env.reward_manager,
        "terminations": env.termination_manager,
        "curriculum": env.curriculum_manager,
        "events": env.event_manager,
        "commands": env.command_manager,
    }


def _split(env: ManagerBasedRlEnv, path: str) -> tuple[str, str, list[str]]:
    """Return the group, the name of the term, and the keys below it."""
    group, _, rest = path.partition(".")
    name, _, keys = rest.partition(".")
    managers = _managers(env)
    if group not in managers or not name or not keys:
        raise ValueError(
            f"'{path}' is no path of a value: begin with {', '.join(managers)}, as in "
            "'rewards.upright.weight'."
        )
    known = list(managers[group].active_terms)
    if group == "events":  # by mode
        known = [event for events in env.event_manager.active_terms.values() for event in events]
    if name not in known:
        raise ValueError(f"{group} has no term '{name}': it has {', '.join(known) or 'none'}.")
    if keys.split(".")[0] in _FIXED:
        raise ValueError(f"'{path}' is fixed when the environment is built: change another value.")
    return group, name, keys.split(".")


def _child(owner: Any, key: str, path: str) -> Any:
    if isinstance(owner, Mapping):
        found = {str(known): item for known, item in owner.items()}
    elif dataclasses.is_dataclass(owner):
        found = {f.name: getattr(owner, f.name) for f in dataclasses.fields(owner)}
    elif isinstance(owner, list | tuple):
        found = {str(i): item for i, item in enumerate(owner)}
    else:
        found = {}
    if key not in found:
        raise ValueError(
            f"'{path}' does not exist: at '{key}' there is "
            f"{', '.join(found) or 'no further value'}."
        )
    return found[key]


def _with(owner: Any, keys: list[str], value: object, path: str) -> Any:
    """Return a copy of a config, dict or tuple with a new value in it; parts are not shared."""
    if not keys:
        return _like(owner, value, path)
    key = keys[0]
    rest = keys[1:]
    new = _with(_child(owner, key, path), rest, value, path)
    if isinstance(owner, Mapping):
        [known] = [known for known in owner if str(known) == key]
        return {**owner, known: new}
    if isinstance(owner, list | tuple):
        items = list(owner)
        items[int(key)] = new
        return type(owner)(items)
    changed = copy.copy(owner)
    setattr(changed, key, new)
    return changed


def _like(old: object, new: object, path: str) -> object:
    """Return a new value in the form of the old one.

    Raises:
        ValueError: it has another type, or is not finite.
    """
    number = isinstance(new, int | float) and not isinstance(new, bool)
    if isinstance(old, bool | str):
        if type(new) is type(old):
            return new
    elif isinstance(old, int | float):
        if number and math.isfinite(float(new)):  # type: ignore[arg-type]
            return new
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        if old and all(isinstance(stage, Mapping) for stage in (*old, *new)):
            known = {key: item for stage in old for key, item in stage.items()}
            stages = [{k: known[k] for k in stage if k in known} for stage in new]
            return type(old)(_like(o, n, path) for o, n in zip(stages, new, strict=True))
        if len(new) == len(old):
            return type(old)(_like(o, n, path) for o, n in zip(old, new, strict=True))
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        known = {str(key): key for key in old}
        if set(map(str, new)) == set(known):
            return {known[str(k)]: _like(old[known[str(k)]], v, path) for k, v in new.items()}
    elif old is None and isinstance(new, list):
        return tuple(new)
    elif old is None and (new is None or number or isinstance(new, str | tuple)):
        return new
    raise ValueError(
        f"'{path}' is {old!r}, which {new!r} cannot replace: give a finite value of the same form."
    )


def _curriculum_of(env: ManagerBasedRlEnv, name: str, keys: list[str]) -> str:
    """Return the curriculum whose stages set a value, if there is one."""
    manager = env.curriculum_manager
    for curriculum in manager.active_terms:
        params = manager.get_term_cfg(curriculum).params
        if name not in [value for value in params.values() if isinstance(value, str)]:
            continue
        for stage in stages_of(params):
            if {*stage, *stage.get("params", ())} & set(keys):
                return curriculum
    return ""


def stages_of(params: Mapping[str, object]) -> list[dict]:
    """Return the stages among the parameters of a curriculum."""
    lists = [value for value in params.values() if isinstance(value, list | tuple)]
    return [stage for stages in lists for stage in stages if isinstance(stage, dict)]


def _put_term(env: ManagerBasedRlEnv, group: str, name: str, changed: Any, keys: list[str]) -> Undo:
    """Replace the values of a reward, a termination or a curriculum term."""
    manager = _managers(env)[group]
    term = manager.get_term_cfg(name)
    func = term.func
    before = dict(vars(term))
    new_func = func
    if isinstance(func, Stateful) and keys[0] == "params":
        fresh = dataclasses.replace(changed, func=type(func), params=copy.deepcopy(changed.params))
        _draw_as(env, manager, name)
        built: Any = type(func)
        new_func = built(cfg=fresh, env=env)
        if hasattr(new_func, "continue_from"):
            new_func.continue_from(func)
        new_func.load_state_dict(func.state_dict())
        changed = dataclasses.replace(fresh, func=new_func)

    def put(values: dict[str, object], call: object) -> None:
        vars(term).update(values)
        if name in manager._class_terms:
            manager._class_terms[name] = call

    put(vars(changed), new_func)
    try:
        if group != "curriculum" and getattr(term, "weight", 1.0) != 0.0:
            if new_func is not func or inspect.isroutine(func):
                _draw_as(env, manager, name)
                _try(env, name, term)
            if isinstance(func, Stateful) and new_func is not func:
                new_func.load_state_dict(func.state_dict())  # as before it was tried
    except BaseException:
        put(before, func)
        raise
    return lambda: put(before, func)


def _draw_as(env: ManagerBasedRlEnv, manager: ManagerBase[Any], name: str) -> None:
    """Let `env.random` be the stream of a term, which is built or called next."""
    env.random = env.random_streams.stream(f"{manager.kind}/{name}")


def _try(env: ManagerBasedRlEnv, name: str, term: Any) -> None:
    """Call a term once, so that wrong parameters are refused now."""
    value = term.func(env, **term.params)
    if not isinstance(value, torch.Tensor) or value.shape != (env.num_envs,):
        raise ValueError(f"the term '{name}' does not return one value per world.")
    if not torch.isfinite(value).all():
        raise ValueError(f"the term '{name}' then returns values that are not finite.")


def _put_command(env: ManagerBasedRlEnv, name: str, changed: Any) -> Undo:
    """Build a command term again with its new values, and continue with its state."""
    term: Any = env.command_manager.get_term(name)
    before = vars(term).copy()
    check_ranges(f"commands.{name}", changed)
    if hasattr(changed, "validate"):
        changed.validate()
    _draw_as(env, env.command_manager, name)
    built = copy.deepcopy(changed).build(env)
    built.load_state_dict(term.state_dict())
    built.cfg = changed  # a saved state may have brought back former ranges
    vars(term).update(vars(built))

    def undo() -> None:
        vars(term).clear()
        vars(term).update(before)

    return undo
