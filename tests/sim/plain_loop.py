"""Worlds of the native engine beside a plain loop over MjData."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from manyworlds.sim import Simulation, SimulationCfg, WorldStatus
from manyworlds.sim.diagnostics.flight_replay import FlightRecord
from manyworlds.sim.diagnostics.status import quiet_mujoco

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
DIVERGED = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)


def native(model: mujoco.MjModel, num_envs: int) -> Simulation:
    """Make worlds of a model that keeps its own options."""
    return Simulation(num_envs, SimulationCfg(engine="native", mujoco=None), model, "cpu")


def scatter(sim: Simulation, generator: torch.Generator, scale: float = 0.01) -> None:
    """Start every world but the first from a state of its own."""
    for view in (sim.data.qpos, sim.data.qvel):
        noise = torch.randn(view.shape, generator=generator) * scale
        noise[0] = 0.0
        view += noise


def random_controls(sim: Simulation, steps: int, generator: torch.Generator) -> torch.Tensor:
    """Draw controls over ctrlrange, shape (steps, num_envs, nu); over [-1, 1] where unlimited."""
    model = sim.mj_model
    limited = torch.from_numpy(model.actuator_ctrllimited.astype(bool))[:, None]
    given = torch.from_numpy(model.actuator_ctrlrange.astype(np.float32))
    low, high = torch.where(limited, given, torch.tensor([-1.0, 1.0])).unbind(-1)
    return low + (high - low) * torch.rand(steps, sim.num_envs, model.nu, generator=generator)


def assert_steps_like_plain_mujoco(
    sim: Simulation, controls: torch.Tensor, check_every: int = 10
) -> list[mujoco.MjData]:
    """Step each world also in an MjData of its own; compare state and sensordata bit for bit.

    Args:
        sim: the worlds, with the state and the inputs to start from.
        controls: controls of each step, shape (steps, num_envs, nu).
        check_every: steps from one comparison to the next.

    Returns:
        The MjData of each world after the last step.
    """
    model = sim.mj_model
    datas = [mujoco.MjData(model) for _ in range(sim.num_envs)]
    for data, row in zip(datas, sim.state_dict()["state"].numpy(), strict=True):
        mujoco.mj_setState(model, data, row, INTEGRATION)
    _ = sim.data.sensordata  # now the engine looks at its values, too
    sensordata = sim._engine.batch.bind("sensordata")  # type: ignore[attr-defined]
    expected = np.empty((sim.num_envs, mujoco.mj_stateSize(model, INTEGRATION)))
    for step, ctrl in enumerate(controls):
        sim.data.ctrl[:] = ctrl
        sim.step()
        with quiet_mujoco():
            for data, values in zip(datas, ctrl.numpy(), strict=True):
                data.ctrl[:] = values
                mujoco.mj_step(model, data)
        if (step + 1) % check_every:
            continue
        for data, row in zip(datas, expected, strict=True):
            mujoco.mj_getState(model, data, row, INTEGRATION)
        np.testing.assert_array_equal(sim.state_dict()["state"].numpy(), expected, f"step {step}")
        for world, data in enumerate(datas):
            np.testing.assert_array_equal(sensordata[world], data.sensordata, f"step {step}")
    bad = [[data.warning[kind].number > 0 for kind in DIVERGED] for data in datas]
    assert ((sim.status & WorldStatus.NAN) != 0).tolist() == list(map(any, bad))
    return datas


def assert_replays(record: FlightRecord, index: int = 0) -> int:
    """Step each sane call from its start as recorded; return how many end in the next one's."""
    spec, whole = (
        int(kind) for kind in (mujoco.mjtState.mjSTATE_PHYSICS, mujoco.mjtState.mjSTATE_INTEGRATION)
    )
    states, nsubsteps = record.arrays["states"][:, index], record.arrays["nsubsteps"]
    following, expected = np.empty((2, mujoco.mj_stateSize(record.model, spec)))
    compared = 0
    for call in range(int(record.arrays["begins"][index]), len(nsubsteps) - 1):
        model = record.model_of(index, call)
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, states[call], whole)
        mujoco.mj_extractState(model, states[call + 1], whole, expected, spec)
        if np.isfinite(states[call : call + 2]).all() and np.abs(expected).max() < 1e6:
            mujoco.mj_step(model, data, int(nsubsteps[call]))
            mujoco.mj_getState(model, data, following, spec)
            np.testing.assert_array_equal(following, expected, err_msg=f"call {call}")
            compared += 1
    return compared
