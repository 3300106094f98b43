"""Buffers of the warp engine, sized by trials."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.sim import Simulation, SimulationCfg
from manyworlds.sim.engines.capacity import estimate_capacity
from tests.robots import robot_on_floor
from tests.scenes import CLUTTER
from tests.waiting import least_cpu_s

_BOX = '<body pos="{} {} {}"><freejoint/><geom type="box" size=".05 .05 .05"/></body>'
# Boxes far from each other that fall into one pile.
PILE = f"""
<mujoco>
  <option timestep=".004"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    {"".join(_BOX.format(0.02 * (i % 3), 0.02 * (i % 2), 0.2 + 0.14 * i) for i in range(8))}
  </worldbody>
</mujoco>
"""


def _compile(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


def _most(model: mujoco.MjModel, steps: int) -> tuple[int, int]:
    """Return the most contacts and constraints of a plain run."""
    data, contacts, rows = mujoco.MjData(model), 0, 0
    for _ in range(steps):
        mujoco.mj_step(model, data)
        contacts, rows = max(contacts, data.ncon), max(rows, data.nefc)
    return contacts, rows


@pytest.mark.parametrize("scene", ["pile", "clutter"])
def test_room_exceeds_what_a_plain_run_meets(scene: str):
    """Find room for more contacts and rows than a long run has."""
    model = _compile({"pile": PILE, "clutter": CLUTTER}[scene])
    contacts, rows = _most(model, 1000)
    nconmax, njmax = estimate_capacity(model)
    assert contacts < nconmax < 10 * contacts
    assert rows < njmax < 10 * rows
    assert (nconmax, njmax) == estimate_capacity(model), "trials must be the same every time"
    assert nconmax % 16 == njmax % 16 == 0


def test_limits_and_inactive_equalities_count():
    """Leave room for constraints that are off, or far off, in all trials."""
    links = '<body><joint axis="0 1 0" range="-170 170"/><geom size=".1" contype="0"/>{}</body>'
    body = ""
    for _ in range(20):
        body = links.format(body)
    weld = '<weld body1="world" body2="a" active="false"/>'
    model = _compile(
        f'<mujoco><option gravity="0 0 0"/><worldbody>{body}<body name="a"><freejoint/>'
        f'<geom size=".1" contype="0"/></body></worldbody><equality>{weld * 5}</equality></mujoco>'
    )
    assert estimate_capacity(model) == (16, 64)  # 20 + 5 * 6 rows, rounded up


def test_pairs_that_are_only_near_count():
    """Leave room for geoms whose bounds meet though they never touch."""
    ring = "".join(
        f'<body><joint axis="0 0 1"/><geom type="capsule" fromto="0 0 {0.1 * i} 1 1 {0.1 * i + 1}" '
        'size=".01"/></body>'
        for i in range(12)
    )
    model = _compile(f'<mujoco><option gravity="0 0 0"/><worldbody>{ring}</worldbody></mujoco>')
    assert _most(model, 10)[0] == 0
    assert estimate_capacity(model)[0] >= 2 * 12 * 11 / 2


def test_keyframes_are_tried():
    """Count contacts that only a keyframe has."""
    apart = _compile(PILE.replace('timestep=".004"', 'timestep=".004" gravity="0 0 0"'))
    keyed = mujoco.MjSpec.from_string(
        PILE.replace('timestep=".004"', 'timestep=".004" gravity="0 0 0"')
    )
    qpos = apart.qpos0.copy()
    qpos[2::7] = 0.04
    keyed.add_key(qpos=qpos)
    assert estimate_capacity(keyed.compile())[0] > 2 * estimate_capacity(apart)[0]


@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "unitree_g1/g1.xml"])
def test_trials_are_short(robot: str):
    """Size buffers for a robot in less than half a second."""
    model = robot_on_floor(robot)
    assert least_cpu_s(lambda: estimate_capacity(model), 0.5) < 0.5


@pytest.mark.slow
def test_pile_fits_into_calibrated_buffers():
    """Let boxes fall into a pile that overflows MuJoCo Warp's own guess, but not ours."""
    mjw = pytest.importorskip("mujoco_warp")
    model = _compile(PILE)
    guess = mjw.make_data(model, 1)

    def run(**options) -> Simulation:
        cfg = SimulationCfg(engine="warp", mujoco=None, **options)
        sim = Simulation(2, cfg, model, "cpu")
        sim.step(160)
        return sim

    calibrated = run()
    assert calibrated.status_counts() == {}
    assert (calibrated.data.nefc > guess.njmax).all(), "the guess must be too small"
    assert calibrated.wp_data.njmax == estimate_capacity(model)[1]
    guessed = run(nconmax=guess.naconmax, njmax=guess.njmax)
    assert (guessed.wp_data.naconmax, guessed.wp_data.njmax) == (2 * guess.naconmax, guess.njmax)
    assert guessed.status_counts()["constraint_overflow"] == 2


@pytest.mark.slow
def test_explicit_sizes_are_honoured():
    """Calibrate only what was not given, and never below MuJoCo Warp's own guess."""
    mjw = pytest.importorskip("mujoco_warp")
    model = _compile(CLUTTER)
    guess = mjw.make_data(model, 1)
    cfg = SimulationCfg(engine="warp", mujoco=None, njmax=200)
    sim = Simulation(3, cfg, model, "cpu")
    assert sim.wp_data.njmax == 200
    assert sim.wp_data.naconmax == 3 * max(estimate_capacity(model)[0], guess.naconmax)
