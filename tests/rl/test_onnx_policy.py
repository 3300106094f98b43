"""Exported policies in plain MuJoCo against the environments that they were trained in."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import onnx
import pytest
import torch

from manyworlds.actuator import (
    BuiltinPositionActuatorCfg,
    DcMotorActuatorCfg,
    IdealPdActuatorCfg,
)
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.buckets import bucket_cfg
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg, SceneEntityCfg
from manyworlds.rl.exporter_utils import export_policy, export_scene, list_to_csv_str
from manyworlds.rl.onnx_policy import OBSERVATION_FNS, OnnxPolicy
from manyworlds.rl.policy_description import NeedsEnvironmentError, describe_policy
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.scene import SceneCfg
from manyworlds.sensor import RayCastSensorCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from tests.envs.bucket_tasks import chains_cfg
from tests.lab.policies import export_policy_of
from tests.robots import robot_file
from tests.sparse_newton import branching_trees

pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")

# How far rounding may take an episode: Warp computes in float32.
ROUNDING = {"native": 1e-5, "warp": 1e-4}
STANCE = {".*R_hip_joint": -0.1, ".*L_hip_joint": 0.1, ".*thigh_joint": 0.9, ".*calf_joint": -1.8}


def exported(env_cfg, rl_cfg, folder: Path, **kwargs):
    """Export a policy with random weights; return runner, policy in plain MuJoCo, and state."""
    env_cfg.scene.num_envs = 1
    env_cfg.seed = 3
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    path = export_policy(runner, folder / "policy.onnx")
    scene = export_scene(runner.env.unwrapped, folder / "scene")
    model = mujoco.MjModel.from_xml_path(str(scene / "scene.xml"))
    policy = OnnxPolicy(path, model, **kwargs)
    data = mujoco.MjData(model)
    policy.reset(data)
    return runner, policy, data


def largest_difference(runner, policy, data, steps: int) -> float:
    """Let both run from the same state; return how far apart actions and states ever are."""
    env = runner.env.unwrapped
    data.qpos[:] = env.sim.data.qpos[0].numpy()
    data.qvel[:] = env.sim.data.qvel[0].numpy()
    mujoco.mj_step1(policy.model, data)
    act = runner.get_inference_policy()
    worst = 0.0
    for _ in range(steps):
        action = act(runner.env.get_observations())
        _, _, done, _ = runner.env.step(action)
        assert not done.any()
        plain = policy.step(data)
        worst = max(
            worst,
            np.abs(plain - env.action_manager.action[0].numpy()).max(),
            np.abs(data.qpos - env.sim.data.qpos[0].numpy()).max(),
        )
    return worst


def test_cartpole_moves_as_in_its_environment(env_cfg, rl_cfg, tmp_path, engine):
    """Follow the environment's actions and states over an episode, to rounding errors."""
    env_cfg.episode_length_s = 11.0
    difference = largest_difference(*exported(env_cfg, rl_cfg, tmp_path), steps=200)
    assert difference < ROUNDING[engine]


def test_large_scenes_are_stepped_with_dense_jacobians(env_cfg, rl_cfg, tmp_path, monkeypatch):
    """Keep a policy's world from the sparse factorization that MuJoCo 4.0.0 gets wrong."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.0")
    exported(env_cfg, rl_cfg, tmp_path)
    spec = mujoco.MjSpec.from_file(str(tmp_path / "scene" / "scene.xml"))
    spec.attach(branching_trees(9), prefix="trees/", frame=spec.worldbody.add_frame())
    model = spec.compile()
    policy = OnnxPolicy(tmp_path / "policy.onnx", model)
    assert policy.model is model and model.opt.jacobian == mujoco.mjtJacobian.mjJAC_DENSE


def test_a_world_that_goes_bad_is_seen(env_cfg, rl_cfg, tmp_path, monkeypatch, capfd):
    """Show MuJoCo's warning on the terminal and count it in the data; write no log file."""
    _, policy, data = exported(env_cfg, rl_cfg, tmp_path / "policy")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    data.qvel[0] = 1e11
    policy.step(data)
    assert "WARNING: Nan, Inf or huge value in QVEL" in capfd.readouterr().err
    assert data.warning[mujoco.mjtWarning.mjWARN_BADQVEL].number >= 1
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.slow_on_warp
@pytest.mark.parametrize(
    "actuator",
    [
        BuiltinPositionActuatorCfg(target_names_expr=("slider",), stiffness=20.0, damping=2.0),
        IdealPdActuatorCfg(target_names_expr=("slider",), stiffness=20.0, damping=2.0),
        DcMotorActuatorCfg(
            target_names_expr=("slider",),
            stiffness=20.0,
            damping=2.0,
            effort_limit=3.0,
            saturation_effort=5.0,
            velocity_limit=2.0,
            delay_min_lag=3,
            delay_max_lag=3,
        ),
    ],
    ids=["builtin", "ideal", "dc motor, late"],
)
def test_position_actions_reach_every_kind_of_actuator(env_cfg, rl_cfg, tmp_path, actuator):
    """Scale, offset, clip, hold back and turn into efforts what a policy says."""
    env_cfg.scene.entities["cartpole"].articulation.actuators = (actuator,)
    env_cfg.actions = {
        "position": mdp.JointPositionActionCfg(
            entity_name="cartpole",
            actuator_names=("slider",),
            scale=3.0,
            clip={"slider": (-0.5, 0.5)},
        )
    }
    env_cfg.observations["actor"].terms["action"] = ObservationTermCfg(
        func=mdp.last_action, clip=(-0.1, 0.1), scale=2.0
    )
    runner, policy, data = exported(env_cfg, rl_cfg, tmp_path)
    assert largest_difference(runner, policy, data, steps=60) < 1e-5
    assert abs(data.qpos[0]) > 1e-3


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("of_group", [False, True])
def test_histories_and_delays_are_observed_as_in_training(env_cfg, rl_cfg, tmp_path, of_group):
    """Hold observations back, and stack them from the oldest to the newest."""
    group = env_cfg.observations["actor"]
    group.terms["joint_vel"].delay_min_lag = group.terms["joint_vel"].delay_max_lag = 2
    group.terms["pole_angle"].history_length = 3
    group.terms["pole_angle"].scale = (2.0, 3.0)
    group.history_length = 4 if of_group else None
    env_cfg.episode_length_s = 11.0
    runner, policy, data = exported(env_cfg, rl_cfg, tmp_path)
    assert policy.observe(data, "actor").shape == ((20,) if of_group else (9,))
    policy.reset(data)
    assert largest_difference(runner, policy, data, steps=40) < 1e-5


@pytest.mark.parametrize(("dim", "shape"), [(0, (6, 2)), (1, (3, 4)), (-1, (3, 4))])
def test_groups_keep_their_layout(env_cfg, rl_cfg, tmp_path, dim, shape):
    """Put terms of several dimensions together along the one that training used."""
    asset = {"asset_cfg": SceneEntityCfg("cartpole")}
    terms = {
        name: ObservationTermCfg(func=mdp.joint_vel_rel, scale=scale, params=asset)
        for name, scale in (("a", 1.0), ("b", 2.0))
    }
    env_cfg.observations["grid"] = ObservationGroupCfg(
        terms=terms, history_length=3, flatten_history_dim=False, concatenate_dim=dim
    )
    runner, policy, data = exported(env_cfg, rl_cfg, tmp_path)
    env = runner.env.unwrapped
    data.qvel[:] = [0.25, -0.5]
    for entity in env.scene.entities.values():
        entity.write_joint_velocity_to_sim(torch.tensor([[0.25, -0.5]]))
    env.observation_manager.reset()
    expected = env.observation_manager.compute_group("grid", update_history=True)[0]
    observed = policy.observe(data, "grid")
    assert observed.shape == shape
    np.testing.assert_allclose(observed, expected.numpy(), rtol=1e-6)


@pytest.mark.slow_on_warp
def test_relative_positions_are_followed_in_each_physics_step(env_cfg, rl_cfg, tmp_path):
    """Add the present position to the target before every physics step."""
    actuator = BuiltinPositionActuatorCfg(
        target_names_expr=("slider",), stiffness=50.0, damping=1.0
    )
    env_cfg.scene.entities["cartpole"].articulation.actuators = (actuator,)
    env_cfg.actions = {
        "relative": mdp.RelativeJointPositionActionCfg(
            entity_name="cartpole", actuator_names=("slider",), scale=0.3
        )
    }
    runner, policy, data = exported(env_cfg, rl_cfg, tmp_path)
    assert largest_difference(runner, policy, data, steps=40) < 1e-5


def test_velocities_of_the_base_are_those_of_the_entity(tmp_path):
    """Compute root velocities and gravity as the entity does, for a tumbling free body."""
    cfg = go1_cfg(robot_file("unitree_go1/go1.xml"))
    env = ManagerBasedRlEnv(cfg)
    env.sim.data.qpos[0, :7] = torch.tensor([0.0, 0.0, 2.0, 0.5, -0.5, 0.1, 0.7])
    env.sim.data.qvel[0, :6] = torch.tensor([1.0, -2.0, 3.0, 0.5, 4.0, -1.0])
    env.sim.forward()
    data = env.scene["robot"].data
    model, plain = env.sim.mj_model, mujoco.MjData(env.sim.mj_model)
    plain.qpos[:], plain.qvel[:] = env.sim.data.qpos[0].numpy(), env.sim.data.qvel[0].numpy()
    mujoco.mj_step1(model, plain)
    policy: Any = SimpleNamespace(
        model=model, joints_of=lambda p: ([], {"root_body": "robot/trunk"})
    )
    for name, expected in (
        ("base_lin_vel", data.root_link_lin_vel_b),
        ("base_ang_vel", data.root_link_ang_vel_b),
        ("projected_gravity", data.projected_gravity_b),
    ):
        found = OBSERVATION_FNS[name](policy, plain, {})
        np.testing.assert_allclose(found, expected[0].numpy(), atol=1e-5, err_msg=name)


def go1_cfg(path: Path) -> ManagerBasedRlEnvCfg:
    """Configure a Go1 that stands on a floor, driven by positions."""

    def spec() -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_file(str(path))
        for actuator in list(spec.actuators):
            spec.delete(actuator)
        return spec

    def floor(spec: mujoco.MjSpec) -> None:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5.0, 5.0, 0.1])

    robot = EntityCfg(
        spec_fn=spec,
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 0.28), joint_pos=STANCE),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinPositionActuatorCfg(
                    target_names_expr=(".*",), stiffness=35.0, damping=0.5, effort_limit=30.0
                ),
            )
        ),
    )
    terms = {
        name: ObservationTermCfg(func=getattr(mdp, name))
        for name in ("base_lin_vel", "base_ang_vel", "projected_gravity", "joint_pos_rel")
    }
    terms["hips"] = ObservationTermCfg(
        func=mdp.joint_vel_rel,
        params={"asset_cfg": SceneEntityCfg("robot", joint_names=(".*hip_joint",))},
        scale=0.05,
    )
    terms["action"] = ObservationTermCfg(func=mdp.last_action)
    return ManagerBasedRlEnvCfg(
        decimation=4,
        episode_length_s=100.0,
        scene=SceneCfg(entities={"robot": robot}, spec_fn=floor),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.005)),
        observations={"actor": ObservationGroupCfg(terms=terms)},
        actions={
            "joint_pos": mdp.JointPositionActionCfg(
                entity_name="robot", actuator_names=(".*",), scale=0.25
            )
        },
    )


def test_a_quadruped_moves_as_in_its_environment(rl_cfg, tmp_path):
    """Stand and sway under a random policy for a second, with contacts, to rounding errors."""
    cfg = go1_cfg(robot_file("unitree_go1/go1.xml"))
    runner, policy, data = exported(cfg, rl_cfg, tmp_path)
    assert largest_difference(runner, policy, data, steps=50) < 1e-5
    entries = {p.key: p.value for p in onnx.load(str(policy.path)).metadata_props}
    assert entries["joint_stiffness"] == ",".join(["35.000"] * 12)
    assert entries["joint_damping"] == ",".join(["0.500"] * 12)
    assert entries["action_scale"] == ",".join(["0.250"] * 12)
    assert entries["observation_names"].split(",")[-2:] == ["hips", "action"]
    (actuator,) = json.loads(entries["manyworlds"])["actuators"]
    assert actuator["params"]["force_limit"] == [30.0] * 12


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_policies_carry_their_state(env_cfg, rl_cfg, tmp_path, kind):
    """Pass the hidden state from step to step as the trained network does."""
    rl_cfg.actor.class_name, rl_cfg.actor.rnn_type = "RNNModel", kind
    rl_cfg.actor.rnn_hidden_dim, rl_cfg.actor.rnn_num_layers = 8, 2
    runner, policy, data = exported(env_cfg, rl_cfg, tmp_path)
    assert largest_difference(runner, policy, data, steps=20) < 1e-5
    assert max(abs(value).max() for value in policy._hidden.values()) > 1e-3
    policy.reset(data)
    assert max(abs(value).max() for value in policy._hidden.values()) == 0.0


def _mystery(env) -> torch.Tensor:
    return torch.ones(env.num_envs, 2)


def test_unknown_terms_and_models_are_named(env_cfg, rl_cfg, tmp_path):
    """Name a term that plain MuJoCo cannot compute and the remedy; then use that remedy."""
    env_cfg.observations["actor"].terms["mystery"] = ObservationTermCfg(func=_mystery)
    with pytest.raises(ValueError, match=r"'mystery' .* observation_fns=.*shape \(2,\)"):
        exported(env_cfg, rl_cfg, tmp_path)
    fns = {"mystery": lambda policy, data, params: [1.0, 1.0]}
    runner, policy, data = exported(env_cfg, rl_cfg, tmp_path, observation_fns=fns)
    assert largest_difference(runner, policy, data, steps=5) < 1e-5
    other = mujoco.MjModel.from_xml_string("<mujoco><option timestep='0.01'/></mujoco>")
    with pytest.raises(ValueError, match="The model lacks what .*cartpole/slider"):
        OnnxPolicy(policy.path, other, observation_fns=fns)
    with pytest.raises(ValueError, match="has no command 'twits'; it has: none"):
        OnnxPolicy(policy.path, policy.model, observation_fns=fns, commands={"twits": (1.0,)})
    text = tmp_path / "text.onnx"
    text.write_text("no policy")
    with pytest.raises(ValueError, match="text.onnx' is not a policy"):
        OnnxPolicy(text, policy.model)
    policy.model.opt.timestep = 0.5
    with pytest.raises(ValueError, match="timestep is 0.5, but the policy was trained with 0.01"):
        OnnxPolicy(policy.path, policy.model, observation_fns=fns)


def test_a_command_has_as_many_values_as_the_policy_observes(tmp_path):
    """Refuse two values and a table for the three velocities of a command; take three."""
    path = export_policy_of("Velocity-Flat-Quadruped", tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene" / "scene.xml"))
    for wrong in ((1.0, 0.0), ((1.0, 0.0, 0.0),), 1.0):
        with pytest.raises(ValueError, match=r"'twist' .* has 3 values, got .* shape \("):
            OnnxPolicy(path, model, commands={"twist": wrong})
    policy = OnnxPolicy(path, model, commands={"twist": (1.0, 0.0, 0.5)})
    assert policy.commands["twist"].tolist() == [1.0, 0.0, 0.5]


def rough_cfg():
    """Return the quadruped's task on few tiles of rough terrain, without noise or randomization."""
    cfg = load_env_cfg("Velocity-Rough-Quadruped", play=True)
    terrain = cfg.scene.terrain
    assert terrain is not None and terrain.terrain_generator is not None
    terrain.terrain_generator.num_rows = terrain.terrain_generator.num_cols = 3
    cfg.events = {"reset_base": cfg.events["reset_base"]}
    return cfg


@pytest.mark.slow
@pytest.mark.parametrize("alignment", ["yaw", "base", "world"])
def test_heights_of_the_terrain_are_those_of_the_sensor(tmp_path, alignment):
    """Scan rough terrain in plain MuJoCo as the environment does, at many poses of the robot."""
    cfg = rough_cfg()
    [scan] = [sensor for sensor in cfg.scene.sensors if sensor.name == "terrain_scan"]
    assert isinstance(scan, RayCastSensorCfg)
    scan.ray_alignment = alignment
    term = cfg.observations["actor"].terms["height_scan"]
    params = {"sensor_name": "terrain_scan", "offset": 0.25, "miss_value": 3.0}
    term.params = dict(params)
    rl_cfg = load_rl_cfg("Velocity-Rough-Quadruped")
    runner, policy, data = exported(cfg, rl_cfg, tmp_path)
    env = runner.env.unwrapped
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        qpos = env.sim.data.qpos[0].numpy().copy()
        qpos[:2] = random.uniform(-9.0, 9.0, 2)
        qpos[2] = random.uniform(1.0, 8.0)
        qpos[3:7] = random.normal(size=4)
        qpos[3:7] /= np.linalg.norm(qpos[3:7])
        env.sim.data.qpos[0] = torch.from_numpy(qpos)
        env.sim.forward()
        env.scene["terrain_scan"].invalidate()
        data.qpos[:] = qpos
        mujoco.mj_forward(policy.model, data)
        expected = 0.2 * mdp.height_scan(env, **params)[0].numpy()
        found = policy.observe(data, "actor")[-187:]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        seen |= set(np.isclose(expected, 3.0 * 0.2).tolist())
    assert seen == {True, False}  # hits and misses


def test_a_policy_that_scans_terrain_walks_as_in_its_environment(tmp_path):
    """Follow the environment on rough terrain, to rounding errors."""
    rl_cfg = load_rl_cfg("Velocity-Rough-Quadruped")
    runner, policy, data = exported(rough_cfg(), rl_cfg, tmp_path)
    command = runner.env.unwrapped.command_manager.get_command("twist")
    policy.commands["twist"][:] = command[0].numpy()
    assert largest_difference(runner, policy, data, steps=10) < 1e-4


def test_a_robot_of_another_name_scans_from_itself(tmp_path):
    """Give the robot another prefix: its rays start at it; refuse rays of something else."""
    _, policy, data = exported(rough_cfg(), load_rl_cfg("Velocity-Rough-Quadruped"), tmp_path)
    scene = tmp_path / "scene" / "scene.xml"
    text = scene.read_text(encoding="utf-8")
    scene.write_text(text.replace('"robot/', '"two/'), encoding="utf-8")
    model = mujoco.MjModel.from_xml_path(str(scene))
    renamed = OnnxPolicy(policy.path, model, prefix="two/")
    other = mujoco.MjData(model)
    renamed.reset(other)
    np.testing.assert_array_equal(renamed.observe(other, "actor"), policy.observe(data, "actor"))
    described = policy.description["observations"]["actor"]["terms"]["height_scan"]
    described["params"]["rays"]["frames"][0]["name"] = "ground"
    policy.model = model
    with pytest.raises(ValueError, match="reads the sensor 'terrain_scan' of the scene"):
        policy._rename("two/")


def test_held_scans_need_the_environment(tmp_path):
    """Refuse a scan whose samples are late, since plain MuJoCo has no samples to hold."""
    cfg = rough_cfg()
    [scan] = [sensor for sensor in cfg.scene.sensors if sensor.name == "terrain_scan"]
    scan.latency = 0.02
    with pytest.raises(NeedsEnvironmentError, match="'height_scan' of .*observation_fns="):
        exported(cfg, load_rl_cfg("Velocity-Rough-Quadruped"), tmp_path)


def _phase(env, command_name: str) -> torch.Tensor:
    return torch.ones(env.num_envs, 2)


def test_another_term_of_a_command_does_not_give_its_size(tmp_path):
    """Observe two numbers about a command before the command itself, which has three."""
    env_cfg = load_env_cfg("Velocity-Flat-Quadruped")
    actor = env_cfg.observations["actor"]
    phase = ObservationTermCfg(func=_phase, params={"command_name": "twist"})
    actor.terms = {"phase": phase, **actor.terms}
    fns = {"phase": lambda policy, data, params: [1.0, 1.0]}
    _, policy, _ = exported(
        env_cfg, load_rl_cfg("Velocity-Flat-Quadruped"), tmp_path, observation_fns=fns
    )
    assert policy.commands["twist"].shape == (3,)


def test_descriptions_are_plain_json(env):
    """Describe everything without infinities, tensors or functions."""
    text = json.dumps(describe_policy(env, 5.0, "Task"), allow_nan=False)
    described = json.loads(text)
    assert described["clip_actions"] == 5.0 and described["decimation"] == 5
    pole = described["observations"]["actor"]["terms"]["pole_angle"]["params"]["asset_cfg"]
    assert pole == {"entity": "cartpole", "joint_names": ["cartpole/hinge_1"]}
    assert described["actuators"][0]["controls"] == ["cartpole/slider"]


def test_lists_become_csv():
    """Round numbers to three digits, and join inner lists by semicolons."""
    assert list_to_csv_str([1, 2.34567, "a", [1.0, 2.0]]) == "1.000,2.346,a,1.000;2.000"
    assert list_to_csv_str([0.5], decimals=1) == "0.5"


def test_a_bucket_moves_as_in_its_environment(rl_cfg, tmp_path):
    """Pad observations, and leave out actions, as the bucket's environment does."""
    cfg = bucket_cfg(chains_cfg(), "three", num_envs=1)
    cfg.observations["actor"].enable_corruption = False
    del cfg.events["mass"]  # the exported scene is that of the model without randomization
    runner, policy, data = exported(cfg, rl_cfg, tmp_path)
    assert policy.action.shape == (4,)
    env = runner.env.unwrapped
    assert isinstance(env, ManagerBasedRlEnv)
    assert env.scene.entity("robot").num_joints == 3
    assert largest_difference(runner, policy, data, steps=10) < 1e-4
