"""Short programs as users of the reference write them: parts of their own."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.compat import mjlab

pytest.importorskip("rsl_rl", reason="the learner needs the extra 'train'")


@pytest.fixture(scope="module", autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


@pytest.fixture(name="cfg")
def _cfg(_alias):
    from tests.compat.mjlab import walker

    return walker.env_cfg()


def _build(cfg):
    from mjlab.envs import ManagerBasedRlEnv

    env = ManagerBasedRlEnv(cfg=cfg, device="cpu")
    env.reset(seed=0)
    return env


def test_a_terrain_of_ones_own(cfg):
    """Generate a kind of terrain that the program defines, with flat patches to start from."""
    from mjlab.envs import mdp
    from mjlab.managers import EventTermCfg
    from mjlab.terrains import FlatPatchSamplingCfg, SubTerrainCfg, TerrainGeneratorCfg
    from mjlab.terrains.config import random_rough
    from mjlab.terrains.terrain_generator import TerrainGeometry, TerrainOutput

    @dataclass(kw_only=True)
    class PillarTerrainCfg(SubTerrainCfg):
        height: float = 0.2

        def function(
            self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
        ) -> TerrainOutput:
            body = spec.body("terrain")
            center = np.array([self.size[0] / 2, self.size[1] / 2, 0.0])
            floor = body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=(self.size[0] / 2, self.size[1] / 2, 0.1),
                pos=center - np.array([0.0, 0.0, 0.1]),
            )
            height = self.height * (0.5 + difficulty)
            pillar = body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_CYLINDER,
                size=(0.1, height / 2, 0.0),
                pos=center + np.array([rng.uniform(0.8, 1.0), 0.0, height / 2]),
            )
            geometries = [TerrainGeometry(geom=floor), TerrainGeometry(geom=pillar)]
            return TerrainOutput(origin=center, geometries=geometries)

    patches = {"spawn": FlatPatchSamplingCfg(num_patches=4, patch_radius=0.2, max_height_diff=0.2)}
    cfg.scene.terrain.terrain_type = "generator"
    cfg.scene.terrain.terrain_generator = TerrainGeneratorCfg(
        size=(4.0, 4.0),
        num_rows=2,
        num_cols=2,
        border_width=1.0,
        seed=1,
        sub_terrains={
            "pillars": PillarTerrainCfg(proportion=0.5, flat_patch_sampling=patches),
            "rough": random_rough(proportion=0.5, border_width=0.5, flat_patch_sampling=patches),
        },
    )
    cfg.events["reset_base"] = EventTermCfg(
        func=mdp.reset_root_state_from_flat_patches,
        mode="reset",
        params={"patch_name": "spawn", "pose_range": {"z": (0.1, 0.2)}},
    )
    env = _build(cfg)
    terrain = env.scene.terrain
    assert terrain.terrain_origins.shape == (2, 2, 3)
    assert terrain.flat_patches["spawn"].shape == (2, 2, 4, 3)
    positions = env.scene["robot"].data.root_link_pos_w[:, :2]
    near = torch.cdist(positions, terrain.flat_patches["spawn"].reshape(-1, 3)[:, :2]).amin(dim=1)
    assert near.max() < 1e-3
    types = env.sim.mj_model.geom_type
    assert (types == mujoco.mjtGeom.mjGEOM_CYLINDER).any()


def test_props_that_differ_between_worlds(cfg):
    """Add an object with two variants, randomize its mass, and read which world has which."""
    from mjlab.entity import EntityCfg, VariantEntityCfg
    from mjlab.envs.mdp import dr
    from mjlab.managers import EventTermCfg, SceneEntityCfg

    def prop(make) -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        mesh = spec.add_mesh(name="shape")
        make(mesh)
        mesh.scale[:] = (0.05,) * 3
        body = spec.worldbody.add_body(name="prop")
        body.add_freejoint()
        body.add_geom(name="prop_geom", type=mujoco.mjtGeom.mjGEOM_MESH, meshname="shape")
        return spec

    cfg.scene.num_envs = 4
    cfg.scene.entities["prop"] = VariantEntityCfg(
        variants={
            "sphere": lambda: prop(lambda mesh: mesh.make_sphere(subdivision=2)),
            "cone": lambda: prop(lambda mesh: mesh.make_cone(nedge=12, radius=1.0)),
        },
        assignment={"cone": 3.0},
        init_state=EntityCfg.InitialStateCfg(pos=(0.8, 0.0, 0.2)),
    )
    cfg.events["prop_inertia"] = EventTermCfg(
        func=dr.pseudo_inertia,
        mode="startup",
        params={"asset_cfg": SceneEntityCfg("prop", body_names=(".*",)), "alpha_range": (0.1, 0.3)},
    )
    env = _build(cfg)
    assert env.sim.world_to_variant["prop"].tolist() == [0, 1, 1, 1]
    mass = env.sim.model.body_mass[:, env.scene["prop"].indexing.root_body_id]
    assert len(mass.unique()) == 4 and (mass > 0).all()
    env.step(torch.zeros(4, 2))


def test_operations_and_distributions_of_ones_own(cfg):
    """Randomize by an operation and a distribution that the program defines."""
    from mjlab.envs.mdp import dr
    from mjlab.envs.mdp.dr import Distribution, Operation
    from mjlab.managers import EventTermCfg, SceneEntityCfg

    coin = Distribution(
        name="coin",
        sample=lambda low, high, shape, device: torch.where(
            torch.rand(shape, device=device) < 0.5, low, high
        ),
    )
    raise_to = Operation(
        name="raise_to",
        initialize=torch.zeros_like,
        combine=lambda base, random: torch.maximum(base, random),
        uses_defaults=True,
    )
    cfg.scene.num_envs = 16
    asset_cfg = SceneEntityCfg("robot", geom_names=(".*_foot_collision",))
    cfg.events["friction"] = EventTermCfg(
        func=dr.geom_friction,
        mode="startup",
        params={
            "asset_cfg": asset_cfg,
            "ranges": (0.2, 2.0),
            "operation": raise_to,
            "distribution": coin,
        },
    )
    cfg.events["damping"] = EventTermCfg(
        func=dr.joint_damping,
        mode="reset",
        params={"ranges": (0.1, 0.2), "operation": dr.add, "distribution": dr.uniform},
    )
    env = _build(cfg)
    robot = env.scene["robot"]
    feet = robot.indexing.geom_ids[robot.find_geoms(".*_foot_collision")[0]]
    friction = env.sim.model.geom_friction[:, feet, 0]
    assert sorted(friction.unique().tolist()) == [1.0, 2.0]
    damping = env.sim.model.dof_damping[:, robot.indexing.joint_v_adr]
    assert damping.min() >= 0.1 and damping.max() <= 0.2


def test_a_scene_is_edited_as_a_whole(cfg):
    """Add a tendon between entities and a sensor of MuJoCo to the whole scene."""
    from mjlab.managers import ObservationTermCfg
    from mjlab.sensor import BuiltinSensorCfg, ObjRef

    def edit(spec: mujoco.MjSpec) -> None:
        tendon = spec.add_tendon(name="leash", range=(0.0, 1.0))
        tendon.wrap_site("robot/left_foot")
        tendon.wrap_site("robot/right_foot")

    def leash(env) -> torch.Tensor:
        return env.sim.data.ten_length[:, env.sim.mj_model.tendon("leash").id][:, None]

    cfg.scene.spec_fn = edit
    cfg.scene.sensors += (
        BuiltinSensorCfg(
            name="foot_pos",
            sensor_type="framepos",
            obj=ObjRef(type="site", name="left_foot", entity="robot"),
            ref=ObjRef(type="site", name="imu", entity="robot"),
        ),
    )
    cfg.observations["actor"].terms["leash"] = ObservationTermCfg(func=leash)
    env = _build(cfg)
    assert env.scene["foot_pos"].data.shape == (3, 3)
    obs = env.step(torch.zeros(3, 2))[0]
    torch.testing.assert_close(obs["actor"][:, -1:], torch.full((3, 1), 0.3), rtol=0.2, atol=0.0)


def test_an_arm_follows_by_inverse_kinematics():
    """Move the tip of an arm by differential inverse kinematics."""
    from pathlib import Path

    from mjlab.actuator import XmlActuatorCfg
    from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
    from mjlab.envs import ManagerBasedRlEnvCfg, mdp
    from mjlab.envs.mdp.actions import DifferentialIKActionCfg
    from mjlab.managers import ObservationGroupCfg, ObservationTermCfg
    from mjlab.scene import SceneCfg

    file = Path(__file__).parent / "packages" / "picker" / "arm" / "arm.xml"
    arm = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_file(str(file)),
        init_state=EntityCfg.InitialStateCfg(joint_pos=None),
        articulation=EntityArticulationInfoCfg(
            actuators=(XmlActuatorCfg(target_names_expr=(".*",)),)
        ),
    )
    cfg = ManagerBasedRlEnvCfg(
        decimation=4,
        scene=SceneCfg(num_envs=2, entities={"robot": arm}),
        observations={"actor": ObservationGroupCfg({"pos": ObservationTermCfg(mdp.joint_pos_rel)})},
        actions={
            "tip": DifferentialIKActionCfg(
                entity_name="robot",
                actuator_names=("joint[1-5]",),
                frame_type="site",
                frame_name="grasp_site",
                orientation_weight=0.0,
                delta_pos_scale=0.1,
            )
        },
        episode_length_s=10.0,
    )
    env = _build(cfg)
    term = env.action_manager.get_term("tip")
    robot = env.scene["robot"]
    start = robot.data.site_pos_w[:, 0].clone()
    action = torch.zeros(2, term.action_dim)
    action[1, 2] = 0.5
    for _ in range(30):
        env.step(action)
    moved = robot.data.site_pos_w[:, 0] - start
    assert moved[1, 2] > moved[0, 2] + 0.03 and term.compute_dq().shape[0] == 2


def test_a_network_of_ones_own_learns(cfg, tmp_path):
    """Learn with a model that the program names by its module, and a critic that sees more."""
    from mjlab.rl import (
        MjlabOnPolicyRunner,
        RslRlModelCfg,
        RslRlOnPolicyRunnerCfg,
        RslRlPpoAlgorithmCfg,
        RslRlVecEnvWrapper,
    )

    @dataclass
    class SymmetricPpoCfg(RslRlPpoAlgorithmCfg):
        symmetry_cfg: dict = field(
            default_factory=lambda: {
                "use_data_augmentation": True,
                "use_mirror_loss": False,
                "data_augmentation_func": "tests.compat.mjlab.own_network:mirrored",
            }
        )

    cfg.observations["critic"].concatenate_terms = True
    agent = RslRlOnPolicyRunnerCfg(
        actor=RslRlModelCfg(
            hidden_dims=(8,),
            class_name="tests.compat.mjlab.own_network:BoundedModel",
            distribution_cfg={"class_name": "GaussianDistribution", "init_std": 1.0},
        ),
        critic=RslRlModelCfg(hidden_dims=(8,)),
        algorithm=SymmetricPpoCfg(num_learning_epochs=1),
        obs_groups={"actor": ("actor",), "critic": ("actor", "critic")},
        num_steps_per_env=4,
        logger="tensorboard",
    )
    env = RslRlVecEnvWrapper(_build(cfg))
    runner = MjlabOnPolicyRunner(env, asdict(agent), str(tmp_path), "cpu")
    runner.learn(1)
    actions = runner.get_inference_policy()(env.get_observations())
    assert actions.abs().max() <= 1.0 and type(runner.alg.get_policy()).__name__ == "BoundedModel"


def test_an_environment_of_ones_own(cfg):
    """Extend the environment: its managers, steps and drawings."""
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.envs.types import VecEnvStepReturn
    from mjlab.viewer.debug_visualizer import NullDebugVisualizer

    class Env(ManagerBasedRlEnv):
        def load_managers(self) -> None:
            super().load_managers()
            self.energy = torch.zeros(self.num_envs, device=self.device)

        def step(self, action: torch.Tensor) -> VecEnvStepReturn:
            result = super().step(action)
            self.energy += torch.sum(torch.square(action), dim=-1) * self.step_dt
            result[-1]["log"]["Own/energy"] = self.energy.mean()
            return result

        def update_visualizers(self, visualizer) -> None:
            super().update_visualizers(visualizer)
            visualizer.add_sphere((0.0, 0.0, 1.0), 0.1, (1.0, 0.0, 0.0, 1.0))

    env = Env(cfg, device="cpu")
    env.reset()
    extras = env.step(torch.ones(3, 2))[-1]
    assert extras["log"]["Own/energy"].item() == pytest.approx(2 * env.step_dt)
    env.update_visualizers(NullDebugVisualizer())
    env.close()


def test_an_environment_that_extends_resets(cfg):
    """Start all new episodes by an own `_reset_idx`, those of single worlds, too."""
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.rl import RslRlVecEnvWrapper

    class Env(ManagerBasedRlEnv):
        def __init__(self, cfg, device: str, **options) -> None:
            super().__init__(cfg, device, **options)
            self.started = torch.zeros(self.num_envs, device=self.device)
            self.calls: list[list[int]] = []
            self.resets = 0

        def reset(self, *, seed=None, env_ids=None, options=None):
            self.resets += 1
            return super().reset(seed=seed, env_ids=env_ids, options=options)

        def _reset_idx(self, env_ids: torch.Tensor | None = None) -> None:
            super()._reset_idx(env_ids)
            self.started[env_ids] += 1
            self.calls.append(env_ids.tolist())
            self.extras["log"]["Own/started"] = self.started.mean()

    class Derived(Env):
        pass

    cfg = copy.deepcopy(cfg)
    cfg.episode_length_s = 0.06
    env = Derived(cfg, device="cpu")
    _, extras = env.reset()
    assert env.calls == [[0, 1, 2]] and extras["log"]["Own/started"] == 1.0
    assert env.resets == 1
    env.reset(env_ids=torch.tensor([2]))
    for _ in range(3):
        _, _, _, truncated, extras = env.step(torch.zeros(3, 2))
    assert truncated.all() and env.calls == [[0, 1, 2], [2], [0, 1, 2]]
    assert any(name.startswith("Episode_Termination/") for name in extras["log"])
    env._reset_idx(torch.tensor([1]))
    assert env.started.tolist() == [2.0, 3.0, 3.0] and env.episode_length_buf[1] == 0
    RslRlVecEnvWrapper(env)
    assert env.resets == 3 and env.calls[-1] == [0, 1, 2]
    plain = ManagerBasedRlEnv(cfg, device="cpu")
    plain.reset()
    plain._reset_idx(torch.tensor([0]))
    for each in (env, plain):
        each.close()


def test_worlds_that_the_program_resets(cfg):
    """Step without automatic resets, and reset the worlds that ended."""
    cfg = copy.deepcopy(cfg)
    cfg.auto_reset = False
    cfg.episode_length_s = 0.06
    env = _build(cfg)
    for _ in range(3):
        _, _, terminated, truncated, _ = env.step(torch.zeros(3, 2))
    assert truncated.all() and not terminated.any()
    with pytest.raises(RuntimeError, match="must be reset"):
        env.step(torch.zeros(3, 2))
    env.reset(env_ids=truncated.nonzero(as_tuple=False).squeeze(-1))
    assert not env.step(torch.zeros(3, 2))[3].any()


def test_a_page_of_ones_own(cfg):
    """Add controls to a viser server before the viewer uses it."""
    import viser
    from mjlab.viewer import ViserPlayViewer

    server = viser.ViserServer(port=0)
    pressed = SimpleNamespace(count=0)
    button = server.gui.add_button("count")
    button.on_click(lambda _: setattr(pressed, "count", pressed.count + 1))
    env = _build(cfg)
    viewer = ViserPlayViewer(env, lambda obs: torch.zeros(3, 2), viser_server=server)
    viewer.run(num_steps=2)
    assert viewer.get_status().step_count == 2 and viewer.get_status().last_error is None
