"""Update by a mini-batch as one captured CUDA graph, which repeats its kernels without Python."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import torch

from manyworlds.envs.step_segments import Graph
from manyworlds.rl.storage import MiniBatch

_WARM_UP = 2
"""Mini-batches in which gradients, libraries and the optimizer allocate what they keep."""


class UpdateGraph:
    """Updates by mini-batches of one shape, by a graph.

    Args:
        learn: function that learns from a mini-batch, without a read of the host, and returns parts
            of the loss by name.
        make_graph: function that makes an empty graph.
        assigned: object to which the update assigns attributes: the distribution of actions.
    """

    def __init__(
        self,
        learn: Callable[[MiniBatch], dict[str, torch.Tensor]],
        make_graph: Callable[[], Graph],
        assigned: object,
    ) -> None:
        self._learn = learn
        self._make_graph = make_graph
        self._assigned = assigned
        self._graph: Graph | None = None
        self._numbers: object = None
        self._memory: Sequence[torch.Tensor] = ()
        self._seen = 0
        self.captures = 0
        """Number of captures so far."""

    def __call__(
        self, batch: MiniBatch, numbers: object, memory: Sequence[torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Learn from a mini-batch; return the parts of the loss, each of shape [].

        Args:
            batch: the mini-batch.
            numbers: numbers of Python that the update depends on; another value captures again.
            memory: parameters and states that the update changes; other tensors capture again.
        """
        shapes = [tensor.shape for tensor in _tensors(batch)]
        if not self._is_as_before((numbers, shapes), memory):
            self._graph = None
            self._numbers = numbers, shapes
            self._memory = memory
            self._seen = 0
        if self._graph is None and self._seen < _WARM_UP:
            self._seen += 1
            return self._learn(batch)
        if self._graph is None:
            self._capture(batch)
        else:
            for buffer, tensor in zip(_tensors(self._batch), _tensors(batch), strict=True):
                buffer.copy_(tensor)
            self._replay(self._graph)
            vars(self._assigned).update(self._attributes)
        return {name: value.detach().clone() for name, value in self._losses.items()}

    def _capture(self, batch: MiniBatch) -> None:
        """Record the update, and make it."""
        self._batch = copy.copy(batch)
        self._batch.observations = batch.observations.clone()
        for name in ("actions", "values", "advantages", "returns", "old_actions_log_prob"):
            setattr(self._batch, name, getattr(batch, name).clone())
        params = tuple(values.clone() for values in batch.old_distribution_params)
        self._batch.old_distribution_params = params
        graph = self._make_graph()
        with graph.record():
            self._losses = self._learn(copy.copy(self._batch))
        self._attributes = dict(vars(self._assigned))
        if not graph.has_run:
            self._replay(graph)
        self._graph = graph
        self.captures += 1

    def _replay(self, graph: Graph) -> None:
        with torch.no_grad():  # gradients are among what is repeated
            graph.replay()

    def _is_as_before(self, numbers: object, memory: Sequence[torch.Tensor]) -> bool:
        if numbers != self._numbers or len(memory) != len(self._memory):
            return False
        return all(new is old for new, old in zip(memory, self._memory, strict=True))


def _tensors(batch: MiniBatch) -> Iterator[torch.Tensor]:
    """Yield the tensors of a mini-batch of samples."""
    for value in batch.observations.values(include_nested=True, leaves_only=True):
        yield cast("torch.Tensor", value)
    yield batch.actions
    yield batch.values
    yield batch.advantages
    yield batch.returns
    yield batch.old_actions_log_prob
    yield from batch.old_distribution_params
