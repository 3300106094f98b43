"""Shapes, types and lifetimes of what members return, for the classes that projects read."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
import pytest
import torch

from manyworlds.compat import mjlab
from manyworlds.envs import mdp
from manyworlds.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.sensor import (
    BuiltinSensorCfg,
    CameraSensorCfg,
    ContactMatch,
    ContactSensorCfg,
    GridPatternCfg,
    ObjRef,
    RayCastSensorCfg,
    TerrainHeightSensorCfg,
)
from manyworlds.tasks.velocity.mdp import UniformVelocityCommandCfg
from manyworlds.terrains import TerrainEntityCfg
from tests.compat.names import shared_file
from tests.envs.mdp.robot import make_env, robot_cfg, shake

WORLDS = 3
SIZES = {
    **{"B": WORLDS, "bodies": 5, "geoms": 5, "sites": 2, "tendons": 1, "joints": 4, "drives": 5},
    **{"contacts": 4, "primaries": 2, "history": 4, "rays": 18, "frames": 2, "actions": 2},
    **{"height": 6, "width": 8, "targets": 2},
}
"""Sizes of the environment below, by name."""


def _frames(kind: str, count: str) -> dict[str, str]:
    """Return the shapes of the poses and velocities of elements, or of one without a count."""
    widths = {
        **{"pose_w": 7, "pos_w": 3, "quat_w": 4},
        **{"vel_w": 6, "lin_vel_w": 3, "ang_vel_w": 3},
    }
    return {f"{kind}_{name}": f"B {count} {width}" for name, width in widths.items()}


ENTITY_DATA = {
    **_frames("body_link", "bodies"),
    **_frames("body_com", "bodies"),
    **_frames("geom", "geoms"),
    **_frames("site", "sites"),
    **_frames("root_link", ""),
    **_frames("root_com", ""),
    **{f"root_{at}_{what}_vel_b": "B 3" for at in ("link", "com") for what in ("lin", "ang")},
    **{f"body_external_{what}": "B bodies 3" for what in ("force", "torque")},
    **{"body_external_wrench": "B bodies 6", "projected_gravity_b": "B 3", "heading_w": "B"},
    **{name: "B joints" for name in ("joint_pos", "joint_vel", "joint_acc", "joint_pos_biased")},
    **{name: "B joints" for name in ("qfrc_actuator", "qfrc_external", "encoder_bias")},
    **{"tendon_len": "B tendons", "tendon_vel": "B tendons", "actuator_force": "B drives"},
    **{"default_root_state": "B 13", "gravity_vec_w": "B 3", "forward_vec_b": "B 3"},
    **{f"default_joint_{what}": "B joints" for what in ("pos", "vel")},
    **{f"{kind}joint_pos_limits": "B joints 2" for kind in ("", "default_", "soft_")},
    **{f"joint_{what}_target": "B joints" for what in ("pos", "vel", "effort")},
    **{f"tendon_{what}_target": "B tendons" for what in ("len", "vel", "effort")},
    "site_effort_target": "B sites",
}
CONTACT_DATA = {
    **{name: "B contacts" for name in ("found", "dist")},
    **{name: "B contacts 3" for name in ("force", "torque", "pos", "normal", "tangent")},
    **{
        f"{when}_{what}_time": "B primaries"
        for when in ("current", "last")
        for what in ("air", "contact")
    },
    **{f"{what}_history": "B contacts history 3" for what in ("force", "torque")},
    "dist_history": "B contacts history",
}
RAYS = {
    **{"distances": "B rays", "normals_w": "B rays 3", "hit_pos_w": "B rays 3"},
    **{"pos_w": "B 3", "quat_w": "B 4"},
    **{"frame_pos_w": "B frames 3", "frame_quat_w": "B frames 4"},
}
CAMERA = {
    "rgb": "B height width 3 uint8",
    "depth": "B height width 1",
    "segmentation": "B height width 2 int32",
}
NUMBERS = (int, float, bool, str, np.integer)
NAMES = (list, tuple)
DEVICE = torch.device
"""mjlab's `device` is a string, which the table of the documentation names."""
_OF_TERM = {"device": DEVICE, "name": str, "num_envs": int}
_OF_MANAGER = {"device": DEVICE, "num_envs": int, "active_terms": list}

MEMBERS: dict[str, tuple[str, dict[str, Any]]] = {
    "mjlab.entity.data:EntityData": (
        "scene['robot'].data",
        {
            **{**ENTITY_DATA, "indexing": object, "data": object, "model": object},
            **{f"is_{what}": bool for what in ("fixed_base", "articulated", "actuated")},
            "device": DEVICE,
        },
    ),
    "mjlab.entity.entity:Entity": (
        "scene['robot']",
        {
            **{f"num_{kind}": int for kind in ("bodies", "joints", "geoms", "sites", "tendons")},
            **{f"num_{kind}": int for kind in ("cameras", "lights", "materials", "textures")},
            **{f"num_{kind}": int for kind in ("pairs", "actuators")},
            **{f"{kind}_names": tuple for kind in ("body", "joint", "all_joint", "geom", "site")},
            **{f"{kind}_names": tuple for kind in ("tendon", "camera", "light", "material")},
            **{f"{kind}_names": tuple for kind in ("texture", "pair", "actuator")},
            **{f"is_{what}": bool for what in ("fixed_base", "articulated", "actuated", "mocap")},
            **{f"has_{what}_actuators": bool for what in ("tendon", "site")},
            **{"actuators": list, "data": object, "spec": object, "root_body": object},
            "variant_metadata": type(None),
        },
    ),
    "mjlab.sensor.contact_sensor:ContactData": ("scene['touch'].data", CONTACT_DATA),
    "mjlab.sensor.contact_sensor:ContactSensor": (
        "scene['touch']",
        {"data": object, "primary_names": list},
    ),
    "mjlab.sensor.raycast_sensor:RayCastData": ("scene['scan'].data", RAYS),
    "mjlab.sensor.raycast_sensor:RayCastSensor": (
        "scene['scan']",
        {
            **{f"num_{what}": int for what in ("frames", "rays", "rays_per_frame")},
            **{"data": object, "include_geom_groups": tuple},
        },
    ),
    "mjlab.sensor.terrain_height_sensor:TerrainHeightData": (
        "scene['heights'].data",
        {**RAYS, "heights": "B frames"},
    ),
    "mjlab.sensor.camera_sensor:CameraSensorData": ("scene['camera'].data", CAMERA),
    "mjlab.sensor.camera_sensor:CameraSensor": (
        "scene['camera']",
        {"camera_idx": int, "camera_name": str, "data": object},
    ),
    "mjlab.sensor.builtin_sensor:BuiltinSensor": ("scene['robot/gyro']", {"data": "B 3"}),
    "mjlab.managers.action_manager:ActionManager": (
        "action_manager",
        {
            **_OF_MANAGER,
            **{name: "B actions" for name in ("action", "prev_action", "prev_prev_action")},
            **{"action_term_dim": list, "total_action_dim": int},
        },
    ),
    "mjlab.managers.action_manager:ActionTerm": (
        "action_manager.get_term('position')",
        {**_OF_TERM, "action_dim": int, "raw_action": "B actions"},
    ),
    "mjlab.envs.mdp.actions.actions:JointPositionAction": (
        "action_manager.get_term('position')",
        {
            **{**_OF_TERM, "action_dim": int, "raw_action": "B actions"},
            **{"scale": "B actions", "offset": "B actions"},
            **{"target_ids": "targets int64", "target_names": NAMES},
        },
    ),
    "mjlab.managers.command_manager:CommandManager": ("command_manager", _OF_MANAGER),
    "mjlab.tasks.velocity.mdp.velocity_command:UniformVelocityCommand": (
        "command_manager.get_term('twist')",
        {**_OF_TERM, "command": "B 3"},
    ),
    "mjlab.managers.observation_manager:ObservationManager": (
        "observation_manager",
        {
            **{**_OF_MANAGER, "active_terms": dict},
            **{f"group_obs_{what}": dict for what in ("dim", "term_dim", "concatenate")},
        },
    ),
    "mjlab.managers.reward_manager:RewardManager": ("reward_manager", _OF_MANAGER),
    "mjlab.managers.termination_manager:TerminationManager": (
        "termination_manager",
        {**_OF_MANAGER, **{name: "B bool" for name in ("dones", "terminated", "time_outs")}},
    ),
    "mjlab.managers.event_manager:EventManager": (
        "event_manager",
        {
            **{**_OF_MANAGER, "active_terms": dict},
            **{"available_modes": list, "domain_randomization_fields": tuple},
        },
    ),
    "mjlab.managers.curriculum_manager:CurriculumManager": ("curriculum_manager", _OF_MANAGER),
    "mjlab.managers.metrics_manager:MetricsManager": ("metrics_manager", _OF_MANAGER),
    "mjlab.actuator.actuator:Actuator": (
        "scene['robot'].actuators[0]",
        {
            **{name: "targets int64" for name in ("ctrl_ids", "global_ctrl_ids", "target_ids")},
            **{"has_delay": bool, "target_names": NAMES, "transmission_type": object},
        },
    ),
    "mjlab.scene.scene:Scene": (
        "scene",
        {
            **{"device": DEVICE, "num_envs": int, "env_spacing": float, "env_origins": "B 3"},
            **{"entities": dict, "sensors": dict, "spec": object, "terrain": object},
            "sensor_context": object,
        },
    ),
    "mjlab.sim.sim:Simulation": (
        "sim",
        {
            **{name: object for name in ("data", "model", "mj_data", "mj_model")},
            **{"expanded_fields": set, "per_world_default_fields": set},
            **{"default_model_fields": dict, "world_to_variant": dict},
        },
    ),
    "mjlab.envs.manager_based_rl_env:ManagerBasedRlEnv": (
        "",
        {
            **{"device": DEVICE, "num_envs": int, "physics_dt": float, "step_dt": float},
            **{"max_episode_length": int, "max_episode_length_s": float, "unwrapped": object},
        },
    ),
}
"""What each public property or field returns: sizes and dtype of a tensor, else its type."""

REFUSED = {
    "mjlab.entity.data:EntityData": {"joint_torques"},
    "mjlab.sim.sim:Simulation": {"wp_data", "wp_model"},
}
"""Properties that raise an error, there or on the native engine."""
LIVE = {
    **{"action_manager": {"action", "prev_action", "prev_prev_action"}},
    **{"action_manager.get_term('position')": {"raw_action"}},
    **{"command_manager.get_term('twist')": {"command"}, "scene['robot/gyro']": {"data"}},
    "scene['camera'].data": set(CAMERA),  # unless `clone_data` is set
}
"""Tensors that a step writes in place, as in mjlab; others keep the values that were read."""


@pytest.fixture(scope="module")
def env() -> Any:
    """Three worlds with all kinds of sensors and terms, in motion."""
    body = ObjRef("body", "base", "robot")
    site = ObjRef("site", "tip", "robot")
    grid = GridPatternCfg((0.2, 0.2), 0.1)
    touch = ContactSensorCfg(
        name="touch",
        primary=ContactMatch("body", ("tip", "tail"), "robot"),
        fields=("found", "force", "torque", "dist", "pos", "normal", "tangent"),
        num_slots=2,
        track_air_time=True,
        history_length=4,
    )
    sensors = (
        touch,
        RayCastSensorCfg(name="scan", frame=(body, site), pattern=grid),
        TerrainHeightSensorCfg(name="heights", frame=(body, site), pattern=grid),
        BuiltinSensorCfg("acceleration", "accelerometer", ObjRef("site", "imu", "robot")),
        CameraSensorCfg(
            name="camera",
            parent_body="robot/base",
            width=8,
            height=6,
            data_types=("rgb", "depth", "segmentation"),
        ),
    )
    scene = SceneCfg(
        num_envs=WORLDS,
        entities={"robot": robot_cfg()},
        terrain=TerrainEntityCfg(terrain_type="plane"),
        sensors=sensors,
    )
    ranges = UniformVelocityCommandCfg.Ranges((0.5, 1.0), (-0.5, 0.5), (-1.0, 1.0))
    twist = UniformVelocityCommandCfg(
        entity_name="robot", resampling_time_range=(0.005, 0.005), ranges=ranges
    )
    alive = RewardTermCfg(func=mdp.is_alive, weight=1.0)
    mjlab.install()
    for place in MEMBERS:
        importlib.import_module(place.partition(":")[0])
    env = make_env(
        WORLDS,
        scene=scene,
        actions={
            "position": mdp.JointPositionActionCfg(
                entity_name="robot", actuator_names=("shoulder", "elbow")
            )
        },
        observations={"actor": ObservationGroupCfg({"q": ObservationTermCfg(mdp.joint_pos_rel)})},
        rewards={"alive": alive},
        terminations={"time": TerminationTermCfg(mdp.time_out, time_out=True)},
        commands={"twist": twist},
        metrics={"speed": MetricsTermCfg(func=lambda env: torch.ones(env.num_envs))},
        curriculum={"none": CurriculumTermCfg(func=lambda env, ids: 0.0)},
        events={"still": EventTermCfg(func=lambda env, ids: None, mode="reset")},
        episode_length_s=1.0,
    )
    torch.manual_seed(0)
    env.reset()
    shake(env, 2)
    env.step(torch.randn(WORLDS, 2))
    yield env
    mjlab.uninstall()


def _object(env: Any, path: str) -> Any:
    """Return a part of an environment."""
    if not path:
        return env
    return eval(f"env.{path}", {"env": env})


@pytest.mark.parametrize("place", MEMBERS)
def test_members_have_the_shapes_and_types_of_the_reference(env, place):
    """Return tensors of the documented sizes and dtype, on the device, and others of their type."""
    path, members = MEMBERS[place]
    for name, expected in members.items():
        value = getattr(_object(env, path), name)
        if not isinstance(expected, str):
            assert isinstance(value, expected), name
            continue
        *sizes, last = expected.split()
        dtype = "float32"
        if last in ("uint8", "int32", "int64", "bool"):
            dtype = last
        else:
            sizes.append(last)
        shape = tuple(SIZES.get(size) or int(size) for size in sizes)
        assert isinstance(value, torch.Tensor), name
        assert (tuple(value.shape), value.dtype) == (shape, getattr(torch, dtype)), name


@pytest.mark.parametrize("place", MEMBERS)
def test_all_public_members_are_compared(place):
    """Leave out no public property or field of the reference."""
    surface = json.loads(shared_file("peer/mjlab_surface.json").read_text())
    module, _, name = place.partition(":")
    entry = surface[module][name]
    public = {each for each, kind in entry.get("members", {}).items() if kind == "prop"}
    if name.endswith("Data"):
        public |= set(entry["fields"])
    assert public <= set(MEMBERS[place][1]) | REFUSED.get(place, set())


def test_what_was_read_stays_or_follows(env):
    """Keep earlier values in tensors that a step makes anew; others are those that it writes."""
    read: dict[tuple[str, str], torch.Tensor] = {}
    for path, members in MEMBERS.values():
        for name in members:
            value = getattr(_object(env, path), name)
            if isinstance(value, torch.Tensor):
                read[path, name] = value
    before = {key: value.clone() for key, value in read.items()}
    torch.manual_seed(1)
    env.sim.data.qvel.add_(torch.randn_like(env.sim.data.qvel))
    env.step(torch.randn(WORLDS, 2))
    changed = followed = 0
    for (path, name), value in read.items():
        now = getattr(_object(env, path), name)
        if name in LIVE.get(path, ()):
            assert torch.equal(value, now), (path, name)
            followed += not torch.equal(value, before[path, name])
        elif not torch.equal(now, before[path, name]):
            changed += 1
            if not name.endswith("_target"):  # which users write, too
                assert torch.equal(value, before[path, name]), (path, name)
    assert changed > 50 and followed > 4


def test_families_agree(env):
    """Compose poses of positions and orientations, and velocities of linear and angular ones."""
    data = env.scene["robot"].data
    for kind in ("body_link", "body_com", "geom", "site", "root_link", "root_com"):
        pos, quat, pose = (getattr(data, f"{kind}_{name}_w") for name in ("pos", "quat", "pose"))
        assert torch.equal(pose, torch.cat([pos, quat], dim=-1))
        torch.testing.assert_close(quat.norm(dim=-1), torch.ones(quat.shape[:-1]))
        lin, ang, vel = (getattr(data, f"{kind}_{name}vel_w") for name in ("lin_", "ang_", ""))
        assert torch.equal(vel, torch.cat([lin, ang], dim=-1))
    assert torch.equal(data.joint_pos_biased, data.joint_pos + data.encoder_bias)
    torch.testing.assert_close(data.projected_gravity_b.norm(dim=-1), torch.ones(WORLDS))


@pytest.mark.parametrize("name", ["device", "num_envs"])
def test_parts_agree_with_the_environment(env, name):
    """Have one number of worlds and one device everywhere."""
    for path, members in MEMBERS.values():
        if name in members:
            assert getattr(_object(env, path), name) == getattr(env, name)
