"""Tables of the shipped terms of managers, from their signatures and docstrings.

A page in `docs/managers` has its table between `<!-- terms -->` and `<!-- end of terms -->`.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from manyworlds.managers import RecorderTerm

FOLDER = Path("docs/managers")
RANDOMIZATION = Path("docs/randomization_functions.md")
BEGIN, END = "<!-- terms -->", "<!-- end of terms -->"
LEGEND = "A parameter without `=` must be given; `=...` stands for a default that is longer."

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
# What these packages have for terms, and what is none itself.
HELPERS = {
    "AbsentActionCfg",
    "AbsentValues",
    "BaseActionCfg",
    "PresentColumns",
    "action_acc",
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
    parts = [f"{LEGEND}\n"]
    for package, purpose in PACKAGES.items():
        own = [term for term in terms if f"{term.__module__}.".startswith(f"{package}.")]
        if own:
            parts.append(f"`{package}`, for {purpose}:\n")
            parts.append("| term | parameters | description |\n|---|---|---|")
            parts += [f"| `{t.__name__}` | {parameters(t)} | {summary(t)} |" for t in own]
            parts.append("")
    return "\n".join(parts)


def parameters(term: Term) -> str:
    """Return the names of a term's parameters: those that must be given, then those with defaults.

    A default that is too long for a table is written as three dots.
    """
    return ", ".join(sorted(_parameters(term), key=lambda shown: "=" in shown))


def _parameters(term: Term) -> list[str]:
    """Return the parameters in the order of the code, with defaults as code writes them."""
    if inspect.isclass(term) and dataclasses.is_dataclass(term):
        hidden = {"transmission_type"}  # the class gives it
        fields = [field for field in dataclasses.fields(term) if field.name not in hidden]
        return [_parameter(field.name, _default(field)) for field in fields]
    if inspect.isclass(term) and issubclass(term, RecorderTerm):  # which is not called
        return _described_parameters(term)
    function = term.__call__ if inspect.isclass(term) else term
    hidden = {"self", "env", "env_ids", "args", "kwargs"}
    return [
        _parameter(found.name, found.default)
        for found in inspect.signature(function).parameters.values()
        if found.name not in hidden
    ]


def _default(field: dataclasses.Field[object]) -> object:
    """Return the default of a field, or `inspect.Parameter.empty`."""
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return ...
    return inspect.Parameter.empty


def _described_parameters(term: type) -> list[str]:
    """Return the parameters that a docstring lists, as for terms that are not called."""
    text = (inspect.getdoc(term) or "").partition("Params:\n")[2]
    shown = []
    for name, described in re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", text, re.MULTILINE):
        default = re.search(r'Default: ("\w*"|\w+)', described)
        value = ast.literal_eval(default[1]) if default else inspect.Parameter.empty
        shown.append(_parameter(name, value))
    return shown


def _parameter(name: str, value: object) -> str:
    if value is inspect.Parameter.empty:
        return f"`{name}`"
    plain = isinstance(value, int | float | str | bool | tuple) or value is None
    text = repr(value) if plain else ""
    if not plain or len(text) > 24:
        text = "..."
    return f"`{name}={text}`"


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
        "# Functions of domain randomization\n\nEvent functions of "
        "`manyworlds.envs.mdp.dr` that draw values for each world. [Domain randomization]"
        "(domain_randomization.md) explains the\nparameters. Names in one cell are aliases. "
        f"{LEGEND}\n\n"
        "| function | fields of the model | parameters | description |\n|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )
