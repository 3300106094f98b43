"""Devices and threads of torch."""

import random

import numpy as np
import pytest
import torch

from manyworlds.utils.devices import as_device, configure_torch_backends
from manyworlds.utils.seeding import seed_rng


@pytest.fixture(autouse=True)
def restore(monkeypatch):
    """Leave torch as it was."""
    before = (
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
        torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic,
    )
    # Registers the variable, so that it is taken away again.
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    yield
    torch.set_float32_matmul_precision(before[0])
    cudnn = torch.backends.cudnn
    cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic = before[1:]
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("allow_tf32", [True, False])
@pytest.mark.parametrize("deterministic", [True, False])
def test_backends_are_set(allow_tf32, deterministic):
    """Set all backends alike, and both ways."""
    configure_torch_backends(allow_tf32, deterministic)
    assert torch.get_float32_matmul_precision() == ("high" if allow_tf32 else "highest")
    assert torch.backends.cudnn.allow_tf32 is allow_tf32
    assert torch.backends.cudnn.deterministic is deterministic
    assert torch.backends.cudnn.benchmark is not deterministic
    assert torch.are_deterministic_algorithms_enabled() is deterministic


def test_seeding_makes_torch_repeatable_on_request():
    """Seed all generators; ask for deterministic algorithms only where told to."""
    drawn = []
    for deterministic in (False, True):
        seed_rng(3, torch_deterministic=deterministic)
        assert torch.are_deterministic_algorithms_enabled() is deterministic
        drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]


def test_a_gpu_has_an_index(monkeypatch):
    """Name the GPU by its index, which Warp needs, and which the devices of tensors have."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    assert as_device("cuda") == torch.device("cuda", 2)
    assert as_device("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**20])
def test_seeds_are_bounded(seed):
    """Refuse seeds that PyTorch's generators do not take."""
    with pytest.raises(ValueError, match=f"The seed is {seed}, but must be from -9223372036854775"):
        seed_rng(seed)
