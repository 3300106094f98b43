"""What a user types, for pyright's standard mode: `tests/test_typing.py` finds no error in it.

Each line with `assert_type` completes in an editor. Each line with `pyright: ignore` has a typo,
which must be an error: pyright reports an ignore comment that nothing needs.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from typing import assert_type

import torch

from manyworlds.entity import Entity, EntityData
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp import dr
from manyworlds.lab import LiveLab
from manyworlds.lab.client import LabClient
from manyworlds.lab.page.page_context import PageContext
from manyworlds.managers import EventTermCfg, ManagerTermBase, RewardTermCfg, SceneEntityCfg
from manyworlds.sensor import CameraSensor, ContactSensor, RayCastSensor
from manyworlds.sim import Simulation
from manyworlds.tasks import load_env_cfg


def simulation(sim: Simulation) -> None:
    """Fields of data and model complete, with their shape; others are errors."""
    assert_type(sim.data.qpos, torch.Tensor)
    assert_type(sim.data.qpos[:, 0], torch.Tensor)
    assert_type(sim.data.xpos.shape, torch.Size)
    assert_type(sim.model.body_mass, torch.Tensor)
    assert_type(sim.model.opt.gravity, torch.Tensor)
    sim.data.ctrl[:] = 0.0
    sim.model.geom_friction[0] *= 2.0
    sim.data.qpso  # pyright: ignore[reportAttributeAccessIssue]
    sim.data.geom_xpso  # pyright: ignore[reportAttributeAccessIssue]
    sim.model.body_mas  # pyright: ignore[reportAttributeAccessIssue]
    sim.model.opt.gravty  # pyright: ignore[reportAttributeAccessIssue]
    sim.stepp()  # pyright: ignore[reportAttributeAccessIssue]


def scene(env: ManagerBasedRlEnv) -> None:
    """Entities and sensors are found by name, with their type."""
    robot = env.scene.entity("robot")
    assert_type(robot, Entity)
    assert_type(env.scene.sensor("feet", ContactSensor), ContactSensor)
    assert_type(env.scene.sensor("scan", RayCastSensor), RayCastSensor)
    assert_type(env.scene.sensor("feet", ContactSensor).data.force, torch.Tensor)
    assert_type(env.scene.sensor("scan", RayCastSensor).data.distances, torch.Tensor)
    assert_type(env.scene.sensor("eye", CameraSensor).data.depth, torch.Tensor)
    assert_type(env.scene.env_origins, torch.Tensor)
    env.scene.entity("robot").dta  # pyright: ignore[reportAttributeAccessIssue]
    env.scene.sensor("scan", RayCastSensor).data.distance  # pyright: ignore[reportAttributeAccessIssue]
    env.scene.sensor("feet", ContactSensor).data.forces  # pyright: ignore[reportAttributeAccessIssue]
    env.scene.entty("robot")  # pyright: ignore[reportAttributeAccessIssue]


def entity(robot: Entity) -> None:
    """State, names and writes of an entity complete."""
    assert_type(robot.data, EntityData)
    assert_type(robot.data.joint_pos, torch.Tensor)
    assert_type(robot.data.root_link_pos_w, torch.Tensor)
    assert_type(robot.data.default_joint_pos, torch.Tensor)
    assert_type(robot.joint_names, tuple[str, ...])
    assert_type(robot.num_joints, int)
    assert_type(robot.actuators[0].stiffness, torch.Tensor)
    assert_type(robot.num_actuators, int)
    assert_type(robot.find_joints(".*_knee"), tuple[list[int], list[str]])
    ids, names = robot.find_joints(".*", joint_subset=["hip", "knee"], preserve_order=True)
    assert_type(ids, list[int])
    assert_type(names, list[str])
    robot.find_bodies("trunk", preserve_order=True)
    robot.write_joint_state_to_sim(robot.data.joint_pos, robot.data.joint_vel)
    robot.set_joint_position_target(robot.data.default_joint_pos)
    robot.data.joint_poss  # pyright: ignore[reportAttributeAccessIssue]
    robot.data.root_pos_ww  # pyright: ignore[reportAttributeAccessIssue]
    robot.joint_nmes  # pyright: ignore[reportAttributeAccessIssue]
    robot.find_joints(".*", subset_of_joints=["hip"])  # pyright: ignore[reportCallIssue]
    robot.find_joint(".*")  # pyright: ignore[reportAttributeAccessIssue]
    robot.write_joint_states(robot.data.joint_pos)  # pyright: ignore[reportAttributeAccessIssue]


def config() -> ManagerBasedRlEnvCfg:
    """Terms of a task are edited by name."""
    cfg = load_env_cfg("Velocity-Flat-Quadruped")
    assert_type(cfg, ManagerBasedRlEnvCfg)
    cfg.scene.num_envs = 64
    cfg.rewards["upright"].weight = 2.0
    cfg.events["push_robot"].interval_range_s = (1.0, 2.0)
    cfg.observations["actor"].terms["joint_pos"].scale = 0.5
    cfg.terminations["fell_over"].params["limit_angle"] = 1.0
    cfg.rewards["near"] = RewardTermCfg(func=mdp.is_alive, weight=0.5)
    cfg.actions["joint_pos"].clip = {".*": (-1.0, 1.0)}
    cfg.commands["twist"].resampling_time_range = (2.0, 4.0)
    cfg.curriculum["command_vel"].params["velocity_stages"] = []
    cfg.metrics["mean_action_acc"].reduce = "max"
    del cfg.rewards["pose"]
    cfg.scene.num_env = 64  # pyright: ignore[reportAttributeAccessIssue]
    cfg.rewards["upright"].wieght = 2.0  # pyright: ignore[reportAttributeAccessIssue]
    cfg.observations["actor"].terms["joint_pos"].scal = 0.5  # pyright: ignore[reportAttributeAccessIssue]
    cfg.commands["twist"].resampling_time = (2.0, 4.0)  # pyright: ignore[reportAttributeAccessIssue]
    cfg.rewards["upright"] = EventTermCfg(func=dr.geom_friction, mode="reset")  # pyright: ignore[reportArgumentType]
    RewardTermCfg(func=mdp.is_alive, wight=0.5)  # pyright: ignore[reportCallIssue]
    return cfg


def randomization(cfg: ManagerBasedRlEnvCfg, env: ManagerBasedRlEnv) -> None:
    """Functions of `dr` have a signature, as terms and called directly."""
    cfg.events["friction"] = EventTermCfg(
        func=dr.geom_friction,
        mode="reset",
        params={"ranges": (0.5, 1.5), "asset_cfg": SceneEntityCfg("robot", geom_names=".*foot")},
    )
    dr.geom_friction(env, None, ranges=(0.5, 1.5), asset_cfg=SceneEntityCfg("robot"))
    dr.body_mass(env, None, ranges=(0.9, 1.1), operation="scale")
    dr.dof_damping(env, torch.tensor([0]), {".*knee": (0.9, 1.1)}, distribution="log_uniform")
    assert_type(dr.body_quat(env, None, yaw_range=(-0.1, 0.1)), None)
    dr.geom_frictoin(env, None, ranges=(0.5, 1.5))  # pyright: ignore[reportAttributeAccessIssue]
    dr.geom_friction(env, None, rangse=(0.5, 1.5))  # pyright: ignore[reportCallIssue]
    dr.geom_friction(env, None, ranges=0.5)  # pyright: ignore[reportArgumentType]
    dr.body_quat(env, None, ranges=(0.5, 1.5))  # pyright: ignore[reportCallIssue]
    EventTermCfg(func=dr.geom_friction, mode="restart")  # pyright: ignore[reportArgumentType]


def verbs(lab: LiveLab, client: LabClient, ctx: PageContext) -> None:
    """Verbs are methods with fields and replies, here, in clients, and on the page."""
    lab.verbs.set_paused(paused=True)
    assert_type(lab.verbs.step(10, targets={"arm": [0.0, 1.0]})["step"], int)
    assert_type(lab.verbs.read_status()["states"], list[str])
    assert_type(lab.facts.robots["arm"].targets["elbow"], float)
    assert_type(client.facts.recording.is_recording, bool)
    assert_type(ctx.lab.facts.timeline.ago, float)
    ctx.lab.facts.robots["arm"].ownr  # pyright: ignore[reportAttributeAccessIssue]
    assert_type(client.list_items(search="cup")["undo"], list[str])
    assert_type(client.verbs.pick_body([0.0, 0.0, 1.0], [0.0, 0.0, -1.0])["distance"], float)
    assert_type(ctx.verbs.undo()["label"], str)
    assert_type(ctx.verbs.export_model(sources=True)["mjb"], bytes)
    assert_type(client.reset()["time"], float)
    lab.verbs.set_pausd(paused=True)  # pyright: ignore[reportAttributeAccessIssue]
    lab.verbs.set_paused(pausd=True)  # pyright: ignore[reportCallIssue]
    lab.verbs.set_paused(paused="yes")  # pyright: ignore[reportArgumentType]
    lab.verbs.set_mode("pupet")  # pyright: ignore[reportArgumentType]
    lab.verbs.step()["stp"]  # pyright: ignore[reportGeneralTypeIssues]
    client.list_itms()  # pyright: ignore[reportAttributeAccessIssue]
    client.list_items(serch="cup")  # pyright: ignore[reportCallIssue]
    ctx.verbs.undo()["lable"]  # pyright: ignore[reportGeneralTypeIssues]
    ctx.verbs.grab_body("cup")  # pyright: ignore[reportCallIssue]


def steps(env: ManagerBasedRlEnv, action: torch.Tensor) -> None:
    """What a step returns has types."""
    obs, reward, terminated, truncated, _ = env.step(action)
    assert_type(obs["actor"].shape, torch.Size)
    assert_type(reward, torch.Tensor)
    assert_type(terminated | truncated, torch.Tensor)
    obs, _ = env.reset()
    assert_type(obs["actor"].shape, torch.Size)
    assert_type(env.step_dt, float)
    assert_type(env.num_envs, int)
    assert_type(env.command_manager.get_command("twist").shape, torch.Size)
    env.step_td  # pyright: ignore[reportAttributeAccessIssue]
    obs["actor"].shap  # pyright: ignore[reportAttributeAccessIssue]


class Driven(ManagerTermBase):
    """A term of one's own that keeps state."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self.distance = torch.zeros(self.num_envs, device=self.device)

    def reset(self, env_ids: torch.Tensor | None = None) -> None:
        """Begin new episodes in the selected worlds."""
        self.distance[slice(None) if env_ids is None else env_ids] = 0.0

    def __call__(self, env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
        """Return the distance so far, shape [num_envs]."""
        robot = env.scene.entity(asset_cfg.name)
        speed = robot.data.root_link_lin_vel_w[:, :2].norm(dim=1)
        self.distance += speed * env.step_dt
        return self.distance.clone()
