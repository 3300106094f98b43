"""Kinds of elements that a term reads of a selection, so that others are refused.

A term that reads no joints of its `asset_cfg` would count all joints, whatever `joint_names` says.
A function or class may declare the kinds in its attribute `selects`, as those of `dr` do. The
kinds of other functions are found in their source: `asset_cfg.joint_ids`, `asset_cfg.joint_names`
and `asset_cfg.index("joint")` read joints, and a function that is called with the selection is
searched, too. If the selection is used in any other way, all selections are accepted.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
import weakref
from collections.abc import Callable

from manyworlds.managers.scene_entity_config import SELECTED_KINDS, SceneEntityCfg
from manyworlds.validation.rules import refuse

_HARMLESS = {"name", "preserve_order", "is_resolved"}
_READS = {f"{kind}_{what}": kind for kind in SELECTED_KINDS for what in ("names", "ids")}
_TREES: weakref.WeakKeyDictionary[types.FunctionType, ast.FunctionDef]
_TREES = weakref.WeakKeyDictionary()
"""Source of functions: environments of a task are built many times in a program."""


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
            what = f"{kind}_names={selection.names(kind)!r}"
            if selection.names(kind) is None:
                what = f"{kind}_ids={selection.ids(kind)}"
            others = [f"{other}_names" for other in SELECTED_KINDS if other in known]
            remedy = "leave it out"
            if others:
                remedy = f"give {' or '.join(others)} instead"
            refuse(
                f"{parameter} of '{selection.name}' gives {what}, but {name} reads no {kind} of "
                f"it, so that the selection would have no effect: {remedy}."
            )


def read_kinds(func: Callable[..., object], parameter: str) -> frozenset[str] | None:
    """Return the kinds of elements that a term reads of a selection; None if it is not known."""
    while isinstance(func, functools.partial):
        func = func.func
    if inspect.ismethod(func):
        func = func.__func__
    if not inspect.isfunction(func):
        if not inspect.isclass(func):
            func = type(func)
        return vars(func).get("selects")  # a subclass may read more than its base
    kinds: set[str] = set()
    try:
        _collect(func, parameter, kinds, set())
    except _UnknownError:
        return None
    return frozenset(kinds)


class _UnknownError(Exception):
    """A selection is used in a way that says nothing about its kinds."""


def _collect(
    func: types.FunctionType, parameter: str, kinds: set[str], seen: set[tuple[object, str]]
) -> None:
    """Add the kinds that a function reads of the selection in one of its parameters.

    Args:
        func: the function.
        parameter: name of the parameter.
        kinds: the kinds that have been found.
        seen: functions and parameters that have been searched, or are being searched.
    """
    declared = getattr(func, "selects", None)
    if declared is not None:
        kinds.update(declared)
        return
    if (func, parameter) in seen:
        return
    seen.add((func, parameter))
    func = inspect.unwrap(func)
    if parameter not in inspect.signature(func).parameters:  # one of `**params`
        raise _UnknownError
    tree = _parsed(func)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Name) and node.id == parameter):
            continue
        user = parents[node]
        match user:
            case ast.Attribute(attr=name) if name in _READS:
                kinds.add(_READS[name])
            case ast.Attribute(attr=name) if name in _HARMLESS:
                pass
            case ast.Attribute(attr="index"):
                kinds.add(_indexed_kind(parents[user]))
            case ast.Call() if node in user.args:
                callee = _function(user, func)
                _collect(callee, _parameter(callee, user, node), kinds, seen)
            case ast.keyword(arg=str(name)):
                _collect(_function(parents[user], func), name, kinds, seen)
            case ast.Compare() | ast.FormattedValue() | ast.UnaryOp() | ast.If():
                pass
            case _:
                raise _UnknownError


def _parsed(func: types.FunctionType) -> ast.FunctionDef:
    """Parse the source of a function, once."""
    if func not in _TREES:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(func))).body[0]
        except (OSError, TypeError, SyntaxError):
            raise _UnknownError from None
        if not isinstance(tree, ast.FunctionDef):  # the line of a lambda
            raise _UnknownError
        _TREES[func] = tree
    return _TREES[func]


def _indexed_kind(call: ast.AST) -> str:
    """Return the kind in a call of `SceneEntityCfg.index`."""
    match call:
        case ast.Call(args=[ast.Constant(value=str(kind))]) if kind in SELECTED_KINDS:
            return kind
    raise _UnknownError


def _function(call: ast.AST, caller: types.FunctionType) -> types.FunctionType:
    """Return the function that is called: one of the caller's module, or of another module."""
    match call:
        case ast.Call(func=ast.Name(id=name)):
            value = caller.__globals__.get(name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
            value = getattr(caller.__globals__.get(module), name, None)
        case _:
            raise _UnknownError
    if not inspect.isfunction(value):
        raise _UnknownError
    return value


def _parameter(callee: types.FunctionType, call: ast.Call, argument: ast.expr) -> str:
    """Return the parameter of a function that gets a positional argument."""
    names = list(inspect.signature(callee).parameters)
    place = call.args.index(argument)
    if place >= len(names) or any(isinstance(each, ast.Starred) for each in call.args):
        raise _UnknownError
    return names[place]
