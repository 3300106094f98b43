"""Kinds of elements that a term reads of a selection, so that others are refused.

A term that reads no joints of its `asset_cfg` would count all joints, whatever `joint_names` says.
A function may declare the kinds in its attribute `selects`, as those of `dr` do. Otherwise its
source tells: `asset_cfg.joint_ids`, `asset_cfg.joint_names` and `asset_cfg.index("joint")` read
joints. Selections are followed through assignments, and into functions that they are passed to.
Where one goes elsewhere, nothing is known, and every selection is accepted.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manyworlds.managers.scene_entity_config import SELECTED_KINDS, SceneEntityCfg
from manyworlds.utils.state import Stateful

_HARMLESS = {"name", "preserve_order", "is_resolved"}
_READS = {f"{kind}_{what}": kind for kind in SELECTED_KINDS for what in ("names", "ids")}
_TREES: weakref.WeakKeyDictionary[object, ast.stmt] = weakref.WeakKeyDictionary()
"""Source of functions and classes: environments of a task are built many times in a program."""
_PLAIN_MODULES = ("builtins", "abc", "manyworlds.managers.manager_base", Stateful.__module__)
"""Modules of base classes that read no selections."""


def check_selection(func: Callable[..., object], parameter: str, selection: SceneEntityCfg) -> None:
    """Refuse a selection of elements that a term is known not to read.

    Args:
        func: the function or class of the term.
        parameter: name of the parameter that has the selection.
        selection: the selection, resolved or not.

    Raises:
        ValueError: elements of a kind are given that the term does not read.
    """
    given = [kind for kind in SELECTED_KINDS if selection.is_given(kind)]
    if not given:
        return
    known = read_kinds(func, parameter)
    if known is None:
        return
    if "joint" in known and selection.joint_names:
        known |= {"ball_joint"}  # which `joint_names` match beside other joints
    for kind in given:
        if kind not in known:
            name = getattr(func, "__name__", type(func).__name__)
            names = getattr(selection, f"{kind}_names")
            what = f"{kind}_ids={getattr(selection, f'{kind}_ids')}"
            what = what if names is None else f"{kind}_names={names!r}"
            others = " or ".join(f"{other}_names" for other in SELECTED_KINDS if other in known)
            remedy = f"give {others} instead" if others else "leave it out"
            raise ValueError(
                f"{parameter} of '{selection.name}' gives {what}, but {name} reads no {kind} of "
                f"it, so that the selection would have no effect: {remedy}."
            )


def read_kinds(func: Callable[..., object], parameter: str) -> frozenset[str] | None:
    """Return the kinds of elements that a term reads of a selection; None if it is not known."""
    while isinstance(func, functools.partial):
        func = func.func
    if inspect.ismethod(func):
        func = func.__func__
    reader = _Reader()
    try:
        if inspect.isfunction(func):
            reader.read_function(func, parameter)
        else:
            reader.read_class(func if inspect.isclass(func) else type(func), parameter)
    except (_UnknownError, TypeError, ValueError):  # also of `inspect`
        return None
    return frozenset(reader.kinds)


class _UnknownError(Exception):
    """A selection goes where it cannot be followed."""


class _Reader:
    """Collects the kinds that functions read of a selection."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._seen: set[tuple[object, str]] = set()

    def read_function(self, func: Callable[..., object], parameter: str) -> None:
        """Collect what a function reads of the selection in a parameter."""
        declared = getattr(func, "selects", None)
        func = inspect.unwrap(func)
        if declared is not None:
            self.kinds.update(declared)
        elif (func, parameter) not in self._seen:
            if parameter not in inspect.signature(func).parameters:
                raise _UnknownError
            self._seen.add((func, parameter))
            _Body(self, [_parsed(func)], _names_of(func), parameter).read()

    def read_class(self, cls: type, parameter: str) -> None:
        """Collect what a class reads of the selection in a parameter of its calls."""
        calls = inspect.signature(cls.__call__).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in calls):
            raise _UnknownError
        bases = [base for base in cls.__mro__ if base.__module__ not in _PLAIN_MODULES]
        if not bases:
            raise _UnknownError
        names: dict[str, Any] = {}
        for base in reversed(bases):
            for member in vars(base).values():
                if inspect.isfunction(member):
                    names.update(_names_of(member))
        _Body(self, [_parsed(base) for base in bases], names, parameter, cls).read()


def _parsed(what: Any) -> ast.stmt:
    """Parse the source of a function or class, once."""
    statement = _TREES.get(what)
    if statement is None:
        try:
            statement = ast.parse(textwrap.dedent(inspect.getsource(what))).body[0]
        except (OSError, TypeError, SyntaxError):
            raise _UnknownError from None
        _TREES[what] = statement
    if not isinstance(statement, ast.FunctionDef | ast.ClassDef):  # the line of a lambda
        raise _UnknownError
    return statement


def _names_of(func: types.FunctionType) -> dict[str, Any]:
    """Return the global and enclosed names that a function sees, with their values."""
    cells = func.__closure__ or ()
    enclosed = {
        name: cell.cell_contents
        for name, cell in zip(func.__code__.co_freevars, cells, strict=True)
        if cell != types.CellType()  # empty: a name that is assigned later
    }
    return {**vars(builtins), **func.__globals__, **enclosed}


class _Body:
    """Source in which a selection is followed by the names of variables and attributes.

    Args:
        reader: takes the kinds that are read.
        trees: the source of a function, or of a class and its bases.
        names: values of global and enclosed names.
        parameter: name of the parameter that has the selection.
        cls: the class; None for a function.
    """

    def __init__(
        self,
        reader: _Reader,
        trees: Sequence[ast.stmt],
        names: Mapping[str, Any],
        parameter: str,
        cls: type | None = None,
    ) -> None:
        self._reader = reader
        self._names = names
        self._parameter = parameter
        self._cls = cls
        self._aliases = {parameter}
        """Names of variables and attributes that have the selection."""
        self._nodes = [node for tree in trees for node in ast.walk(tree)]
        self._parents = {c: node for node in self._nodes for c in ast.iter_child_nodes(node)}

    def read(self) -> None:
        """Collect the kinds that are read."""
        known = 0
        while known != len(self._aliases):  # until no new name has the selection
            known = len(self._aliases)
            for node in self._nodes:
                if self._is_selection(node):
                    self._use(node)
                elif self._cls is not None:
                    self._check_config(node)

    def _is_selection(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                return name in self._aliases
            case ast.Subscript(value=config, slice=ast.Constant(value=key)):
                return key == self._parameter and self._is_config(config)
            case ast.Call(
                func=ast.Attribute(value=config, attr="get"), args=[ast.Constant(value=key), *_]
            ):
                return key == self._parameter and self._is_config(config)
        return False

    def _is_config(self, node: ast.AST) -> bool:
        """Return True for the `params` of the config of a class's term."""
        match node:
            case ast.Name(id="params", ctx=ast.Load()) | ast.Attribute(attr="params"):
                return self._cls is not None
        return False

    def _use(self, node: Any) -> None:
        """Take account of one use of the selection."""
        parent = self._parents[node]
        match parent:
            case ast.Attribute(attr=name):
                self._read_attribute(name, self._parents[parent])
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]):
                self._aliases.add(name)
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                self._aliases.add(name)
            case ast.keyword():
                self._pass_on(self._parents[parent], parent.arg)
            case ast.Call(args=arguments) if node in arguments:
                self._pass_on(parent, [*arguments].index(node))
            case ast.Compare() | ast.FormattedValue() | ast.UnaryOp() | ast.If():
                pass
            case _:
                raise _UnknownError

    def _read_attribute(self, name: str, user: ast.AST) -> None:
        """Take account of an attribute of the selection that is read."""
        if name in _READS:
            self._reader.kinds.add(_READS[name])
        elif name == "index":
            match user:
                case ast.Call(args=[ast.Constant(value=kind)]) if kind in SELECTED_KINDS:
                    self._reader.kinds.add(kind)
                case _:
                    raise _UnknownError
        elif name not in _HARMLESS:
            raise _UnknownError

    def _pass_on(self, call: ast.AST, argument: int | str | None) -> None:
        """Follow the selection into a call, to an argument by position or name."""
        if not isinstance(call, ast.Call):
            raise _UnknownError
        callee = self._value(call.func)
        if callee is isinstance:
            return
        own = isinstance(call.func, ast.Attribute) and _is_self(call.func.value)
        if not inspect.isfunction(callee):
            raise _UnknownError
        parameters = [*inspect.signature(callee).parameters]
        if isinstance(argument, int):
            argument += own
            argument = parameters[argument] if argument < len(parameters) else None
        if argument not in parameters or any(isinstance(a, ast.Starred) for a in call.args):
            raise _UnknownError
        if own:
            self._aliases.add(argument)  # its source is part of the class's
        else:
            self._reader.read_function(callee, argument)

    def _value(self, expression: ast.expr) -> Any:
        """Return the value of a name, or of an attribute of a module or of the class."""
        match expression:
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if self._cls is not None:
                return inspect.getattr_static(self._cls, name, None)
            case ast.Attribute(value=owner, attr=name):
                module = self._value(owner)
                return getattr(module, name, None) if inspect.ismodule(module) else None
        return None

    def _check_config(self, node: ast.AST) -> None:
        """Refuse uses of a term's config from which nothing is known."""
        parent = self._parents.get(node)
        if self._is_config(node):
            match parent:
                case (
                    ast.Subscript(slice=ast.Constant()) | ast.Compare() | ast.Attribute(attr="get")
                ):
                    return
                case ast.Subscript(slice=ast.JoinedStr(values=[ast.Constant(value=start), *_])):
                    if not self._parameter.startswith(str(start)):
                        return
                case ast.Assign(targets=[ast.Name(id="params")]):
                    return
            raise _UnknownError
        if isinstance(node, ast.Name) and node.id == "cfg":
            called = ast.unparse(parent.func) if isinstance(parent, ast.Call) else ""
            if isinstance(parent, ast.Call | ast.keyword) and called != "super().__init__":
                raise _UnknownError


def _is_self(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Name) and expression.id == "self"
