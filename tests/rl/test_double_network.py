"""Networks in float64."""

import io

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from manyworlds.rl.double_network import in_double


def network(kind: type[torch.nn.Module], order: torch.Tensor) -> onnx.ModelProto:
    """Export a network whose hidden units have a given order."""
    torch.manual_seed(0)
    first = torch.nn.Linear(20, 64)
    second = torch.nn.Linear(64, 5)
    with torch.no_grad():
        first.weight[:] = first.weight[order]
        first.bias[:] = first.bias[order]
        second.weight[:] = second.weight[:, order]
    module = torch.nn.Sequential(first, kind(), second)
    buffer = io.BytesIO()
    torch.onnx.export(module, (torch.zeros(1, 20),), buffer, dynamo=False, opset_version=18)
    return onnx.load_from_string(buffer.getvalue())


def computed(model: onnx.ModelProto, rows: np.ndarray) -> np.ndarray:
    """Run a network on several rows, one by one."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    name = session.get_inputs()[0].name
    return np.array([session.run(None, {name: row[None]})[0][0] for row in rows])


@pytest.mark.parametrize("kind", [torch.nn.ELU, torch.nn.SELU, torch.nn.ReLU, torch.nn.Tanh])
def test_the_order_of_sums_does_not_matter(kind):
    """Return the same bits whatever the order of hidden units, and float32's up to rounding."""
    rows = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
    plain = network(kind, torch.arange(64))
    other = network(kind, torch.randperm(64))
    exact = computed(in_double(plain), rows)
    assert exact.dtype == np.float32
    np.testing.assert_array_equal(computed(in_double(other), rows), exact)
    single = computed(plain, rows)
    np.testing.assert_allclose(single, exact, atol=2e-6)
    assert (single != exact).any()


def test_operators_without_float64_stay_as_they_are():
    """Return a convolution, which ONNX Runtime computes in float32 only, unchanged."""
    model = onnx.helper.make_model(
        onnx.helper.make_graph([onnx.helper.make_node("Conv", ["x", "w"], ["y"])], "g", [], [])
    )
    assert in_double(model) is model
