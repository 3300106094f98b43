"""Arrays that an ONNX graph computes: the operations that control graphs need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET = 18
"""Version of ONNX's operators, that of exported policies."""


class Value:
    """Array that a graph computes; arithmetic with NumPy's meaning adds nodes to the graph.

    Numbers and arrays in an operation take the type of the value.
    """

    def __init__(self, graph: Graph, name: str, shape: Sequence[int], dtype: DTypeLike) -> None:
        self.graph = graph
        self.name = name
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)

    def __add__(self, other: Operand) -> Value:
        return self._with("Add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Operand) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._operand(other) - self

    def __mul__(self, other: Operand) -> Value:
        return self._with("Mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._with("Mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._with("Div", other)

    def __neg__(self) -> Value:
        return self._of("Neg")

    def __matmul__(self, other: Operand) -> Value:
        right = self._operand(other)
        shape = (np.zeros(self.shape) @ np.zeros(right.shape)).shape
        if len(right.shape) == 1:
            # ONNX Runtime 1.32 computes a transposed matrix times a vector without the transpose.
            column = right.reshape(right.shape[0], 1)
            return (self @ column).reshape(*shape)
        return self.graph.node("MatMul", [self, right], shape, self.dtype)

    def __gt__(self, other: Operand) -> Value:
        return self._with("Greater", other, bool)

    def __ge__(self, other: Operand) -> Value:
        return self._with("GreaterOrEqual", other, bool)

    def __lt__(self, other: Operand) -> Value:
        return self._with("Less", other, bool)

    def __le__(self, other: Operand) -> Value:
        return self._with("LessOrEqual", other, bool)

    def __and__(self, other: Operand) -> Value:
        return self._with("And", other, bool)

    def __getitem__(self, rows: int | slice | Sequence[int] | np.ndarray | Value) -> Value:
        """Rows of the first axis: one, several, or those that an integer value names."""
        if isinstance(rows, Value):
            index = rows
        elif isinstance(rows, slice):
            index = self.graph.constant(np.arange(self.shape[0])[rows], np.int64)
        else:
            index = self.graph.constant(rows, np.int64)
        shape = (*index.shape, *self.shape[1:])
        return self.graph.node("Gather", [self, index], shape, self.dtype, axis=0)

    def __iter__(self) -> Iterator[Value]:
        return (self[row] for row in range(self.shape[0]))

    @property
    def T(self) -> Value:  # noqa: N802
        """Transpose."""
        return self._of("Transpose", shape=self.shape[::-1])

    def astype(self, dtype: DTypeLike) -> Value:
        """Convert to another type of numbers, rounding to nearest."""
        if self.dtype == np.dtype(dtype):
            return self
        return self.graph.node("Cast", [self], self.shape, dtype, to=_onnx_type(dtype))

    def reshape(self, *shape: int) -> Value:
        """Change the shape."""
        if shape == self.shape:
            return self
        wanted = self.graph.constant(shape, np.int64)
        return self.graph.node("Reshape", [self, wanted], shape, self.dtype)

    def sum(self) -> Value:
        """Sum of the last axis."""
        axis = self.graph.constant([-1], np.int64)
        return self.graph.node("ReduceSum", [self, axis], self.shape[:-1], self.dtype, keepdims=0)

    def argmax(self) -> Value:
        """Index of the largest element along the last axis."""
        return self.graph.node("ArgMax", [self], self.shape[:-1], np.int64, axis=-1, keepdims=0)

    def maximum(self, other: Operand) -> Value:
        """Larger of two elements."""
        return self._with("Max", other)

    def minimum(self, other: Operand) -> Value:
        """Smaller of two elements."""
        return self._with("Min", other)

    def clip(self, low: Operand, high: Operand) -> Value:
        """Limit the elements; the upper bound has priority, as in NumPy."""
        return self.maximum(low).minimum(high)

    def sqrt(self) -> Value:
        """Square root."""
        return self._of("Sqrt")

    def sin(self) -> Value:
        """Sine of angles [rad]."""
        return self._of("Sin")

    def cos(self) -> Value:
        """Cosine of angles [rad]."""
        return self._of("Cos")

    def copy(self) -> Value:
        """Same value under another name."""
        return self._of("Identity")

    def _of(self, op: str, shape: Sequence[int] | None = None) -> Value:
        return self.graph.node(op, [self], self.shape if shape is None else shape, self.dtype)

    def _with(self, op: str, other: Operand, dtype: DTypeLike | None = None) -> Value:
        right = self._operand(other)
        shape = np.broadcast_shapes(self.shape, right.shape)
        return self.graph.node(op, [self, right], shape, dtype or self.dtype)

    def _operand(self, other: Operand) -> Value:
        if isinstance(other, Value):
            if other.dtype != self.dtype:
                raise TypeError(
                    f"An operation on {self.dtype} and {other.dtype}: convert one by astype."
                )
            return other
        return self.graph.constant(other, self.dtype)


Operand = Value | ArrayLike


class Graph:
    """ONNX graph under construction."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._count = 0
        self._onnx = require_extra("onnx", "share")

    def constant(self, array: ArrayLike, dtype: DTypeLike) -> Value:
        """Add a constant."""
        values = np.array(array, dtype)  # in the order of C, with 0 or more axes
        name = self._free_name("constant")
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return Value(self, name, values.shape, dtype)

    def node(
        self,
        op: str,
        inputs: Sequence[Value],
        shape: Sequence[int],
        dtype: DTypeLike,
        **attributes: object,
    ) -> Value:
        """Add a node with one output.

        Args:
            op: operator of ONNX.
            inputs: its inputs.
            shape: shape of the output.
            dtype: type of the output's elements.
            attributes: attributes of the operator.
        """
        name = self._free_name(op.lower())
        names = [value.name for value in inputs]
        self._nodes.append(self._onnx.helper.make_node(op, names, [name], **attributes))
        return Value(self, name, shape, dtype)

    def concat(self, values: Sequence[Value], axis: int = 0) -> Value:
        """Join values along an axis."""
        if len(values) == 1:
            return values[0]
        shape = np.concatenate([np.zeros(value.shape) for value in values], axis).shape
        return self.node("Concat", values, shape, values[0].dtype, axis=axis)

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """Choose between the elements of two values."""
        shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
        return self.node("Where", [condition, yes, no], shape, yes.dtype)

    def input(self, name: str, shape: Sequence[int], dtype: DTypeLike) -> Value:
        """Add an input of the graph."""
        self._inputs.append(self._info(name, shape, dtype))
        return Value(self, name, shape, dtype)

    def output(self, name: str, value: Value) -> None:
        """Make a value an output of the graph."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value.name], [name]))
        self._outputs.append(self._info(name, value.shape, value.dtype))

    def when(
        self,
        condition: Value,
        then: Callable[[], Mapping[str, Value]],
        otherwise: Mapping[str, Value],
    ) -> dict[str, Value]:
        """Compute values by name only if a condition is true; else take those of `otherwise`.

        Args:
            condition: truth value, with one element.
            then: adds the nodes that compute the values.
            otherwise: values by name, at least those that `then` returns.
        """
        outer = self._nodes
        self._nodes = []
        computed = then()
        yes = self._subgraph("then", computed)
        self._nodes = []
        no = self._subgraph("else", {name: otherwise[name] for name in computed})
        self._nodes = outer
        results = {}
        for name, value in computed.items():
            results[name] = Value(self, self._free_name(name), value.shape, value.dtype)
        names = [value.name for value in results.values()]
        self._nodes.append(
            self._onnx.helper.make_node(
                "If", [condition.name], names, then_branch=yes, else_branch=no
            )
        )
        return results

    def inline(self, model: ModelProto, prefix: str, inputs: Mapping[str, Value]) -> dict[str, str]:
        """Add the nodes of another model; return the names of its outputs here, by their names.

        Args:
            model: the model, of the same version of operators.
            prefix: prefix of its names here.
            inputs: its inputs by name.
        """
        renamed = self._onnx.compose.add_prefix(model, prefix)
        for name, value in inputs.items():
            node = self._onnx.helper.make_node("Identity", [value.name], [prefix + name])
            self._nodes.append(node)
        self._nodes += renamed.graph.node
        self._constants += renamed.graph.initializer
        return {output.name: prefix + output.name for output in model.graph.output}

    def build(self, name: str, ir_version: int) -> ModelProto:
        """Return the model, without what no output depends on."""
        helper = self._onnx.helper
        nodes = _needed(self._nodes, {output.name for output in self._outputs})
        used = set().union(*map(_read_names, nodes))
        constants = [constant for constant in self._constants if constant.name in used]
        graph = helper.make_graph(nodes, name, self._inputs, self._outputs, constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=ir_version,
            producer_name="manyworlds",
        )
        self._onnx.checker.check_model(model)
        return model

    def _subgraph(self, name: str, values: Mapping[str, Value]) -> Any:
        outputs = []
        for value in values.values():
            own = value.copy()  # an output of a branch must be computed in it
            outputs.append(self._info(own.name, value.shape, value.dtype))
        nodes = _needed(self._nodes, {output.name for output in outputs})
        return self._onnx.helper.make_graph(nodes, name, [], outputs)

    def _info(self, name: str, shape: Sequence[int], dtype: DTypeLike) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, _onnx_type(dtype), list(shape))

    def _free_name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"


def _needed(nodes: Sequence[Any], outputs: set[str]) -> list[Any]:
    """Return the nodes that outputs depend on, in the same order."""
    wanted = set(outputs)
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted |= _read_names(node)
    return kept[::-1]


def _read_names(node: Any) -> set[str]:
    """Return the names that a node and its branches read."""
    names = set(node.input)
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            for inner in graph.node:
                names |= _read_names(inner)
    return names


def _onnx_type(dtype: DTypeLike) -> int:
    onnx = require_extra("onnx", "share")
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
