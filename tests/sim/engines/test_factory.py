"""Choice of the device and the engine, on machines with and without a GPU."""

from __future__ import annotations

import importlib.util
import sys
import warnings

import mujoco
import pytest
import torch

from manyworlds.sim import Simulation, SimulationCfg, choose_device
from tests.scenes import HINGE


@pytest.fixture
def gpu(monkeypatch):
    """Let PyTorch find a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


def test_a_gpu_without_mujoco_warp_is_not_used(gpu, monkeypatch):
    """Run the worlds on the CPU, and say what the GPU needs; engine='warp' asks for the GPU."""
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    with pytest.warns(UserWarning, match=r"MuJoCo Warp is not installed.*pip install .*\[gpu\]'"):
        sim = Simulation(2, SimulationCfg(), mujoco.MjModel.from_xml_string(HINGE))
    assert sim.device.type == "cpu"
    sim.step()
    assert (sim.data.time > 0.0).all()
    assert choose_device(SimulationCfg(engine="warp"), None) == torch.device("cuda", 0)


def test_a_gpu_is_used_where_the_engine_can(gpu, monkeypatch):
    """Take the GPU with MuJoCo Warp, and the CPU for the native engine, without a word."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_device(SimulationCfg(), None) == torch.device("cuda", 0)
        assert choose_device(SimulationCfg(engine="native"), None) == torch.device("cpu")
        assert choose_device(SimulationCfg(), "cpu") == torch.device("cpu")
