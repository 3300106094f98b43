"""Workloads for GPUs, built and run in a few worlds on the CPU."""

from __future__ import annotations

import functools

import pytest

from benchmarks.gpu import (
    CAPTURED_TASKS,
    CAPTURED_WORLDS,
    GPU_LEVERS,
    GPU_WORKLOADS,
    env_step,
    lever,
)
from manyworlds.tasks import list_tasks, load_env_cfg


def test_there_is_a_row_for_each_task_and_number_of_worlds():
    """Measure steps and training of registered tasks, and each lever, in a row of its own."""
    assert {*CAPTURED_TASKS.values()} <= {*list_tasks()}
    for name in CAPTURED_TASKS:
        for num_envs in CAPTURED_WORLDS:
            for row in (f"gpu-captured-{name}-{num_envs}", f"gpu-captured-train-{name}-{num_envs}"):
                measure = GPU_WORKLOADS[row][2]
                assert isinstance(measure, functools.partial)
                assert measure.keywords["num_envs"] == num_envs
    assert {f"gpu-lever-{name}" for name in GPU_LEVERS} <= {*GPU_WORKLOADS}


@pytest.mark.parametrize("name", GPU_LEVERS)
def test_each_lever_changes_the_physics(name):
    """Change the configuration of a task, and nothing but its physics."""
    cfg, plain = (load_env_cfg("Velocity-Flat-Quadruped") for _ in range(2))
    GPU_LEVERS[name][1](cfg)
    assert (cfg.sim, cfg.scene.kept_sensors) != (plain.sim, plain.scene.kept_sensors)
    assert cfg.rewards.keys() == plain.rewards.keys() and cfg.decimation == plain.decimation


@pytest.mark.slow
def test_steps_and_levers_run_on_the_cpu():
    """Return figures of Warp's graphs of the CPU, which captures no control steps."""
    pytest.importorskip("mujoco_warp")
    figures = env_step(0.05, "Cartpole-Balance", 2, device="cpu", turn=2)
    assert figures is not None and figures["ratio"] > 0.0 and figures["segments"] == 0
    figures = lever(0.05, "Cartpole-Balance", GPU_LEVERS["iterations"][1], 2, "cpu", turn=2)
    assert figures is not None and figures["well_worlds"] == 2
