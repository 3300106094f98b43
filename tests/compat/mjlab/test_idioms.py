"""Short programs as users of the reference write them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.compat import mjlab

pytest.importorskip("rsl_rl", reason="the adapters need the extra 'train'")

XML = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 0.4">
      <freejoint name="floating_base_joint"/>
      <site name="imu"/>
      <geom name="base_collision" type="box" size="0.2 0.1 0.05" mass="4"/>
      <body name="left_leg" pos="0 0.15 0">
        <joint name="left_hip" axis="0 1 0" range="-1.5 1.5"/>
        <geom name="left_foot_collision" type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/>
        <site name="left_foot" pos="0 0 -0.33"/>
      </body>
      <body name="right_leg" pos="0 -0.15 0">
        <joint name="right_hip" axis="0 1 0" range="-1.5 1.5"/>
        <geom name="right_foot_collision" type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/>
        <site name="right_foot" pos="0 0 -0.33"/>
      </body>
    </body>
  </worldbody>
  <sensor>
    <gyro name="imu_ang_vel" site="imu"/>
    <velocimeter name="imu_lin_vel" site="imu"/>
  </sensor>
</mujoco>
"""

IDIOMS: list[Callable] = []


def idiom(function: Callable) -> Callable:
    """Add a program to the test below."""
    IDIOMS.append(function)
    return function


@pytest.fixture(scope="module", autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


@pytest.fixture(scope="module")
def cfg(_alias):
    """A small environment, as a user writes it."""
    from mjlab.actuator import BuiltinPositionActuatorCfg
    from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
    from mjlab.envs import ManagerBasedRlEnvCfg, mdp
    from mjlab.envs.mdp.actions import JointPositionActionCfg
    from mjlab.managers import (
        EventTermCfg,
        ObservationGroupCfg,
        ObservationTermCfg,
        RewardTermCfg,
        SceneEntityCfg,
        TerminationTermCfg,
    )
    from mjlab.scene import SceneCfg
    from mjlab.sensor import ContactMatch, ContactSensorCfg
    from mjlab.sim import MujocoCfg, SimulationCfg
    from mjlab.terrains import TerrainEntityCfg
    from mjlab.utils.noise import UniformNoiseCfg as Unoise
    from mjlab.viewer import ViewerConfig

    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(XML),
        init_state=EntityCfg.InitialStateCfg(pos=(0, 0, 0.4), joint_pos={".*": 0.0}),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinPositionActuatorCfg(
                    target_names_expr=(".*_hip",), stiffness=40.0, damping=1.0, effort_limit=20.0
                ),
            ),
            soft_joint_pos_limit_factor=0.9,
        ),
    )
    feet = ContactSensorCfg(
        name="feet",
        primary=ContactMatch(mode="geom", pattern=r".*_foot_collision", entity="robot"),
        secondary=ContactMatch(mode="body", pattern="terrain"),
        fields=("found", "force"),
        reduce="netforce",
        track_air_time=True,
    )
    terms = {
        "gravity": ObservationTermCfg(func=mdp.projected_gravity, noise=Unoise(-0.05, 0.05)),
        "joint_pos": ObservationTermCfg(mdp.joint_pos_rel, noise=Unoise(n_min=-0.01, n_max=0.01)),
        "gyro": ObservationTermCfg(mdp.builtin_sensor, {"sensor_name": "robot/imu_ang_vel"}),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    return ManagerBasedRlEnvCfg(
        decimation=2,
        scene=SceneCfg(
            num_envs=3,
            entities={"robot": robot},
            sensors=(feet,),
            terrain=TerrainEntityCfg(terrain_type="plane"),
        ),
        observations={
            "actor": ObservationGroupCfg(terms, concatenate_terms=True, enable_corruption=True),
            "critic": ObservationGroupCfg({**terms}, concatenate_terms=False),
        },
        actions={"joint_pos": JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))},
        events={
            "reset_base": EventTermCfg(
                func=mdp.reset_root_state_uniform,
                mode="reset",
                params={"pose_range": {"yaw": (-math.pi, math.pi)}, "velocity_range": {}},
            ),
            "push": EventTermCfg(
                func=mdp.push_by_setting_velocity,
                mode="interval",
                interval_range_s=(0.1, 0.2),
                params={"velocity_range": {"x": (-0.5, 0.5)}},
            ),
        },
        rewards={
            "alive": RewardTermCfg(func=mdp.is_alive, weight=1.0),
            "posture": RewardTermCfg(
                func=mdp.posture,
                weight=0.5,
                params={"std": {".*": 0.3}, "asset_cfg": SceneEntityCfg("robot", (".*_hip",))},
            ),
        },
        terminations={
            "time_out": TerminationTermCfg(mdp.time_out, time_out=True),
            "fell": TerminationTermCfg(mdp.bad_orientation, {"limit_angle": math.radians(70.0)}),
        },
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.01, iterations=10)),
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_ROOT, entity_name="robot", distance=2.0
        ),
        episode_length_s=5.0,
    )


@pytest.fixture(scope="module")
def env(cfg):
    """The environment, which the programs step."""
    from mjlab.envs import ManagerBasedRlEnv

    env = ManagerBasedRlEnv(cfg=cfg, device="cpu")
    env.reset()
    yield env
    env.close()


@idiom
def step_with_random_actions(env):
    """Step, and read what comes back."""
    actions = 2 * torch.rand((env.num_envs, *env.single_action_space.shape)) - 1
    for _ in range(3):
        obs, rew, terminated, truncated, extras = env.step(actions.to(env.device))
    assert obs["actor"].shape == (3, 10) and set(obs["critic"]) >= {"gravity", "gyro"}
    assert rew.dtype == torch.float32 and (terminated | truncated).dtype == torch.bool
    assert "log" in extras and env.unwrapped is env and env.step_dt == pytest.approx(0.02)


@idiom
def terms_of_mdp_called_directly(env):
    """Call terms outside of managers."""
    from mjlab.envs import mdp
    from mjlab.managers import SceneEntityCfg

    asset_cfg = SceneEntityCfg("robot", joint_names=("left_.*",))
    asset_cfg.resolve(env.scene)
    assert mdp.joint_pos_rel(env).shape == (3, 2)
    assert mdp.joint_pos_rel(env, biased=True, asset_cfg=asset_cfg).shape == (3, 1)
    assert mdp.joint_vel_rel(env, asset_cfg).shape == (3, 1) and asset_cfg.joint_ids == [0]
    assert mdp.action_rate_l2(env).shape == mdp.flat_orientation_l2(env).shape == (3,)


@idiom
def wrap_for_rsl_rl(env):
    """Step the adapter with clipped actions."""
    from mjlab.rl import RslRlVecEnvWrapper

    wrapped = RslRlVecEnvWrapper(env, clip_actions=1.0)
    obs = wrapped.get_observations()
    assert obs["actor"].shape == (3, 10) and wrapped.num_actions == 2
    obs, rewards, dones, extras = wrapped.step(torch.full((3, 2), 50.0))
    assert env.action_manager.action.abs().max() == 1.0 and "time_outs" in extras
    wrapped.episode_length_buf = torch.randint_like(
        wrapped.episode_length_buf, high=int(wrapped.max_episode_length)
    )
    assert rewards.shape == dones.shape == (3,) and len(obs.keys()) >= 1


@idiom
def view_in_the_browser(env):
    """Open the page of a policy for some steps, and a subclass of it."""
    from mjlab.rl import RslRlVecEnvWrapper
    from mjlab.viewer import ViserPlayViewer
    from mjlab.viewer.base import VerbosityLevel

    class Page(ViserPlayViewer):
        ticks = 0

        def sync_env_to_viewer(self):
            self.ticks += 1
            super().sync_env_to_viewer()

    before = env.common_step_counter
    page = Page(
        RslRlVecEnvWrapper(env),
        policy=lambda obs: torch.zeros(3, 2),
        frame_rate=100.0,
        verbosity=VerbosityLevel.SILENT,
    )
    page.run(num_steps=3)
    assert page.ticks > 0 and env.common_step_counter >= before + 3


@idiom
def configs_of_runners(tmp_path):
    """Build the learner's settings, change them, and write them."""
    import yaml
    from mjlab.rl import RslRlModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg
    from mjlab.utils.os import dump_yaml

    cfg = RslRlOnPolicyRunnerCfg(
        actor=RslRlModelCfg(hidden_dims=(8,), class_name="RNNModel", rnn_type="lstm"),
        algorithm=RslRlPpoAlgorithmCfg(learning_rate=3e-4, schedule="fixed", optimizer="adamw"),
    )
    assert cfg.obs_groups == {"actor": ("actor",), "critic": ("critic",)}
    assert replace(cfg, run_name="b").seed == 42 and cfg.class_name == "OnPolicyRunner"
    dump_yaml(tmp_path / "params" / "agent.yaml", asdict(cfg))
    dump_yaml(tmp_path / "again", asdict(cfg))
    written = yaml.safe_load((tmp_path / "params" / "agent.yaml").read_text())
    assert written["algorithm"]["learning_rate"] == 3e-4 and (tmp_path / "again.yaml").is_file()


@idiom
def a_newest_checkpoint(tmp_path):
    """Find the newest checkpoint of the newest run."""
    from mjlab.utils.os import get_checkpoint_path

    for run, step in (("2026-01-01", 50), ("2026-01-02", 50), ("2026-01-02", 100)):
        (tmp_path / run).mkdir(exist_ok=True)
        (tmp_path / run / f"model_{step}.pt").touch()
    path = get_checkpoint_path(tmp_path, run_dir=".*", checkpoint="model_.*.pt")
    assert Path(path) == tmp_path / "2026-01-02" / "model_100.pt"


@idiom
def math_of_lab_api():
    """Rotate, compose and sample."""
    from mjlab.utils.lab_api.math import (
        euler_xyz_from_quat,
        matrix_from_quat,
        quat_apply,
        quat_apply_inverse,
        quat_apply_yaw,
        quat_conjugate,
        quat_error_magnitude,
        quat_from_angle_axis,
        quat_from_euler_xyz,
        quat_inv,
        quat_mul,
        sample_uniform,
        subtract_frame_transforms,
        wrap_to_pi,
        yaw_quat,
    )

    angle, zero = torch.tensor([math.pi / 2]), torch.zeros(1)
    quat = quat_from_euler_xyz(zero, zero, angle)
    turned = quat_apply(quat, torch.tensor([[1.0, 0.0, 0.0]]))
    torch.testing.assert_close(turned, torch.tensor([[0.0, 1.0, 0.0]]))
    torch.testing.assert_close(quat_apply_inverse(quat, turned), torch.eye(3)[:1])
    torch.testing.assert_close(quat_apply_yaw(quat, torch.eye(3)[:1]), turned)
    torch.testing.assert_close(yaw_quat(quat), quat)
    assert quat_error_magnitude(quat, quat).abs().max() < 1e-3
    torch.testing.assert_close(quat_mul(quat, quat_inv(quat)), torch.eye(4)[:1])
    torch.testing.assert_close(quat_conjugate(quat)[:, 1:], -quat[:, 1:])
    torch.testing.assert_close(quat_from_angle_axis(angle, torch.tensor([[0.0, 0.0, 1.0]])), quat)
    torch.testing.assert_close(euler_xyz_from_quat(quat)[2], angle)
    torch.testing.assert_close(matrix_from_quat(quat)[:, :, 0], turned)
    position, _ = subtract_frame_transforms(turned, quat, turned, quat)
    assert position.abs().max() == 0.0 and wrap_to_pi(3 * angle).item() == pytest.approx(
        -math.pi / 2
    )
    assert sample_uniform(-1.0, 1.0, (2, 3), device="cpu").shape == (2, 3)


@idiom
def tasks_of_the_registry():
    """List the tasks, and load their parts."""
    from mjlab.tasks.registry import list_tasks, load_env_cfg, load_rl_cfg, load_runner_cls

    name = "Mjlab-Velocity-Flat-Unitree-Go1"
    assert {name, "Mjlab-Cartpole-Balance", "Mjlab-Lift-Cube-Yam"} <= set(list_tasks())
    cfg, again = load_env_cfg(name), load_env_cfg(name, play=True)
    cfg.scene.num_envs = 7
    assert load_env_cfg(name).scene.num_envs == 1 and again.episode_length_s > 1e6
    assert load_rl_cfg(name).experiment_name == "go1_velocity"
    assert load_runner_cls(name) is None or issubclass(load_runner_cls(name), object)


@idiom
def register_a_task(cfg):
    """Register a task once; a second time is an error."""
    from mjlab.rl import RslRlOnPolicyRunnerCfg
    from mjlab.tasks.registry import load_env_cfg, register_mjlab_task

    parts = {"env_cfg": cfg, "play_env_cfg": cfg, "rl_cfg": RslRlOnPolicyRunnerCfg()}
    register_mjlab_task(task_id="Idioms-Task", **parts)
    with pytest.raises(ValueError, match="Idioms-Task"):
        register_mjlab_task(task_id="Idioms-Task", **parts)
    assert load_env_cfg("Idioms-Task") is not cfg


@idiom
def terrain_presets():
    """Take a preset, change it, and generate terrain."""
    from mjlab.scene import Scene, SceneCfg
    from mjlab.terrains import BoxFlatTerrainCfg, TerrainEntityCfg, TerrainGeneratorCfg
    from mjlab.terrains.config import ROUGH_TERRAINS_CFG

    rough = copy.deepcopy(ROUGH_TERRAINS_CFG)
    rough.num_rows, rough.num_cols, rough.border_width = 2, 2, 1.0
    rough.sub_terrains = {
        "flat": rough.sub_terrains["flat"],
        "steps": rough.sub_terrains["pyramid_stairs"],
    }
    for generator in (
        rough,
        replace(rough, curriculum=True, seed=3),
        TerrainGeneratorCfg(
            size=(4.0, 4.0), num_rows=1, num_cols=1, sub_terrains={"flat": BoxFlatTerrainCfg()}
        ),
    ):
        terrain = TerrainEntityCfg(
            terrain_type="generator", terrain_generator=generator, max_init_terrain_level=1
        )
        scene = Scene(SceneCfg(num_envs=3, terrain=terrain), device="cpu")
        assert scene.compile().ngeom > 0 and scene.terrain.terrain_origins is not None
    assert ROUGH_TERRAINS_CFG.num_rows == 10


@idiom
def ids_of_an_entity(env):
    """Find elements by patterns, and read and write state by their ids."""
    robot = env.scene["robot"]
    ids, names = robot.find_joints(["right_hip", "left_hip"], preserve_order=True)
    assert (ids, names) == ([1, 0], ["right_hip", "left_hip"])
    assert robot.find_bodies(".*_leg")[1] == ["left_leg", "right_leg"]
    feet, _ = robot.find_sites((".*_foot",))
    env_ids = torch.tensor([0, 2])
    position = robot.data.default_joint_pos[env_ids] + 0.1
    robot.write_joint_state_to_sim(position, torch.zeros_like(position), env_ids=env_ids)
    root = robot.data.default_root_state[env_ids].clone()
    root[:, :3] += env.scene.env_origins[env_ids]
    robot.write_root_link_pose_to_sim(root[:, :7], env_ids=env_ids)
    robot.write_root_link_velocity_to_sim(root[:, 7:], env_ids=env_ids)
    env.sim.forward()
    torch.testing.assert_close(robot.data.joint_pos[env_ids], position)
    torch.testing.assert_close(robot.data.root_link_pos_w[env_ids], root[:, :3])
    assert robot.data.site_pos_w[:, feet].shape == (3, 2, 3)
    assert robot.data.body_link_vel_w.shape == (3, 3, 6) and robot.num_actuators == 2
    assert (env.sim.data.qpos[:, robot.indexing.joint_q_adr] == robot.data.joint_pos).all()


@idiom
def contacts_of_a_sensor(env):
    """Read contacts and times in the air."""
    from mjlab.sensor import ContactSensor

    for _ in range(30):
        env.step(torch.zeros(3, 2))
    sensor: ContactSensor = env.scene["feet"]
    data = sensor.data
    assert isinstance(sensor, ContactSensor) and data.found.shape == (3, 2)
    assert data.force.shape == (3, 2, 3) and data.current_contact_time.shape == (3, 2)
    assert sensor.compute_first_contact(dt=env.step_dt).dtype == torch.bool
    assert env.scene.sensors["feet"] is sensor and len(sensor.primary_names) == 2


@idiom
def managers_read_and_changed(env):
    """Read terms by name, and change their configs at run time."""
    env.reward_manager.get_term_cfg("alive").weight = 2.0
    assert env.reward_manager.active_terms == ["alive", "posture"]
    assert env.observation_manager.active_terms["actor"][0] == "gravity"
    assert env.observation_manager.group_obs_dim["actor"] == (10,)
    term = env.action_manager.get_term("joint_pos")
    assert term.action_dim == 2 and term.target_names == ["left_hip", "right_hip"]
    term_cfg = env.event_manager.get_term_cfg("push")
    term_cfg.params["velocity_range"] = {"x": (-0.1, 0.1)}
    assert env.termination_manager.get_term("fell").shape == (3,)
    env.step(torch.zeros(3, 2))
    assert dict(env.reward_manager.get_active_iterable_terms(0))["alive"][0] in (0.0, 2.0)


@idiom
def reset_some_worlds(env):
    """Reset worlds by their ids, with a seed or without."""
    env.episode_length_buf[:] = 5
    env.reset(env_ids=torch.tensor([1]))
    assert env.episode_length_buf.tolist() == [5, 0, 5]
    obs, extras = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    torch.testing.assert_close(obs["actor"], again["actor"], rtol=0, atol=0)
    assert "log" in extras


@idiom
def model_of_the_simulation(env):
    """Read MuJoCo's model and data, and write a field for each world."""
    model = env.sim.mj_model
    geom = model.geom("robot/left_foot_collision").id
    env.sim.expand_model_fields(("geom_friction",))
    env.sim.model.geom_friction[:, geom, 0] = torch.tensor([0.3, 0.6, 0.9])
    env.sim.model.geom_friction[[0, 1], geom] = torch.tensor([0.5, 0.1, 0.1])
    assert env.sim.model.geom_friction[2, geom, 0].item() == pytest.approx(0.9)
    assert env.sim.get_default_field("geom_friction").shape[-1] == 3
    assert env.sim.data.qpos.shape == (3, model.nq) and env.sim.data.time.shape == (3,)
    assert torch.sum(env.sim.data.qvel**2, dim=-1).shape == (3,)
    with pytest.raises(AttributeError):
        env.sim.data.qpos = torch.zeros(3, model.nq)


@idiom
def settings_of_physics():
    """Give MuJoCo's options by position and by name."""
    from mjlab.sim import MujocoCfg, SimulationCfg
    from mjlab.utils.nan_guard import NanGuardCfg

    cfg = SimulationCfg(
        nconmax=50,
        njmax=300,
        mujoco=MujocoCfg(0.004, "euler", cone="elliptic", disableflags=("gravity",)),
        nan_guard=NanGuardCfg(enabled=True),
    )
    model = mujoco.MjSpec.from_string(XML).compile()
    cfg.mujoco.apply(model)
    assert model.opt.timestep == 0.004 and model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    with pytest.raises(ValueError, match="gravitation"):
        MujocoCfg(disableflags=("gravitation",)).apply(model)


@idiom
def edits_of_a_spec():
    """Edit a robot's spec by configs."""
    from mjlab.entity import Entity, EntityCfg
    from mjlab.utils.spec_config import CameraCfg, CollisionCfg, LightCfg, MaterialCfg, TextureCfg

    robot = Entity(
        EntityCfg(
            spec_fn=lambda: mujoco.MjSpec.from_string(XML),
            cameras=(CameraCfg(name="front", body="base", pos=(0.3, 0.0, 0.1)),),
            lights=(LightCfg(name="sun", type="directional", pos=(0.0, 0.0, 3.0)),),
            textures=(
                TextureCfg(
                    "checks",
                    "2d",
                    builtin="checker",
                    width=8,
                    height=8,
                    rgb1=(1, 1, 1),
                    rgb2=(0, 0, 0),
                ),
            ),
            materials=(MaterialCfg("checked", texture="checks", geom_names_expr=("base_.*",)),),
            collisions=(
                CollisionCfg(
                    geom_names_expr=(".*_foot_collision",),
                    contype=0,
                    conaffinity=1,
                    condim={".*_foot_collision": 3},
                    priority=1,
                    friction=(0.6,),
                ),
            ),
        )
    )
    model = robot.compile()
    assert (
        model.geom("left_foot_collision").condim == 3 and model.geom("base_collision").contype == 0
    )
    assert model.ncam == model.nlight == model.nmat == 1 and robot.is_fixed_base is False


@idiom
def noise_models():
    """Apply noise and biases to observations."""
    from mjlab.managers import ObservationTermCfg
    from mjlab.utils.noise import (
        ConstantNoiseCfg,
        GaussianNoiseCfg,
        NoiseModelWithAdditiveBiasCfg,
        UniformNoiseCfg,
    )

    data = torch.zeros(3, 2)
    assert (ConstantNoiseCfg(bias=0.5).apply(data) == 0.5).all()
    assert UniformNoiseCfg(n_min=(-1.0, 0.0), n_max=(0.0, 1.0)).apply(data)[:, 1].min() >= 0.0
    model_cfg = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=GaussianNoiseCfg(std=0.0), bias_noise_cfg=ConstantNoiseCfg(bias=0.25)
    )
    model = model_cfg.class_type(model_cfg, num_envs=3, device="cpu")
    model.reset()
    assert (model(data) == 0.25).all()
    assert ObservationTermCfg(func=len, noise=model_cfg).noise is model_cfg


@idiom
def a_camera_by_hand(env):
    """Film an environment with the offscreen renderer."""
    from mjlab.viewer import OffscreenRenderer, ViewerConfig

    renderer = OffscreenRenderer(
        model=env.sim.mj_model, cfg=ViewerConfig(height=48, width=64), scene=env.scene
    )
    renderer.initialize()
    renderer.update(env.sim.data)
    image = renderer.render()
    renderer.close()
    assert image.shape == (48, 64, 3) and np.ptp(image) > 0


@idiom
def a_video_of_an_environment(cfg, tmp_path):
    """Record a video with the wrapper."""
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.utils.wrappers import VideoRecorder

    cfg = copy.deepcopy(cfg)
    cfg.viewer.height, cfg.viewer.width = 48, 64
    env = ManagerBasedRlEnv(cfg=cfg, device="cpu", render_mode="rgb_array")
    env = VideoRecorder(
        env,
        video_folder=tmp_path / "videos",
        step_trigger=lambda step: step == 0,
        video_length=3,
        disable_logger=True,
    )
    env.reset()
    for _ in range(5):
        env.step(torch.zeros(3, 2))
    env.close()
    assert len(list((tmp_path / "videos").iterdir())) == 1


@idiom
def a_term_in_a_script(cfg):
    """Use terms defined in the program: a lambda, a function, and a class with state."""
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers import (
        CurriculumTermCfg,
        MetricsTermCfg,
        ObservationTermCfg,
        RewardTermCfg,
        TerminationTermCfg,
    )

    class Steps:
        def __init__(self, cfg: TerminationTermCfg, env: ManagerBasedRlEnv):
            self.limit = cfg.params["limit"]
            self.count = torch.zeros(env.num_envs, device=env.device)

        def __call__(self, env: ManagerBasedRlEnv, limit: int) -> torch.Tensor:
            self.count += 1
            return self.count >= limit

        def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
            self.count[env_ids] = 0

    def height(env: ManagerBasedRlEnv, offset: float = 0.0) -> torch.Tensor:
        return env.scene["robot"].data.root_link_pos_w[:, 2:3] + offset

    cfg = copy.deepcopy(cfg)
    cfg.observations["actor"].terms["height"] = ObservationTermCfg(
        func=height, params={"offset": 0.1}, scale=2.0, clip=(-1.0, 1.0), history_length=2
    )
    cfg.rewards["height"] = RewardTermCfg(func=lambda env: height(env).squeeze(-1), weight=1.0)
    cfg.terminations["steps"] = TerminationTermCfg(func=Steps, params={"limit": 4})
    cfg.metrics["height"] = MetricsTermCfg(func=lambda env: height(env)[:, 0], per_substep=True)
    cfg.curriculum["progress"] = CurriculumTermCfg(
        func=lambda env, env_ids: torch.tensor(float(env.common_step_counter))
    )
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    ended = [env.step(torch.zeros(3, 2))[2].all().item() for _ in range(5)]
    assert ended == [False, False, False, True, False]
    assert env.observation_manager.group_obs_dim["actor"] == (12,)
    env.close()


@idiom
def buffers_for_own_terms():
    """Delay and stack values."""
    from mjlab.utils.buffers import CircularBuffer, DelayBuffer

    history = CircularBuffer(max_len=3, batch_size=2, device="cpu")
    delay = DelayBuffer(min_lag=1, max_lag=1, batch_size=2, device="cpu")
    for step in range(4):
        value = torch.full((2, 1), float(step))
        history.append(value)
        delay.append(value)
    assert history.buffer[0, :, 0].tolist() == [1.0, 2.0, 3.0]
    assert delay.compute()[0].item() == 2.0


@idiom
def a_runner_by_hand(env, tmp_path):
    """Learn and load with a subclass of the runner."""
    from mjlab.rl import MjlabOnPolicyRunner, RslRlOnPolicyRunnerCfg, RslRlVecEnvWrapper

    class Runner(MjlabOnPolicyRunner):
        def save(self, path, infos=None):
            super().save(path, {**(infos or {}), "mark": 7})

    agent = RslRlOnPolicyRunnerCfg(num_steps_per_env=4, logger="tensorboard", save_interval=1)
    cfg = asdict(agent)
    cfg["obs_groups"]["critic"] = ("actor",)
    runner = Runner(RslRlVecEnvWrapper(env), cfg, str(tmp_path), "cpu")
    runner.add_git_repo_to_log(__file__)
    runner.learn(num_learning_iterations=1, init_at_random_ep_len=True)
    path = str(tmp_path / "model_1.pt")
    runner.save(path)
    assert runner.load(path, map_location="cpu")["mark"] == 7
    policy = runner.get_inference_policy(device="cpu")
    assert policy(runner.env.get_observations()).shape == (3, 2)
    runner.export_policy_to_onnx(str(tmp_path), filename="policy.onnx")
    assert (tmp_path / "policy.onnx").is_file()


@idiom
def own_configs_with_nested_ones():
    """Subclass a config, and change nested ones with `replace`."""
    from mjlab.managers import SceneEntityCfg
    from mjlab.tasks.velocity.mdp import UniformVelocityCommandCfg

    @dataclass(kw_only=True)
    class NarrowCommandCfg(UniformVelocityCommandCfg):
        narrow: float = 0.5

    ranges = UniformVelocityCommandCfg.Ranges((-1.0, 1.0), (-0.5, 0.5), (-1.0, 1.0), (-3.14, 3.14))
    cfg = NarrowCommandCfg(
        entity_name="robot",
        resampling_time_range=(3.0, 8.0),
        heading_command=True,
        ranges=ranges,
        viz=UniformVelocityCommandCfg.VizCfg(z_offset=1.0),
    )
    cfg.ranges = replace(cfg.ranges, lin_vel_y=(0.0, 0.0))
    assert ranges.lin_vel_y == (-0.5, 0.5) and cfg.narrow == 0.5 and cfg.viz.scale == 0.5
    assert SceneEntityCfg("robot", body_names="base").body_ids == slice(None)


@pytest.mark.parametrize("program", IDIOMS, ids=lambda function: function.__name__)
def test_an_idiom_works(program, request):
    """Run a short program."""
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    program(**{name: request.getfixturevalue(name) for name in names})
