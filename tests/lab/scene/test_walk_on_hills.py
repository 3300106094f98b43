"""Robots that walk on height fields that are added while they walk."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_spec
from manyworlds.lab.robots.controllers import Controller
from manyworlds.rl import OnnxPolicy
from tests.lab.policies import export_policy_of

FLOOR = "<mujoco><worldbody><geom name='floor' type='plane' size='9 9 1'/></worldbody></mujoco>"
LINK = 0.213  # [m], of a thigh and of a calf
PERIOD = 0.5  # [s], of the gait
STRIDE, LIFT, HEIGHT = 0.14, 0.08, 0.28  # [m]


class Trot(Controller):
    """Gait: two feet at opposite corners push while the other two swing forward."""

    name = "trot"

    def rebuilt(self, model, actuators):
        """Go on in a world that was edited."""
        return self

    def compute(self, model, data, target):
        """Return the angles of the joints at the present phase."""
        angles = {}
        for leg in ("FR", "FL", "RR", "RL"):
            phase = data.time / PERIOD + (0.5 if leg in ("FR", "RL") else 0.0)
            swing, share = divmod(2.0 * (phase % 1.0), 1.0)
            x = STRIDE * (share - 0.5) * (1.0 if swing else -1.0)
            z = -HEIGHT + swing * LIFT * np.sin(np.pi * share)
            knee = -np.arccos((x * x + z * z) / (2.0 * LINK**2) - 1.0)
            angles |= {
                f"{leg}_hip_joint": 0.1 if leg[1] == "L" else -0.1,
                f"{leg}_thigh_joint": np.arctan2(-x, -z) - knee / 2.0,
                f"{leg}_calf_joint": knee,
            }
        controls = np.zeros(len(target))
        for i in range(model.nu):
            joint = model.joint(model.actuator_trnid[i, 0]).name.split("/")[-1]
            controls[i] = angles[joint]
        return controls


def hills(x, y):
    """Heights [m]: even around the origin, and rising and falling by 6 cm before the robot."""
    even = 1.0 - np.exp(-((np.hypot(x, y) / 0.6) ** 4))
    return 0.002 + even * 0.03 * (1.0 - np.cos(3.0 * x) * np.cos(2.0 * y))


def test_a_gait_goes_over_hills():
    """Add a height field under a robot that trots: it goes on over it, up and down, and stands."""
    terrains = pytest.importorskip("manyworlds.terrains")
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(FLOOR)), LabCfg(mode="direct"))
    robot = get_quadruped_cfg()
    for actuator in robot.articulation.actuators:
        actuator.stiffness, actuator.damping = 80.0, 2.0
    lab.scene.add(robot, "quadruped")
    lab["quadruped"].controller = Trot()
    lab.step(200)
    lab.scene.add(terrains.HeightFieldCfg.sample(hills, (8.0, 4.0), (161, 81)), "hills", (0, 0, 0))
    assert isinstance(lab["quadruped"].controller, Trot), "the law goes on"
    trunk, ground = lab.model.body("quadruped/trunk").id, lab.model.geom("hills/terrain").id
    places, tilts, feet = [], [], set()
    for _ in range(60):
        lab.step(50)
        data = lab.loop.data
        places.append(data.xpos[trunk].copy())
        tilts.append(data.xmat[trunk, 8])
        feet |= {int(sum(pair)) - ground for pair in data.contact.geom if ground in pair}
    way = np.array(places)
    above = way[:, 2] - hills(way[:, 0], way[:, 1])
    assert way[-1, 0] > 1.0 and np.ptp(way[:, 2]) > 0.04, "it went up"
    assert min(tilts) > 0.95 and above.min() > 0.22 and above.max() < 0.32, "it did not fall"
    floor = lab.model.geom("floor").id
    assert len(feet) == 4 and not any(floor in pair for pair in data.contact.geom)
    assert not lab.loop.fault and not lab.loop.warnings
    lab.stop()


def test_a_policy_goes_on_over_hills(tmp_path):
    """Add a height field under a robot that a policy drives: it moves as in plain MuJoCo."""
    terrains = pytest.importorskip("manyworlds.terrains")
    path = export_policy_of("Velocity-Flat-Quadruped", tmp_path)
    world = world_from_file(tmp_path / "scene" / "scene.xml", by_prefix=True)
    lab = LiveLab(world, LabCfg(mode="direct"))
    lab.run_policy(path)
    lab.driving.clock = lambda: 0.0
    lab.driving.drive(twist=(0.5, 0.0, 0.5))
    lab.step(50)
    flat, before = lab.snapshot, lab.loop.data.time
    lab.scene.add(terrains.HeightFieldCfg.sample(hills, (8.0, 4.0), (161, 81)), "hills", (0, 0, 0))
    (robot,) = lab.controls
    assert robot.owner == "policy" and robot.controller.commands["twist"][0] > 0.0
    assert lab.loop.data.time == before and lab.snapshot.qpos.tolist() == flat.qpos.tolist()

    lab.scene.save(tmp_path / "hilly")
    lab.reset()
    command = robot.controller.commands["twist"].copy()
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "hilly" / "scene.xml"))
    plain = OnnxPolicy(path, model, commands={"twist": command}, check_timestep=False)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    plain.reset(data)
    for _ in range(40):
        plain.step(data)
    lab.step(40 * plain.description["decimation"])
    np.testing.assert_allclose(lab.snapshot.qpos, data.qpos, atol=1e-6)
    ground = model.geom("hills/terrain").id
    assert any(ground in pair for pair in data.contact.geom), "it is on the field"
    lab.stop()
