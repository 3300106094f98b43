"""Networks of exported policies with sums in float64, which all machines compute alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    from onnx import ModelProto

_SUPPORTED = {
    *("Add", "Cast", "Clip", "Concat", "Constant", "Div", "Flatten", "Gather", "Gemm", "Identity"),
    *("MatMul", "Max", "Min", "Mul", "Neg", "Relu", "Reshape", "Sigmoid", "Slice", "Squeeze"),
    *("Sub", "Tanh", "Unsqueeze"),
}
"""Operators that ONNX Runtime computes in float64."""
_EXPONENTIAL = {"Elu", "Selu"}
"""Operators that are written with others."""
_PREFIX = "double/"


def in_double(model: ModelProto) -> ModelProto:
    """Return a network that computes in float64 between its float32 inputs and outputs.

    The order of a sum is another one on each machine, and so are the last bits of float32. Sums in
    float64 that are rounded to float32 at the end are the same up to one in about 1e8.

    Args:
        model: the network, an `onnx.ModelProto`, which does not change.

    Returns:
        The network in float64; the network itself if it has an operator without float64 in ONNX
        Runtime, such as those of recurrent networks.
    """
    onnx = require_extra("onnx", "train")
    if not {node.op_type for node in model.graph.node} <= _SUPPORTED | _EXPONENTIAL:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    del graph.value_info[:]  # the types of float32
    single = onnx.TensorProto.FLOAT
    make = onnx.helper.make_node
    inner = set()
    nodes = []
    for value in [*graph.initializer, *graph.input]:
        dtype = value.data_type if hasattr(value, "data_type") else value.type.tensor_type.elem_type
        if dtype == single:
            inner.add(value.name)
            double = onnx.TensorProto.DOUBLE
            nodes.append(make("Cast", [value.name], [_PREFIX + value.name], to=double))
    outputs = {value.name for value in graph.output}
    for node in model.graph.node:
        nodes += _nodes_in_double(node, inner, outputs)
    for value in graph.output:
        dtype = value.type.tensor_type.elem_type
        nodes.append(make("Cast", [_PREFIX + value.name], [value.name], to=dtype))
    del graph.node[:]
    graph.node.extend(nodes)
    return result


def _nodes_in_double(node: Any, inner: set[str], outputs: set[str]) -> Iterator[Any]:
    """Yield the nodes that compute a node in float64.

    Args:
        node: the node.
        inner: names of inputs and constants in float32.
        outputs: names of the network's outputs.
    """
    onnx = require_extra("onnx", "train")
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for names in (copy.input, copy.output):
        for i, name in enumerate(names):
            if name in inner or name in outputs:
                names[i] = _PREFIX + name
    for attribute in copy.attribute:
        if node.op_type == "Cast" and attribute.i == onnx.TensorProto.FLOAT:
            attribute.i = onnx.TensorProto.DOUBLE
        if node.op_type == "Constant" and attribute.t.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(attribute.t).astype(float)
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(values))
    if node.op_type in _EXPONENTIAL:
        yield from _exponential(copy)
    else:
        yield copy


def _exponential(node: Any) -> Iterator[Any]:
    """Yield nodes for `gamma (max(x, 0) + alpha (exp(min(x, 0)) - 1))`."""
    onnx = require_extra("onnx", "train")
    make = onnx.helper.make_node
    given = {attribute.name: attribute.f for attribute in node.attribute}
    alpha = given.get("alpha", 1.0)
    gamma = 1.0
    if node.op_type == "Selu":  # the defaults of ONNX
        alpha = given.get("alpha", 1.67326319217681884765625)
        gamma = given.get("gamma", 1.05070102214813232421875)
    [x] = node.input
    [result] = node.output
    numbers = {"zero": 0.0, "one": 1.0, "alpha": alpha, "gamma": gamma}
    for name, number in numbers.items():
        tensor = onnx.helper.make_tensor(name, onnx.TensorProto.DOUBLE, [], [number])
        yield make("Constant", [], [f"{result}/{name}"], value=tensor)
    yield make("Max", [x, f"{result}/zero"], [f"{result}/above"])
    yield make("Min", [x, f"{result}/zero"], [f"{result}/below"])
    yield make("Exp", [f"{result}/below"], [f"{result}/exp"])
    yield make("Sub", [f"{result}/exp", f"{result}/one"], [f"{result}/less"])
    yield make("Mul", [f"{result}/less", f"{result}/alpha"], [f"{result}/scaled"])
    yield make("Add", [f"{result}/above", f"{result}/scaled"], [f"{result}/sum"])
    yield make("Mul", [f"{result}/sum", f"{result}/gamma"], [result])
