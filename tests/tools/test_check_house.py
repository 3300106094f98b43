from __future__ import annotations

import ast

import pytest

from tools.check_house import count_any


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("def f(a: Any) -> int: ...", 1),
        ("def f(a: int, *, b: dict[str, Any] | None = None) -> Any: ...", 1),
        ("def f(*args: Any, **kwargs: Any): ...", 1),
        ("async def f() -> 'list[Any]': ...", 1),
        ("def _f(a: Any): ...", 0),
        ("def f(a: AnyOf, b=Any) -> None:\n    c: Any = a", 0),
        ("class A:\n    def __init__(self, a: Any): ...\n    def f(self): ...", 1),
        ("class A:\n    class B:\n        def f(self, a: Any): ...", 1),
        ("class _A:\n    def f(self, a: Any): ...", 0),
    ],
)
def test_public_signatures_with_any_are_counted(code, count):
    """Count public functions, methods and special methods, each once; skip private ones."""
    assert count_any(ast.parse(code).body) == count
