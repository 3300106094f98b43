"""Mirror images of observations and actions of whole environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp import mirrors
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg, SceneEntityCfg
from manyworlds.managers.symmetry import EnvSymmetry, Reflection, symmetry
from manyworlds.sensor import BuiltinSensorCfg, ObjRef
from manyworlds.tasks import load_env_cfg

# Steps: robots that are not exactly symmetric have slightly different futures.
TASKS = {
    "Velocity-Flat-Quadruped": 8,
    "Velocity-Flat-Humanoid": 8,
    "Velocity-Rough-Quadruped": 8,
    "Velocity-Flat-Go1": 0,
    "Velocity-Flat-G1": 0,
}


def exact(task: str) -> ManagerBasedRlEnvCfg:
    """Configure two worlds without randomness, on level ground."""
    cfg: Any = load_env_cfg(task)
    cfg.scene.num_envs = 2
    cfg.scene.terrain.terrain_type, cfg.scene.terrain.terrain_generator = "plane", None
    cfg.curriculum, cfg.terminations = {}, {}
    cfg.events = {}
    cfg.observations["actor"].enable_corruption = False
    cfg.commands["twist"].heading_command = False
    cfg.commands["twist"].rel_standing_envs = 0.0
    cfg.sim.mujoco.iterations, cfg.sim.mujoco.ls_iterations = 50, 50
    return cfg


def imu_offset(env: ManagerBasedRlEnv) -> float:
    """Return the lateral position of the velocimeter [m]."""
    model = env.sim.mj_model
    return float(model.site_pos[model.sensor("robot/imu_lin_vel").objid[0], 1])


def step_images(env: ManagerBasedRlEnv, mirror: EnvSymmetry, steps: int) -> None:
    """Step world 0 with random actions from a random state, and world 1 with their images."""
    table = mirror.table("robot")
    rng = np.random.default_rng(0)
    env.reset()
    model, data = env.sim.mj_model, env.sim.data
    default = env.scene["robot"].data
    qpos = torch.cat([default.default_root_state[0, :7], default.default_joint_pos[0]]).numpy()
    qpos = qpos.astype(float) + 0.05 * rng.standard_normal(model.nq) * (np.arange(model.nq) > 6)
    qvel = 0.3 * rng.standard_normal(model.nv)
    data.qpos[0], data.qpos[1] = torch.tensor(qpos), torch.tensor(table.mirror_qpos(qpos))
    data.qvel[0], data.qvel[1] = torch.tensor(qvel), torch.tensor(table.mirror_qvel(qvel))
    env.sim.forward()
    twist: Any = env.command_manager.get_term("twist")
    twist.time_left[:] = 1e3
    command = torch.tensor([[0.5, -0.3, 0.4]])
    twist.vel_command_b[:] = torch.cat([command, mirror.command("twist")(command)])
    for _ in range(steps):
        action = torch.tensor(0.3 * rng.standard_normal((1, env.action_manager.total_action_dim)))
        env.step(torch.cat([action.float(), mirror.action(action.float())]))


@pytest.mark.parametrize("task", TASKS)
def test_observations_of_a_mirrored_world_are_the_mirrored_observations(task: str) -> None:
    """Step a world and its image with images of actions, and compare all observation groups."""
    env = ManagerBasedRlEnv(exact(task), device="cpu")
    mirror = EnvSymmetry(env, ("actor", "critic"))
    step_images(env, mirror, TASKS[task])
    observed: Any = env.observation_manager.compute(update_history=True)
    if TASKS[task]:
        assert observed["critic"][:, -6:].abs().sum() > 0  # forces of feet on the ground
    for group, reflection in mirror.groups.items():
        obs = observed[group]
        if TASKS[task] == 0 and group == "critic":
            continue  # forces depend on the inertia
        image = reflection(obs[:1])
        # The velocimeter is beside the sagittal plane, and the body turns.
        beside = torch.tensor([[0.0, 2.0 * imu_offset(env), 0.0]])
        image[:, :3] += torch.linalg.cross(image[:, 3:6], beside)
        assert not torch.allclose(image, obs[:1], atol=1e-2)
        # The solver stops at its tolerance, and states are rounded to float32.
        torch.testing.assert_close(obs[1:], image, atol=2e-3, rtol=1e-3)
        torch.testing.assert_close(reflection(reflection(obs)), obs)
    env.close()


def test_a_velocimeter_far_beside_the_plane_is_told(recwarn: pytest.WarningsRecorder) -> None:
    """Say nothing of a distance that matters little, as on Go1; warn of 0.3 m."""
    env = ManagerBasedRlEnv(exact("Velocity-Flat-Quadruped"), device="cpu")
    mirrors.builtin_sensor(EnvSymmetry(env, ()), "robot/imu_lin_vel")
    assert not [w for w in recwarn if "plane" in str(w.message)]
    env.sim.mj_model.site("robot/imu").pos[1] = 0.3
    with pytest.warns(UserWarning, match="'robot/imu' is 0.30 m beside the sagittal plane"):
        mirrors.builtin_sensor(EnvSymmetry(env, ()), "robot/imu_lin_vel")
    env.close()


def test_height_scan_is_reordered_row_by_row() -> None:
    """The grid of a terrain scan, x fastest, is flipped along y."""
    cfg = exact("Velocity-Rough-Quadruped")
    env = ManagerBasedRlEnv(cfg, device="cpu")
    rule = mirrors.rays(EnvSymmetry(env, ()), "terrain_scan")
    scan = torch.randn(3, 11 * 17)
    assert torch.equal(rule(scan), scan.view(3, 11, 17).flip(1).flatten(1))
    env.close()


def undeclared(env: Any) -> torch.Tensor:
    """Return a value without a declaration."""
    return torch.zeros(env.num_envs, 1)


@symmetry(mirrors.joints)
def matrix(env: Any, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return positions and velocities of the joints as two rows."""
    robot = env.scene["robot"].data
    return torch.stack([robot.joint_pos, robot.joint_vel], dim=1)


@symmetry(mirrors.unchanged)
def base_height(env: Any) -> torch.Tensor:
    """Return the height of the root [m]."""
    return env.scene["robot"].data.root_link_pos_w[:, 2:]


class Twice:
    """Yaw rate and its opposite, which declares its mirror image by a method."""

    def __init__(self, cfg: Any, env: Any) -> None:
        """Keep nothing."""

    def __call__(self, env: Any) -> torch.Tensor:
        """Return the values, shape [num_envs, 2]."""
        rate = env.scene["robot"].data.root_link_ang_vel_b[:, 2:]
        return torch.cat([rate, -rate], dim=1)

    def mirror(self, mirror: EnvSymmetry) -> Reflection:
        """Exchange the columns."""
        return Reflection.of((1, 0), (1.0, 1.0))


@symmetry(lambda mirror: Reflection.of((1, 0), (1.0, -1.0)))
def inconsistent(env: Any) -> torch.Tensor:
    """Return two values, with a rule that does not undo itself."""
    return torch.zeros(env.num_envs, 2)


def with_terms(**terms: ObservationTermCfg) -> ManagerBasedRlEnvCfg:
    """Configure a task with a group "own"."""
    cfg = exact("Velocity-Flat-Quadruped")
    cfg.observations["own"] = ObservationGroupCfg(terms=terms)
    return cfg


def mirror_own(cfg: ManagerBasedRlEnvCfg) -> tuple[ManagerBasedRlEnv, EnvSymmetry]:
    """Build the environment and the images of its group "own"."""
    env = ManagerBasedRlEnv(cfg, device="cpu")
    return env, EnvSymmetry(env, ("own",))


@pytest.mark.parametrize("flatten", [True, False])
def test_terms_with_history_of_the_users_own(flatten: bool) -> None:
    """Each step of a history is mirrored, in any layout, scaled and concatenated."""
    cfg = with_terms(
        velocity=ObservationTermCfg(func=mdp.base_lin_vel, scale=(1.0, 2.0, 3.0)),
        twice=ObservationTermCfg(func=Twice),
        height=ObservationTermCfg(func=base_height),
    )
    own: Any = cfg.observations["own"]
    own.history_length, own.flatten_history_dim = 3, flatten
    env, mirror = mirror_own(cfg)
    step_images(env, mirror, steps=6)
    obs: Any = env.observation_manager.compute(update_history=True)["own"]
    assert obs.shape == ((2, 18) if flatten else (2, 3, 6))
    torch.testing.assert_close(mirror.groups["own"](obs[:1]), obs[1:], atol=1e-3, rtol=1e-3)
    assert (obs[0] - obs[1]).abs().max() > 0.05
    env.close()


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ({"func": undeclared}, "'own/term' does not declare how it mirrors: decorate 'undeclared'"),
        (
            {"func": matrix, "params": {"asset_cfg": SceneEntityCfg("robot")}},
            "has 24 elements, but its rule returns a reflection of 12",
        ),
        ({"func": inconsistent}, "be its own inverse"),
        ({"func": mdp.base_lin_vel, "clip": (-1.0, 2.0)}, r"clip=\(-1.0, 2.0\) is not symmetric"),
        (
            {"func": mdp.joint_vel_rel, "scale": (2.0, *[1.0] * 11)},
            "the scales .* of column 0 and of its mirror image column 3 are 2 and 1",
        ),
    ],
)
def test_terms_without_a_mirror_image_raise(term: dict[str, Any], message: str) -> None:
    """The message says which term, and how to declare or mend it."""
    cfg = with_terms(term=ObservationTermCfg(**term))
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with pytest.raises(ValueError, match=message):
        EnvSymmetry(env, ("own",))
    env.close()


def test_asymmetric_poses_scales_and_selections_raise() -> None:
    """Defaults, scales of actions, and joints without their images are named."""
    cfg: Any = exact("Velocity-Flat-Quadruped")
    cfg.actions["joint_pos"].scale = {"FL_hip_joint": 0.1, "(?!FL_hip).*": 0.2}
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with pytest.raises(ValueError, match="scales of .*hip_joint .* 0.1"):
        EnvSymmetry(env, ())
    env.close()
    cfg = exact("Velocity-Flat-Quadruped")
    init = cfg.scene.entities["robot"].init_state
    init.joint_pos = {"FL_calf_joint": -1.5, "(?!FL_calf).*": 0.0}
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with pytest.raises(ValueError, match="FL_calf_joint"):
        EnvSymmetry(env, ())
    env.close()
    left = SceneEntityCfg("robot", joint_names=("[FR]L_.*",))
    cfg = with_terms(left=ObservationTermCfg(func=mdp.joint_vel_rel, params={"asset_cfg": left}))
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with pytest.raises(ValueError, match="without their mirror images .*robot/FR_calf_joint"):
        EnvSymmetry(env, ("own",))
    env.close()


PELVIS = ObjRef(type="site", name="imu_in_pelvis", entity="robot")
TORSO = ObjRef(type="body", name="torso_link", entity="robot")
TURNED = ObjRef(type="xbody", name="torso_link", entity="robot")
LEFT = ObjRef(type="xbody", name="left_ankle_roll_link", entity="robot")
SENSORS: dict[str, dict[str, Any]] = {
    "accelerometer": {"obj": PELVIS},
    "gyro": {"obj": PELVIS},
    "framepos": {"obj": TURNED, "ref": PELVIS},
    "framelinvel": {"obj": TURNED},
    "frameangvel": {"obj": TORSO, "ref": PELVIS},
    "framezaxis": {"obj": TURNED, "ref": PELVIS},
    "subtreelinvel": {"obj": TORSO},
    "subtreeangmom": {"obj": TORSO},
}


def with_sensors(**sensors: dict[str, Any]) -> ManagerBasedRlEnvCfg:
    """Configure the humanoid with sensors, each named after its type, in a group "own"."""
    cfg = exact("Velocity-Flat-Humanoid")
    cfg.scene.sensors += tuple(
        BuiltinSensorCfg(name=name, sensor_type=name, **refs)  # type: ignore[arg-type]
        for name, refs in sensors.items()
    )
    terms = {
        name: ObservationTermCfg(func=mdp.builtin_sensor, params={"sensor_name": name})
        for name in sensors
    }
    cfg.observations["own"] = ObservationGroupCfg(terms=terms)
    return cfg


def test_sensors_mirror_by_the_kind_of_their_vector() -> None:
    """Polar and axial vectors in frames of sites and bodies, and in the world frame."""
    env, mirror = mirror_own(with_sensors(**SENSORS))
    step_images(env, mirror, steps=4)
    obs: Any = env.observation_manager.compute(update_history=True)["own"]
    image = mirror.groups["own"](obs[:1])
    torch.testing.assert_close(image, obs[1:], atol=5e-3, rtol=2e-3)
    axial = {"gyro", "frameangvel", "subtreeangmom"}
    signs = mirror.groups["own"].sign.view(-1, 3)
    assert [row.tolist() for row in signs] == [
        [-1.0, 1.0, -1.0] if name in axial else [1.0, -1.0, 1.0] for name in SENSORS
    ]
    env.close()


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        ({"framepos": {"obj": LEFT}}, "'robot/left_ankle_roll_link', whose mirror image is 'robot"),
        ({"framexaxis": {"obj": TORSO}}, "no mirror image is known .* mjSENS_FRAMEXAXIS"),
    ],
)
def test_sensors_without_a_mirror_image_raise(sensor: dict[str, Any], message: str) -> None:
    """A sensor of one side, and a kind of vector without a rule."""
    env = ManagerBasedRlEnv(with_sensors(**sensor), device="cpu")
    with pytest.raises(ValueError, match=message):
        EnvSymmetry(env, ("own",))
    env.close()
