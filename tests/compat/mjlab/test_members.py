"""Members and parameters of the reference's classes."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
import yaml

from manyworlds.compat import mjlab
from manyworlds.compat.mjlab.members import ABSENT_MEMBERS, ABSENT_PARAMETERS
from manyworlds.entity import Entity, EntityCfg
from manyworlds.sensor import BuiltinSensor
from manyworlds.signals import DelayBuffer
from tests.compat.mjlab.surface import differences
from tests.envs.mdp.robot import make_env, robot_cfg
from tests.robots import robot_file


@pytest.fixture(autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


def _owner(place: str) -> type:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@pytest.mark.slow
def test_classes_lack_no_member():
    """Have all public members of the reference's classes, or an error with the remedy."""
    assert not differences()["member"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parameter", "required"])
def test_methods_have_the_same_parameters(kind):
    """Name parameters as the reference does, except for those that are known to be absent."""
    known = {path.partition("(")[0] for path in ABSENT_PARAMETERS}
    tasks = ("mjlab.tasks.cartpole.",)  # functions of tasks, not methods
    unknown = {
        line
        for line in differences()[kind]
        if not line.startswith(tasks)
        and line.partition(": ")[0].removeprefix("mjlab.") not in known
    }
    assert not unknown


@pytest.mark.parametrize(
    ("place", "name"), [(place, name) for place, names in ABSENT_MEMBERS.items() for name in names]
)
def test_an_absent_member_says_what_to_do(place, name):
    """Raise the remedy, so that `hasattr` is False, and only while the alias is installed."""
    cls = _owner(place)
    importlib.import_module("mjlab")
    with pytest.raises(AttributeError, match=rf"no {cls.__name__}\.{name}: \w+"):
        getattr(cls.__new__(cls), name)
    assert not hasattr(cls, name)
    mjlab.uninstall()
    assert name not in dir(cls)


def test_a_subclass_that_overrides_an_absent_member_is_refused():
    """Say so, since the method would never be called; other methods may be overridden."""
    from mjlab.sensor import RayCastSensor, TerrainHeightSensor

    for base in (RayCastSensor, TerrainHeightSensor):
        with pytest.raises(TypeError, match="Mine overrides postprocess_rays, which is never"):
            type("Mine", (base,), {"postprocess_rays": lambda self: None})
        type("Mine", (base,), {"_compute_data": lambda self: None})


def test_what_is_absent_is_documented():
    """List each absent member and parameter, with its reason, in the documentation."""
    text = shared_docs()
    for place, names in ABSENT_MEMBERS.items():
        for name in names:
            assert f"`{place.partition(':')[2]}.{name}`" in text
    for path, reason in ABSENT_PARAMETERS.items():
        assert f"`{path}` | {reason}" in text


def shared_docs() -> str:
    """Text of the page for those who come from the reference."""
    from tests.test_readme import ROOT

    return (ROOT / "docs" / "coming_from_mjlab.md").read_text()


@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def test_subsets_have_the_name_of_their_kind(robot):
    """Find elements by the reference's argument names, by keyword and by position."""
    path = str(robot_file(robot))
    entity = Entity(EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(path)))
    for kind in ("joint", "geom", "site"):
        find, names = getattr(entity, f"find_{kind}s"), getattr(entity, f"{kind}_names")
        subset = names[-3:]
        last = subset[-1]
        expected = ([len(subset) - 1], [last])
        assert find(last, subset) == find(last, **{f"{kind}_subset": subset}) == expected
        assert find(subset[::-1], subset, True)[1] == list(subset[::-1])
        assert [*inspect.signature(find).parameters][1] == f"{kind}_subset"
        with pytest.raises(TypeError, match="unexpected keyword argument 'wing_subset'"):
            find(".*", wing_subset=subset)


WRITERS = {
    "write_root_state": ("write_root_state_to_sim", "root_state", 13),
    "write_root_pose": ("write_root_link_pose_to_sim", "pose", 7),
    "write_root_velocity": ("write_root_link_velocity_to_sim", "velocity", 6),
    "write_root_velocity_b": ("write_root_link_velocity_b_to_sim", "velocity_b", 6),
    "write_root_com_velocity": ("write_root_com_velocity_to_sim", "velocity", 6),
    "write_joint_position": ("write_joint_position_to_sim", "position", 4),
    "write_joint_velocity": ("write_joint_velocity_to_sim", "velocity", 4),
    "write_ctrl": ("write_ctrl_to_sim", "ctrl", 5),
}


@pytest.mark.parametrize("name", WRITERS)
def test_an_entity_s_data_write_as_the_entity_does(name):
    """Write by the reference's names and keywords what the entity writes."""
    env = make_env(3)
    robot = env.scene["robot"]
    writer, keyword, width = WRITERS[name]
    values = torch.nn.functional.normalize(torch.randn(3, width), dim=1)
    start = _inputs(env)
    getattr(robot.data, name)(**{keyword: values})
    written = _inputs(env)
    env.sim.data.qpos[:], env.sim.data.qvel[:], env.sim.data.ctrl[:] = start
    getattr(robot, writer)(values)
    assert all(map(torch.equal, written, _inputs(env)))
    assert not all(map(torch.equal, written, start))


def _inputs(env: Any) -> list[torch.Tensor]:
    """Return copies of positions, velocities and controls."""
    data = env.sim.data
    return [data.qpos.clone(), data.qvel.clone(), data.ctrl.clone()]


def test_an_entity_s_data_write_joints_mocap_bodies_and_wrenches():
    """Write what concerns elements by the reference's keywords."""
    env = make_env(3)
    data = env.scene["robot"].data
    position = torch.rand(2, 1)
    data.write_joint_state(position=position, velocity=2 * position, joint_ids=[1], env_ids=[0, 2])
    assert torch.equal(data.joint_pos[[0, 2], 1:2], position)
    assert torch.equal(data.joint_vel[[0, 2], 1:2], 2 * position)
    data.write_external_wrench(torch.ones(3, 1, 3), None, [1])
    data.write_external_wrench(force=None, torque=torch.ones(1, 1, 3), body_ids=[1], env_ids=[2])
    assert data.body_external_wrench[2, 1].tolist() == [1.0] * 6
    assert data.body_external_wrench[1, 1].tolist() == [1.0] * 3 + [0.0] * 3
    fixed = make_env(2, floating=False)
    pose = torch.tensor([1.0, 2.0, 3.0, 0.5, 0.5, 0.5, 0.5]).repeat(2, 1)
    fixed.scene["robot"].data.write_mocap_pose(pose=pose)
    fixed.sim.forward()
    torch.testing.assert_close(fixed.scene["robot"].data.root_link_pos_w, pose[:, :3])


def test_attributes_are_declared_until_they_are_assigned():
    """Tell when an attribute has a value, on the class and too early on an instance."""
    entity = robot_cfg().build()
    actuator = entity.actuators[0]
    assert actuator.target_names == ["shoulder", "elbow"]
    with pytest.raises(AttributeError, match="'ctrl_ids' before its entity is part of a"):
        _ = actuator.ctrl_ids
    assert not hasattr(actuator, "global_ctrl_ids")


def test_a_built_in_sensor_is_named_by_its_configuration_or_itself():
    """Take a configuration first, or the name of a sensor of the model."""
    assert BuiltinSensor(name="robot/gyro").name == BuiltinSensor.from_existing("robot/gyro").name
    with pytest.raises(ValueError, match="neither a cfg nor a name"):
        BuiltinSensor()


def test_functions_take_the_same_arguments(tmp_path):
    """Delay three named targets, and write data as YAML to a name without a suffix."""
    from mjlab.actuator.actuator import delay_command
    from mjlab.utils.os import dump_yaml

    buffer = DelayBuffer(1, 1, 2, "cpu")
    first, second = (
        dict(zip(("position_target", "velocity_target", "effort_target"), row, strict=True))
        for row in torch.rand(2, 3, 2, 4)
    )
    delay_command(buffer, **first)
    late = delay_command(buffer, **second)
    assert all(map(torch.equal, late, first.values()))
    dump_yaml(filename=str(tmp_path / "params" / "env"), data={"b": 1, "a": 2}, sort_keys=True)
    text = (tmp_path / "params" / "env.yaml").read_text()
    assert yaml.safe_load(text) == {"a": 2, "b": 1} and text.index("a") < text.index("b")


def test_a_video_recorder_shows_the_members_of_its_environment(tmp_path, monkeypatch):
    """Forward what the reference's recorder lists, on the class and on an instance."""
    from mjlab.utils.wrappers import VideoRecorder

    env: Any = make_env(2)
    env.render_mode, env.renderer = "rgb_array", lambda: np.zeros((4, 4, 3), np.uint8)
    recorder = VideoRecorder(env, tmp_path, step_trigger=lambda step: False)
    for name in ("num_envs", "device", "step_dt", "physics_dt", "max_episode_length", "metadata"):
        assert name in dir(VideoRecorder) and getattr(recorder, name) == getattr(env, name)
    assert recorder.is_vector_env and recorder.get_observations() is env.obs_buf
    assert recorder.seed(3) == 3
