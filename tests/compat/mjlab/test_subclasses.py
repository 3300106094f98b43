"""Subclasses that projects for mjlab write run here, and what they write takes effect."""

from __future__ import annotations

import importlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.compat import mjlab
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    CurriculumTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RecorderTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks import load_env_cfg
from tests.envs.mdp.robot import make_env, robot_cfg, shake
from tests.robots import robot_file

DECIMATION = 3


@pytest.fixture(autouse=True)
def user() -> Any:
    """Install the alias and load the project."""
    mjlab.install()
    yield importlib.import_module("tests.compat.mjlab.user_terms")
    mjlab.uninstall()


def action_width(env: ManagerBasedRlEnv) -> int:
    """Width of the action vector."""
    return env.action_manager.total_action_dim


@pytest.mark.parametrize(
    ("task", "robot"),
    [
        ("Reach", None),
        ("Mjlab-Lift-Cube-Yam", "i2rt_yam/yam.xml"),
        ("Mjlab-Velocity-Flat-Unitree-Go1", "unitree_go1/go1.xml"),
    ],
)
def test_an_action_may_process_its_slice_itself(user, task, robot):
    """Apply targets that a subclass computes from the attributes of its base class."""
    if robot is not None:
        robot_file(robot)
    cfg = load_env_cfg(task, play=True)
    cfg.scene.num_envs = 2
    name, given = next(iter(cfg.actions.items()))
    cfg.actions = {
        name: user.SmoothedActionCfg(
            entity_name=given.entity_name,
            actuator_names=(".*",),
            scale=0.5,
            clip={".*": (-0.6, 0.6)},
        )
    }
    cfg.terminations = {}
    env = ManagerBasedRlEnv(cfg, device="cpu")
    term, robot = env.action_manager._terms[name], env.scene[given.entity_name]
    assert term is env.action_manager.get_term(name) and term._entity is robot
    assert term._num_targets == term._action_dim == len(term._target_names)
    assert tuple(robot.joint_names[i] for i in term._target_ids) == tuple(term._target_names)
    env.reset()
    first, second = (torch.randn(2, action_width(env)) for _ in range(2))
    env.step(first)
    env.step(second)
    scale = torch.tensor([[0.5], [0.25]])
    offset = robot.data.default_joint_pos[:, term._target_ids].clone()
    offset[:, 0] += 0.1
    expected = ((0.25 * first + 0.5 * second) * scale + offset).clamp(-0.6, 0.6)
    bias = robot.data.encoder_bias[:, term._target_ids]
    torch.testing.assert_close(robot.data.joint_pos_target[:, term._target_ids], expected - bias)
    torch.testing.assert_close(env.action_manager._action, second)
    torch.testing.assert_close(env.action_manager._prev_action, first)
    assert not env.action_manager._prev_prev_action.any()
    term.reset(torch.tensor([0]))
    assert not term._smoothed[0].any() and term._smoothed[1].any()


def motor_env(actuator: Any = None, entity: Any = EntityCfg, **fields: Any) -> ManagerBasedRlEnv:
    """Build three worlds with a pendulum, driven by a motor or by another actuator."""
    from manyworlds.actuator import BuiltinMotorActuatorCfg

    xml = """<mujoco><worldbody><body name="arm" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping=".01"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/>
    </body></worldbody></mujoco>"""
    actuator = actuator or BuiltinMotorActuatorCfg(target_names_expr=("hinge",), effort_limit=50.0)
    robot = entity(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        articulation=EntityArticulationInfoCfg(actuators=(actuator,)),
    )
    position = mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))
    make = fields.pop("make", ManagerBasedRlEnv)
    fields = {
        "decimation": DECIMATION,
        "episode_length_s": 10.0,
        "seed": 3,
        "scene": SceneCfg(num_envs=3, entities={"robot": robot}, sensors=fields.pop("sensors", ())),
        "sim": SimulationCfg(mujoco=MujocoCfg(timestep=0.005)),
        "actions": {"position": position},
        **fields,
    }
    return make(ManagerBasedRlEnvCfg(**fields))


def test_an_own_apply_actions_runs_in_every_physics_step(user):
    """Give a law of the state the state of each physics step, unless it says that it needs none."""
    spring = user.SpringActionCfg(entity_name="robot", actuator_names=("hinge",), scale=2.0)
    env = motor_env(actions={"spring": spring})
    term, joint = env.action_manager.get_term("spring"), env.scene["robot"].data
    action = torch.tensor([[0.1], [0.2], [-0.3]])
    env.step(action)
    assert len(term.applied) == DECIMATION
    assert not torch.equal(term.applied[0], term.applied[-1])
    torch.testing.assert_close(term.applied[0], 6.0 * action)
    torch.testing.assert_close(joint.joint_effort_target, term.applied[-1])
    assert env.action_manager.needs_substeps
    for cls, expected in ((user.SmoothedAction, False), (mdp.JointEffortAction, False)):
        assert cls.needs_substeps.fget(cls.__new__(cls)) is expected


def twist_ranges(user) -> Any:
    """Bounds of the samples that the subclass overwrites in part."""
    return user.UniformVelocityCommandCfg.Ranges(
        lin_vel_x=(-1.0, 1.0), lin_vel_y=(-1.0, 1.0), ang_vel_z=(-0.4, 0.4), heading=(-3.0, 3.0)
    )


def test_a_velocity_command_may_resample_by_itself(user):
    """Follow what a subclass writes, after resets and after the time of a command."""
    cfg = user.TrotCommandCfg(
        entity_name="robot",
        resampling_time_range=(0.04, 0.04),
        heading_command=True,
        heading_control_stiffness=0.8,
        rel_standing_envs=0.5,
        ranges=twist_ranges(user),
    )
    env = make_env(4, commands={"twist": cfg})
    term = env.command_manager.get_term("twist")
    assert term is env.command_manager._terms["twist"] and term.resampled == [[0, 1, 2, 3]]
    shake(env, 1)
    for _ in range(8):
        env.step(torch.zeros(4, 2))
    # The first reset, and then each 0.04 s, in 9 steps of 0.01 s.
    assert term.resampled == [[0, 1, 2, 3]] * 3
    assert term.command_counter.tolist() == [3] * 4
    error = 0.5 - env.scene["robot"].data.heading_w
    turning = (0.8 * (torch.remainder(error + torch.pi, 2 * torch.pi) - torch.pi)).clamp(-0.4, 0.4)
    moving = torch.tensor([1.0, 1.0, 0.0, 1.0])
    assert (term.command[:, 0] == 0.7 * moving).all() and not term.command[:, 1].any()
    torch.testing.assert_close(term.command[:, 2], turning * moving)
    peak = term.metrics["peak"].clone()
    assert (peak > 0).all()
    _, extras = env.reset(env_ids=torch.tensor([1, 3]))
    assert term.resampled[-1] == [1, 3] and term.command_counter.tolist() == [3, 1, 3, 1]
    torch.testing.assert_close(extras["log"]["Metrics/twist/peak"], peak[[1, 3]].mean())
    assert "Metrics/twist/error_vel_xy" in extras["log"]


@pytest.mark.parametrize(
    ("task", "robot"),
    [
        ("Velocity-Flat-Quadruped", None),
        ("Velocity-Rough-Humanoid", None),
        ("Mjlab-Velocity-Flat-Unitree-Go1", "unitree_go1/go1.xml"),
    ],
)
def test_registered_tasks_follow_commands_of_ones_own(user, task, robot):
    """Replace the command of a task; observations and rewards see what it samples."""
    if robot is not None:
        robot_file(robot)
    cfg = load_env_cfg(task)
    cfg.scene.num_envs = 3
    given = {key: value for key, value in vars(cfg.commands["twist"]).items()}
    cfg.commands["twist"] = user.TrotCommandCfg(**given)
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    with torch.inference_mode():
        for _ in range(2):
            env.step(torch.zeros(3, action_width(env)))
    term = env.command_manager.get_term("twist")
    assert term.command[:2, 0].tolist() == pytest.approx([0.7, 0.7])
    assert not term.command[2].any() and term.resampled[-1] == [0, 1, 2]
    torch.testing.assert_close(
        term.speed, term.command[:, :2].norm(dim=1) + term.command[:, 2].abs()
    )
    shown = mdp.generated_commands(env, "twist")
    assert torch.equal(shown, term.command)


def test_what_is_written_to_a_velocity_command_stays(user):
    """Keep values written from outside until the next sample; a viewer's value hides them."""
    cfg = user.UniformVelocityCommandCfg(
        entity_name="robot", resampling_time_range=(9.0, 9.0), ranges=twist_ranges(user)
    )
    env = make_env(3, commands={"twist": cfg})
    term = env.command_manager.get_term("twist")
    term.vel_command_b[:] = torch.tensor([0.3, -0.2, 0.1])
    term.is_standing_env[2] = True
    env.step(torch.zeros(3, 2))
    expected = torch.tensor([[0.3, -0.2, 0.1], [0.3, -0.2, 0.1], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(env.command_manager.get_command("twist"), expected)
    torch.testing.assert_close(term.speed, torch.tensor([0.13**0.5 + 0.1] * 2 + [0.0]))
    term.steer(0, (1.0, 2.0, 3.0))
    with torch.inference_mode():
        env.step(torch.zeros(3, 2))
        assert term.speed[0] == pytest.approx(5.0**0.5 + 3.0)
    assert term.command[0].tolist() == [1.0, 2.0, 3.0]
    assert term.speed[0] == pytest.approx(5.0**0.5 + 3.0)
    term.steer(0, None)
    torch.testing.assert_close(term.command, expected)


def test_a_command_of_ones_own_is_served(user):
    """Call the hooks of a command in each step, and log and draw what it keeps."""
    cfg = user.GaitCommandCfg(resampling_time_range=(100.0, 100.0), debug_vis=True)
    env = make_env(2, commands={"gait": cfg})
    term = env.command_manager.get_term("gait")
    for _ in range(5):
        env.step(torch.zeros(2, 2))
    torch.testing.assert_close(term.metrics["cycles"], term.frequency * 5 * env.step_dt)
    torch.testing.assert_close(term.phase, term.frequency * 5 * env.step_dt)
    torch.testing.assert_close(term.command[:, 0], (2 * torch.pi * term.phase).sin())
    torch.testing.assert_close(term.time_left, torch.full((2,), 100.0 - 5 * env.step_dt))
    drawn = []
    pen = SimpleNamespace(
        get_env_indices=lambda num_envs: [1],
        add_sphere=lambda center, radius, color: drawn.append(radius),
    )
    env.command_manager.debug_vis(pen)
    assert drawn == [term.phase[1].item()]


def test_the_page_of_a_viewer_may_show_and_hide_commands(user):
    """Add a checkbox for each command that can be drawn, as mjlab's viewers do."""
    env = make_env(
        1,
        commands={
            "gait": user.GaitCommandCfg(resampling_time_range=(1.0, 1.0)),
            "flat": undrawn(user),
        },
    )
    boxes: list[Any] = []

    def add_checkbox(label: str, initial_value: bool) -> Any:
        box = SimpleNamespace(label=label, value=initial_value)
        box.on_update = lambda handler: setattr(box, "handler", handler)
        boxes.append(box)
        return box

    changes: list[None] = []
    server = SimpleNamespace(gui=SimpleNamespace(add_checkbox=add_checkbox))
    env.command_manager.create_debug_vis_gui(server, on_change=lambda: changes.append(None))
    assert [(box.label, box.value) for box in boxes] == [("Show command 'gait'", False)]
    boxes[0].value = True
    boxes[0].handler(SimpleNamespace(client=object()))
    assert env.command_manager.get_term("gait").cfg.debug_vis and len(changes) == 1


def undrawn(user) -> Any:
    """Configure a command that cannot be drawn."""

    class Flat(user.CommandTerm):
        command = torch.zeros(1, 1)

        def _resample_command(self, env_ids):
            pass

        def _update_command(self, env_ids=None):
            pass

        def _update_metrics(self):
            pass

    class Cfg(user.CommandTermCfg):
        def build(self, env):
            return Flat(self, env)

    return Cfg(resampling_time_range=(1.0, 1.0))


def test_a_sensor_sees_every_physics_step(user):
    """Update a sensor with an own `update` after each physics step; compute when it is read."""
    env = motor_env(sensors=(user.PeakSensorCfg(name="peak", entity_name="robot"),))
    sensor = env.scene["peak"]
    sensor.steps.clear()
    env.sim.data.qvel[:] = torch.tensor([[2.0], [-3.0], [1.0]])
    env.step(torch.zeros(3, 1))
    assert sensor.steps == [env.physics_dt] * DECIMATION and sensor.computed == 0
    before = sensor.data
    assert sensor.data is before and sensor.computed == 1
    torch.testing.assert_close(before, sensor.peak)
    invalid = sensor.invalidated
    env.step(torch.zeros(3, 1))
    assert sensor.invalidated > invalid and (sensor.data >= before).all() and sensor.computed == 2
    env.reset(env_ids=torch.tensor([1]))
    assert not sensor.data[1].any() and sensor.data[0].any()


def test_a_sensor_may_return_the_data_of_rays(user):
    """Construct mjlab's data of rays; what is computed from it agrees."""
    env = make_env(
        3, scene=scene_with(user.FakeScanCfg(name="scan", entity_name="robot")), events={}
    )
    shake(env, 3)
    data, root = env.scene["scan"].data, env.scene["robot"].data
    torch.testing.assert_close(data.distances[:, 0], root.root_link_pos_w[:, 2])
    torch.testing.assert_close(data.quat_w, root.root_link_quat_w)
    matrix = env.sim.data.xmat[:, root.indexing.root_body_id].view(-1, 3, 3)
    torch.testing.assert_close(data.frame_mat_w[:, 0], matrix, rtol=1e-5, atol=1e-5)
    nearer = replace(data, distances=0.5 * data.distances)
    torch.testing.assert_close(nearer.quat_w.abs(), data.quat_w.abs(), rtol=1e-4, atol=1e-5)


def scene_with(*sensors: Any) -> SceneCfg:
    """Put the small robot and sensors into a scene."""
    return SceneCfg(num_envs=3, entities={"robot": robot_cfg()}, sensors=sensors)


def drop_weight(env: Any, env_ids: Any, reward_name: str) -> torch.Tensor:
    """Change a weight through the manager's private lists, and return the term's sum."""
    manager = env.reward_manager
    total = manager._episode_sums[reward_name][env_ids].mean()
    index = manager._term_names.index(reward_name)
    manager._term_cfgs[index].weight = 0.5
    return total


def test_a_reward_class_keeps_state_and_managers_show_their_terms(user):
    """Call a class term with its state; let a curriculum read sums and change weights."""
    env = motor_env(
        rewards={
            "alive": RewardTermCfg(func=mdp.is_alive, weight=1.0),
            "travelled": RewardTermCfg(func=user.Distance, weight=4.0, params={"joint": 0}),
        },
        terminations={"time": TerminationTermCfg(func=mdp.time_out, time_out=True)},
        curriculum={
            "drop": CurriculumTermCfg(func=drop_weight, params={"reward_name": "travelled"})
        },
        observations={
            "actor": ObservationGroupCfg(terms={"q": ObservationTermCfg(func=mdp.joint_pos_rel)})
        },
    )
    manager = env.reward_manager
    assert manager._term_names == ["alive", "travelled"] and manager.cfg["travelled"].weight == 0.5
    [term_cfg] = manager._class_term_cfgs
    assert isinstance(term_cfg.func, user.Distance) and term_cfg.func.cfg is term_cfg
    assert env.observation_manager._group_obs_term_names == {"actor": ["q"]}
    assert env.observation_manager._group_obs_term_cfgs["actor"][0].func is mdp.joint_pos_rel
    assert env.action_manager.cfg["position"] is env.action_manager._term_cfgs[0]
    assert env.event_manager._mode_term_names == {"reset": ["reset_scene_to_default"]}
    env.sim.data.qvel[:] = 1.0
    before = env.scene["robot"].data.joint_pos[:, 0].clone()
    env.step(torch.zeros(3, 1))
    moved = env.scene["robot"].data.joint_pos[:, 0] - before
    torch.testing.assert_close(manager._step_reward[:, 1], 0.5 * moved)
    torch.testing.assert_close(manager._episode_sums["travelled"], 0.5 * moved * env.step_dt)
    assert env.termination_manager._term_dones["time"].tolist() == [False] * 3
    env.curriculum_manager.compute()
    assert env.curriculum_manager.reset()["Curriculum/drop"] == pytest.approx(
        (0.5 * moved * env.step_dt).mean().item()
    )
    term_cfg.func.resets.clear()
    env.reset(env_ids=torch.tensor([2]))
    assert len(term_cfg.func.resets) == 1 and manager._episode_sums["travelled"][2] == 0.0


def test_a_recorder_is_called_in_order(user):
    """Call the hooks of a recorder around resets and after steps."""
    env = motor_env(
        episode_length_s=2 * DECIMATION * 0.005,
        rewards={"alive": RewardTermCfg(func=mdp.is_alive, weight=1.0)},
        terminations={"time": TerminationTermCfg(func=mdp.time_out, time_out=True)},
        recorders={"returns": RecorderTermCfg(func=user.Returns)},
    )
    recorder = env.recorder_manager.get_term("returns")
    recorder.calls.clear()
    rewards = [env.step(torch.zeros(3, 1))[1].clone() for _ in range(2)]
    assert recorder.calls == ["post_step", "pre_reset", "post_reset", "post_step"]
    assert recorder.lengths == [2, 2, 2] and all(map(torch.equal, recorder.rewards, rewards))
    env.close()
    assert recorder.calls[-1] == "close"


def test_a_manager_of_ones_own_is_loaded(user):
    """Prepare the terms of a new kind of manager as those of the others."""
    from mjlab.managers import ManagerBase
    from mjlab.managers.manager_base import ManagerTermBaseCfg

    class Env(user.ConstrainedEnv):
        constraints = {
            "reach": ManagerTermBaseCfg(func=user.Distance, params={"joint": 0}),
            "zero": ManagerTermBaseCfg(func=lambda env: torch.zeros(env.num_envs)),
        }

    env = motor_env(make=Env)
    manager = env.constraint_manager
    assert manager.active_terms == ["reach", "zero"] and manager._env is env
    env.sim.data.qvel[:] = torch.tensor([[1.0], [-1.0], [0.0]])
    env.step(torch.zeros(3, 1))
    values = manager.compute()
    assert values[0] > 0.0 and values[1:].tolist() == [0.0, 0.0]
    assert isinstance(manager, ManagerBase) and isinstance(env.reward_manager, ManagerBase)
    assert not isinstance(env.reward_manager, user.ConstraintManager)


def test_an_actuator_of_ones_own_runs_in_every_physics_step(user):
    """Give a law from the base class the state of each physics step, and apply its controls."""
    env = motor_env(user.LagActuatorCfg(target_names_expr=("hinge",)))
    [actuator] = env.scene["robot"].actuators
    assert actuator.target_names == ["hinge"] and actuator.target_ids.tolist() == [0]
    assert actuator.ctrl_ids.tolist() == actuator.global_ctrl_ids.tolist() == [0]
    actuator.seen.clear()
    env.step(torch.full((3, 1), 0.4))
    assert len(actuator.seen) == DECIMATION and not torch.equal(*actuator.seen[-2:])
    torch.testing.assert_close(env.sim.data.ctrl, actuator.effort)
    with pytest.raises(NotImplementedError, match="LagActuator has no control law apart"):
        actuator.control_law({}, None)


@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def test_laws_of_ones_own_are_applied_to_real_robots(user, robot):
    """Evaluate an own control law of a group once, and an own `compute` in each physics step."""
    from manyworlds.scene import Scene
    from manyworlds.sim import Simulation

    spec = mujoco.MjSpec.from_file(str(robot_file(robot)))
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for key in list(spec.keys):
        spec.delete(key)
    names = [j.name for j in spec.joints if j.type != mujoco.mjtJoint.mjJNT_FREE]
    half = len(names) // 2
    cubic = user.CubicActuatorCfg(
        target_names_expr=tuple(names[:half]), stiffness=7.0, damping=0.0, effort_limit=100.0
    )
    sluggish = user.SluggishActuatorCfg(
        target_names_expr=tuple(names[half:]), stiffness=20.0, damping=1.0
    )
    cfg = EntityCfg(
        spec_fn=lambda: spec,
        articulation=EntityArticulationInfoCfg(actuators=(cubic, sluggish)),
    )
    scene = Scene(SceneCfg(num_envs=2, entities={"robot": cfg}), "cpu")
    sim = Simulation(2, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    data = scene["robot"].data
    assert scene.needs_substeps
    target = data.joint_pos + torch.linspace(-0.5, 0.5, len(names))
    scene["robot"].set_joint_position_target(target)
    scene.write_data_to_sim()
    error = target - data.joint_pos
    torch.testing.assert_close(sim.data.ctrl[:, :half], 7.0 * error[:, :half] ** 3)
    expected = (data.joint_pos + error.clamp(-0.01, 0.01))[:, half:]
    torch.testing.assert_close(sim.data.ctrl[:, half:], expected)


def test_an_entity_acts_in_every_physics_step(user):
    """Write what an entity's own method computes before each physics step, as MuJoCo C would."""
    env = motor_env(entity=user.DragEntityCfg)
    robot = env.scene["robot"]
    env.sim.data.qvel[:] = 4.0
    env.sim.forward()
    plain = mujoco.MjData(env.sim.mj_model)
    plain.qvel[:] = 4.0
    body = env.sim.mj_model.body("robot/arm").id
    mujoco.mj_forward(env.sim.mj_model, plain)
    for _ in range(DECIMATION):
        velocity = torch.zeros(6, dtype=torch.float64).numpy()
        mujoco.mj_objectVelocity(
            env.sim.mj_model, plain, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0
        )
        plain.xfrc_applied[body, :3] = -0.5 * velocity[3:]
        mujoco.mj_step(env.sim.mj_model, plain)
    env.step(torch.zeros(3, 1))
    assert robot.needs_substeps
    torch.testing.assert_close(
        env.sim.data.qvel[0].double(), torch.from_numpy(plain.qvel), rtol=1e-4, atol=1e-5
    )
