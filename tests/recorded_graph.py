"""Captured control step without a GPU: operations are recorded once, and repeated without Python.

As in a CUDA graph, each operation works on the memory that it had when it was recorded, with the
same Python numbers, and nothing is decided again.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from manyworlds.sim.engines import warp
from manyworlds.sim.engines.warp import WarpEngine


class RecordedGraph(TorchDispatchMode):
    """Records operations of torch and calls of MuJoCo Warp; `replay` repeats them."""

    has_run = True

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Callable[[], object]] = []
        self._kept: list[object] = []  # as long as the graph lives, as the pool of a CUDA graph
        self._within_engine = False

    @contextlib.contextmanager
    def record(self) -> Iterator[None]:
        """Record what is done within this context; it is also done."""
        with pytest.MonkeyPatch.context() as patch, self:
            patch.setattr(WarpEngine, "run", self._noted(WarpEngine.run))
            patch.setattr(warp, "cast_rays", self._noted(warp.cast_rays))
            yield

    def _noted(self, call: Callable[..., object]) -> Callable[..., object]:
        """Return a call of MuJoCo Warp that becomes a node."""

        def noted(*args: Any) -> object:
            self._within_engine = True
            result = call(*args)
            self._within_engine = False
            self._add(lambda: call(*args), result)
            return result

        return noted

    def _add(self, call: Callable[[], object], result: object) -> None:
        """Add a node that writes its results where they were when it was recorded."""
        outputs = _tensors(result)

        def repeat() -> None:
            for output, value in zip(outputs, _tensors(call()), strict=True):
                output.copy_(value)

        self.nodes.append(repeat)

    def replay(self) -> None:
        """Repeat everything."""
        for node in self.nodes:
            node()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        """Make an operation, and record it unless it is a view."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self._kept.append((args, kwargs, result))
        schema = func._schema
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
        is_view = any(r.alias_info is not None for r in schema.returns) and not writes
        if self._within_engine or is_view:
            return result
        if writes:
            self.nodes.append(lambda: func(*args, **kwargs))
        else:
            self._add(lambda: func(*args, **kwargs), result)
        return result


def _tensors(result: object) -> list[torch.Tensor]:
    if dataclasses.is_dataclass(result):
        result = list(vars(result).values())
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
