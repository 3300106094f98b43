"""Sizes and masses of other units are told."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

from manyworlds.cli.validate import validate_file
from manyworlds.entity import EntityCfg
from manyworlds.lab import LiveLab, world_from_spec
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.spec.plausibility import doubtful_sizes
from tests.spec.parity import find_model


def arm(size: float, mass: str = "") -> str:
    """Return a model of one moving box."""
    return f"""<mujoco><worldbody><body name="arm"><joint/>
    <geom name="link" type="box" size="{size} {size} {size}" {mass}/></body></worldbody></mujoco>"""


_LARGE = "the geom 'link' is 173.2 m large"
_HEAVY = "the body 'arm' weighs 1e+09 kg"
_SMALL = "nothing that moves is larger than 0.00017 m"
CASES = [
    (arm(50.0), [_LARGE, _HEAVY]),
    (arm(50.0, 'mass="1"'), [_LARGE]),
    (arm(0.5, 'mass="1e9"'), [_HEAVY]),
    (arm(0.00005, 'mass="1"'), [_SMALL]),
    (arm(0.05), []),
    (arm(2.0, 'mass="5e4"'), []),  # a truck
    (arm(50.0).replace("<joint/>", ""), []),  # a building
]


@pytest.mark.parametrize(("text", "said"), CASES)
def test_sizes(text, said, tmp_path):
    """Note what is too large, too heavy or too small, wherever a model comes in."""
    path = tmp_path / "arm.xml"
    path.write_text(text)
    notes = doubtful_sizes(mujoco.MjModel.from_xml_string(text))
    assert len(notes) == len(said)
    assert all(note.startswith(start) for note, start in zip(notes, said, strict=True))
    assert [note for note in validate_file(path).warnings if note in notes] == notes
    lab = LiveLab(world_from_spec(mujoco.MjSpec()))
    lab.scene.add(path, "one")
    assert [note for note in lab.scene.notes if note in notes] == notes
    lab.scene.open(path)
    assert [note for note in lab.scene.notes if note in notes] == notes
    lab.stop()


def test_scenes_warn():
    """Warn of the size of an entity when a simulation of the scene is built."""
    robot = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(arm(50.0)))
    scene = Scene(SceneCfg(num_envs=1, entities={"robot": robot}), device="cpu")
    sim = Simulation(1, spec=scene.spec, device="cpu")
    with pytest.warns(UserWarning, match="the geom 'robot/link' is 173.2 m large"):
        scene.initialize(sim.mj_model, sim.model, sim.data)


@pytest.mark.parametrize(
    "name",
    [
        "dm_control:locomotion/walkers/assets/fruitfly_v2/fruitfly.xml",
        "dm_control:suite/point_mass.xml",
        "gymnasium:envs/mujoco/assets/swimmer.xml",
        "robots:unitree_g1/g1.xml",
    ],
)
def test_real_models_are_plausible(name):
    """Note nothing about the smallest, the largest and other models of other makers."""
    path: Path = find_model(name)
    assert not doubtful_sizes(mujoco.MjModel.from_xml_path(str(path)))
