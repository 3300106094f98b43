"""MuJoCo's options: what counts, and who said so."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.entity import EntityCfg
from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_scene
from manyworlds.scene import SceneCfg
from tests.lab.conftest import ARM
from tests.robots import robot_file

ROBOTS = ["unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml"]


def options_of(option: mujoco.MjOption) -> dict[str, list[float]]:
    """All options, by name."""
    names = [name for name in dir(option) if not name.startswith("_")]
    return {name: np.ravel(getattr(option, name)).tolist() for name in names}


@pytest.mark.parametrize("name", ROBOTS)
def test_stock_models_stay_as_they_are(name):
    """Open a robot's file: options and steps are those of plain MuJoCo, to the bit."""
    path = robot_file(name)
    lab = LiveLab(world_from_file(path), LabCfg(start_owner="nobody"))
    model = mujoco.MjModel.from_xml_path(str(path))
    assert options_of(lab.world.model.opt) == options_of(model.opt)
    data = mujoco.MjData(model)
    for _ in range(50):
        mujoco.mj_step(model, data)
    snapshot = lab.step(50)
    for field in ("qpos", "qvel", "sensordata"):
        assert getattr(snapshot, field).tobytes() == getattr(data, field).tobytes(), field
    lab.stop()


def test_each_option_can_be_given_and_changed(world):
    """Give and change all options that MuJoCo has; those that nobody names stay."""
    start = options_of(world.model.opt)
    for name, values in start.items():
        by = -1 if name in ("jacobian", "solver") else 1  # these are at their last choices
        new = [value + by for value in values]
        value = new if np.ndim(getattr(world.model.opt, name)) else new[0]
        for lab in (LiveLab(world, LabCfg(options={name: value})), LiveLab(world)):
            lab.set_option(name, value)
            lab.loop.do(lambda model, data: None)
            assert options_of(world.model.opt) == {**start, name: new}
            lab.stop()
        old = values if np.ndim(getattr(world.model.opt, name)) else values[0]
        lab = LiveLab(world, LabCfg(options={name: old}))
        lab.stop()


def test_a_table_says_where_options_come_from():
    """A robot wants 2 ms, the lab 5 ms, a hand on the page 4 ms: the table tells in this order."""
    text = ARM.replace('timestep="0.002"', 'timestep="0.001" cone="elliptic"')
    spec = mujoco.MjSpec.from_string(text)
    for body in ("ball", "post"):
        spec.delete(spec.body(body))
    spec.delete(spec.geom("floor"))
    entity = EntityCfg(spec_fn=lambda: spec.copy())
    lab = LiveLab(
        world_from_scene(SceneCfg(entities={"left": entity})),
        LabCfg(options={"timestep": 0.005, "iterations": 100}),
    )
    assert lab.world.model.opt.timestep == 0.005

    def rows() -> dict[str, list[str]]:
        lines = [line.split("│") for line in lab.explain_options().splitlines() if "│" in line]
        return {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in lines}

    assert rows() == {
        "cone": ["0", "1 (left)", "", ""],
        "timestep": ["0.002", "0.001 (left)", "0.005", ""],
    }
    lab.set_option("timestep", 0.004)
    lab.loop.do(lambda model, data: None)
    assert rows()["timestep"] == ["0.002", "0.001 (left)", "0.005", "0.004"]
    assert lab.step().time == 0.004
    lab.stop()
