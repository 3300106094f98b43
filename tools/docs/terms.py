"""Tables of the shipped terms of managers, from their signatures and docstrings.

A page in `docs/managers` has its table between `<!-- terms -->` and `<!-- end of terms -->`.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = Path("docs/managers")
RANDOMIZATION = Path("docs/randomization_functions.md")
BEGIN, END = "<!-- terms -->", "<!-- end of terms -->"

# Packages with terms, in the order of the tables, and what they are for.
PACKAGES = {
    "manyworlds.envs.mdp": "any task",
    "manyworlds.tasks.velocity.mdp": "walking at a commanded velocity",
    "manyworlds.tasks.tracking.mdp": "tracking of motions",
    "manyworlds.tasks.manipulation.mdp": "lifting",
    "manyworlds.tasks.push.mdp": "pushing",
    "manyworlds.tasks.cartpole.cartpole_env_cfg": "the cartpole",
    "manyworlds.tasks.reach.reach_env_cfg": "reaching, the template of `new-task`",
}
# Functions of these packages that compute something for terms, and are none themselves.
HELPERS = {
    "commanded_speed",
    "distance",
    "env_cfg",
    "fit_terrain_normal",
    "from_goal_frame",
    "goal_axis",
    "goal_distance",
    "in_goal_frame",
    "lifting_command",
    "motion_command",
    "resolve_env_ids",
    "site_position",
    "start_state_rates",
    "terrain_normal_from_sensors",
    "to_goal",
    "way_behind",
}
# Kinds of terms whose module does not tell their manager.
KINDS = {
    "reset_to_start_states": "events",
    "reset_joints": "events",
    "at_startup": "events",
}
MANAGERS = {
    "actions": "actions",
    "commands": "commands",
    "observations": "observations",
    "rewards": "rewards",
    "terminations": "terminations",
    "events": "events",
    "curriculum": "curriculums",
    "metrics": "metrics",
    "recorders": "recorders",
}
"""Page of each manager, by the name of its field in an environment's config."""
Term = Callable[..., object]


def tables() -> dict[Path, str]:
    """Return the content of each page of a manager, with its present table."""
    found = all_terms()
    pages = {}
    for page in MANAGERS.values():
        path = FOLDER / f"{page}.md"
        head, _, rest = path.read_text().partition(BEGIN)
        tail = rest.partition(END)[2]
        pages[path] = f"{head}{BEGIN}\n\n{table(found.get(page, []))}\n{END}{tail}"
    return pages | {RANDOMIZATION: randomization_page()}


def all_terms() -> dict[str, list[Term]]:
    """Return the terms of each page, by package and name."""
    used = dict(_used_terms())
    found: dict[str, dict[tuple[int, str], Term]] = {}
    for order, package in enumerate(PACKAGES):
        for name, term in _members(package):
            kind = KINDS.get(name) or used.get(term) or _kind_of_module(term)
            if kind is not None:
                found.setdefault(kind, {}).setdefault((order, name), term)
    return {kind: [terms[key] for key in sorted(terms)] for kind, terms in found.items()}


def unlisted() -> list[str]:
    """Return the public functions and classes that look like terms and are in no table."""
    listed = {term for terms in all_terms().values() for term in terms}
    return [
        f"{term.__module__}.{name}"
        for package in PACKAGES
        for name, term in _members(package)
        if term not in listed and name not in HELPERS and _looks_like_a_term(term)
    ]


def _members(package: str) -> Iterator[tuple[str, Term]]:
    """Yield public functions and classes that are defined in a package."""
    module = importlib.import_module(package)
    modules = [module]
    if hasattr(module, "__path__"):
        names = sorted(path.stem for path in Path(module.__path__[0]).glob("[!_]*.py"))
        modules = [importlib.import_module(f"{package}.{name}") for name in names]
        if package == "manyworlds.envs.mdp":
            modules += [importlib.import_module(f"{package}.actions.{n}") for n in _ACTION_FILES]
    for part in modules:
        for name, value in sorted(vars(part).items()):
            here = getattr(value, "__module__", "") == part.__name__
            if here and not name.startswith("_") and callable(value):
                yield name, value


_ACTION_FILES = ("actions", "differential_ik")


def _used_terms() -> Iterator[tuple[Term, str]]:
    """Yield the terms that shipped tasks use, and the page of their manager."""
    from manyworlds.tasks import list_tasks, load_env_cfg

    for task in list_tasks():
        try:
            cfg = load_env_cfg(task)
        except FileNotFoundError:  # a robot that is not here
            continue
        for field, page in MANAGERS.items():
            for term in (getattr(cfg, field) or {}).values():
                for part in getattr(term, "terms", {"": term}).values():
                    if part is not None:
                        yield getattr(part, "func", type(part)), page


def _kind_of_module(term: Term) -> str | None:
    """Return the page of terms whose module is named for their manager."""
    module = term.__module__.rpartition(".")[2]
    module = {"velocity_command": "commands", "differential_ik": "actions"}.get(module, module)
    name = term.__name__
    if name in HELPERS or module not in MANAGERS.values() or not _looks_like_a_term(term):
        return None
    return module


def _looks_like_a_term(term: Term) -> bool:
    """Return True for classes of terms or their configs, and for functions of an environment."""
    from manyworlds.managers import (
        ActionTerm,
        ActionTermCfg,
        CommandTerm,
        CommandTermCfg,
        ManagerTermBase,
    )

    if inspect.isclass(term):
        if inspect.isabstract(term) or issubclass(term, ActionTerm | CommandTerm):
            return False
        return issubclass(term, ActionTermCfg | CommandTermCfg | ManagerTermBase)
    return [*inspect.signature(term).parameters][:1] == ["env"]


def table(terms: list[Term]) -> str:
    """Return a table of terms for each package."""
    parts = []
    for package, purpose in PACKAGES.items():
        own = [term for term in terms if f"{term.__module__}.".startswith(f"{package}.")]
        if own:
            parts.append(f"`{package}`, for {purpose}:\n")
            parts.append("| term | parameters | description |\n|---|---|---|")
            parts += [f"| `{t.__name__}` | {parameters(t)} | {summary(t)} |" for t in own]
            parts.append("")
    return "\n".join(parts)


def parameters(term: Term) -> str:
    """Return the names of a term's parameters, with their defaults if these are short."""
    if inspect.isclass(term) and dataclasses.is_dataclass(term):
        given = [(f.name, f.default) for f in dataclasses.fields(term)]
        base = {"entity_name", "clip", "resampling_time_range", "debug_vis"}
        given = [(name, value) for name, value in given if name not in base]
        missing: object = dataclasses.MISSING
    else:
        function = term.__call__ if inspect.isclass(term) else term
        found = inspect.signature(function).parameters.values()
        hidden = {"self", "env", "env_ids"}
        given = [
            (p.name, p.default)
            for p in found
            if p.name not in hidden and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        missing = inspect.Parameter.empty
    return ", ".join(_parameter(name, value, missing) for name, value in given)


def _parameter(name: str, value: object, missing: object) -> str:
    plain = isinstance(value, int | float | str | bool | tuple) or value is None
    if value is missing or not plain or len(repr(value)) > 24:
        return f"`{name}`"
    return f"`{name}={value!r}`"


def summary(term: Term) -> str:
    """Return the first paragraph of a docstring on one line, for a cell of a table."""
    text = (inspect.getdoc(term) or "").partition("\n\n")[0]
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def randomization_page() -> str:
    """Return the page with all functions of domain randomization."""
    from manyworlds.envs.mdp import dr

    functions: dict[Term, list[str]] = {}
    for name in dr.__all__:
        value = getattr(dr, name)
        if hasattr(value, "recompute") or name in ("encoder_bias", "sync_actuator_delays"):
            functions.setdefault(value, []).append(name)
    rows = []
    for function, names in functions.items():
        model = ", ".join(f"`{field}`" for field in getattr(function, "model_fields", ()))
        first = "`, `".join(names)
        rows.append(f"| `{first}` | {model} | {parameters(function)} | {summary(function)} |")
    return (
        "# Functions of domain randomization\n\nEvent functions that draw values for each world, "
        "made by `python -m tools.docs` of\n`manyworlds.envs.mdp.dr`. [Domain randomization]"
        "(domain_randomization.md) explains the\nparameters. Names in one cell are aliases.\n\n"
        "| function | fields of the model | parameters | description |\n|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )
