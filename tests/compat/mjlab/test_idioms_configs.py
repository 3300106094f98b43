"""Short programs as users of the reference write them: configs, tools, and the registry."""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import mujoco
import pytest
import torch

from manyworlds.compat import mjlab

pytest.importorskip("rsl_rl", reason="the learner needs the extra 'train'")


@pytest.fixture(scope="module", autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


def test_configs_of_runners(tmp_path):
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


def test_a_newest_checkpoint(tmp_path):
    """Find the newest checkpoint of the newest run."""
    from mjlab.utils.os import get_checkpoint_path

    for run, step in (("2026-01-01", 50), ("2026-01-02", 50), ("2026-01-02", 100)):
        (tmp_path / run).mkdir(exist_ok=True)
        (tmp_path / run / f"model_{step}.pt").touch()
    path = get_checkpoint_path(tmp_path, run_dir=".*", checkpoint="model_.*.pt")
    assert Path(path) == tmp_path / "2026-01-02" / "model_100.pt"


def test_math_of_lab_api():
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


def test_tasks_of_the_registry():
    """List the tasks, and load their parts."""
    from mjlab.tasks.registry import list_tasks, load_env_cfg, load_rl_cfg, load_runner_cls

    name = "Mjlab-Velocity-Flat-Unitree-Go1"
    assert {name, "Mjlab-Cartpole-Balance", "Mjlab-Lift-Cube-Yam"} <= set(list_tasks())
    cfg, again = load_env_cfg(name), load_env_cfg(name, play=True)
    cfg.scene.num_envs = 7
    assert load_env_cfg(name).scene.num_envs == 1 and again.episode_length_s > 1e6
    assert load_rl_cfg(name).experiment_name == "go1_velocity"
    assert load_runner_cls(name) is None or issubclass(load_runner_cls(name), object)


def test_terrain_presets():
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


def test_settings_of_physics():
    """Give MuJoCo's options by position and by name."""
    from mjlab.sim import MujocoCfg, SimulationCfg
    from mjlab.utils.nan_guard import NanGuardCfg

    from tests.compat.mjlab import walker

    cfg = SimulationCfg(
        nconmax=50,
        njmax=300,
        mujoco=MujocoCfg(0.004, "euler", cone="elliptic", disableflags=("gravity",)),
        nan_guard=NanGuardCfg(enabled=True),
    )
    model = mujoco.MjSpec.from_string(walker.XML).compile()
    cfg.mujoco.apply(model)
    assert model.opt.timestep == 0.004 and model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    with pytest.raises(ValueError, match="gravitation"):
        MujocoCfg(disableflags=("gravitation",)).apply(model)


def test_edits_of_a_spec():
    """Edit a robot's spec by configs."""
    from mjlab.entity import Entity, EntityCfg
    from mjlab.utils.spec_config import CameraCfg, CollisionCfg, LightCfg, MaterialCfg, TextureCfg

    from tests.compat.mjlab import walker

    robot = Entity(
        EntityCfg(
            spec_fn=lambda: mujoco.MjSpec.from_string(walker.XML),
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


def test_noise_models():
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


def test_buffers_for_own_terms():
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


def test_own_configs_with_nested_ones():
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
