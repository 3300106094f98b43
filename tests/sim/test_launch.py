"""Physics steps on a thread of a pool, which the calling thread may take instead."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import mujoco
import torch

from manyworlds.sim import Simulation

XML = """<mujoco><worldbody><body pos="0 0 1"><joint axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></worldbody></mujoco>"""


def simulation() -> Simulation:
    """Return three pendulums, released at different angles."""
    sim = Simulation(3, model=mujoco.MjModel.from_xml_string(XML), device="cpu")
    sim.data.qpos[:, 0] = torch.tensor([0.0, 0.3, 0.6])
    return sim


def test_launched_steps_equal_those_of_a_call():
    """Step on another thread, in this one before any other begins, and at the end: the same."""
    expected = simulation()
    expected.step(5, refresh=True)
    busy = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        free, taken, late = simulation(), simulation(), simulation()
        free.launch(pool, 5, refresh=True)
        free.finish()
        pool.submit(busy.wait)
        taken.launch(pool, 5, refresh=True)
        late.launch(pool, 5, refresh=True)
        assert taken.is_stepping() and late.is_stepping()
        assert taken.take_launched() and not taken.is_stepping()
        assert not taken.take_launched()  # it is done
        taken.finish()
        late.finish()  # nobody has begun it, and the pool is busy
        busy.set()
    for sim in (free, taken, late):
        assert not sim.is_stepping()
        assert torch.equal(sim.data.qpos, expected.data.qpos)
        assert torch.equal(sim.data.xpos, expected.data.xpos)
