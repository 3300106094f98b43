"""Facts of tasks on pages."""

import mujoco
import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.share.task_facts import command_facts, world_facts
from manyworlds.tasks import load_env_cfg


@pytest.fixture(scope="module")
def quadruped():
    """Build the quadruped's task with one world."""
    cfg = load_env_cfg("Velocity-Flat-Quadruped", play=True)
    cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    yield env
    env.close()


def test_commands_have_labels_and_bounds(quadruped):
    """Offer the three velocities that keys drive, from zero."""
    [command] = command_facts(quadruped)
    assert command["name"] == "twist" and command["kind"] == "velocity"
    assert command["labels"] == ["forward [m/s]", "left [m/s]", "turn [rad/s]"]
    assert command["low"] == [-1.0, -1.0, -0.5] and command["start"] == [0.0, 0.0, 0.0]


def test_randomization_names_rows_of_the_page_s_model(quadruped):
    """Give the rows of elements of the same name in a model with further geoms and bodies."""
    spec = quadruped.scene.spec.copy()
    extra = spec.worldbody.add_body(name="extra")
    extra.add_geom(name="extra", size=[0.1, 0.0, 0.0])
    model = spec.compile()
    plain = quadruped.sim.mj_model
    facts = world_facts(quadruped, model)
    entries = {entry["label"]: entry for entry in facts["randomization"]}
    slide = entries["foot friction slide"]
    names = {model.geom(i).name for i in slide["ids"]}
    assert names == {f"robot/{leg}_foot_collision" for leg in ("FR", "FL", "RR", "RL")}
    assert slide["ids"] != [plain.geom(name).id for name in sorted(names)]
    assert (slide["low"], slide["high"], slide["axes"]) == ([0.3], [1.5], [0])
    assert slide["operation"] == "abs" and slide["shared"] is True
    assert entries["foot friction spin"]["distribution"] == "log_uniform"
    assert entries["base com"]["field"] == "body_ipos"
    assert [model.body(i).name for i in entries["base com"]["ids"]] == ["robot/trunk"]


def test_starts_ends_and_cameras_are_those_of_the_task(quadruped):
    """Draw the start around the keyframe, end where the robot falls, follow its trunk."""
    facts = world_facts(quadruped, quadruped.sim.mj_model)
    [start] = facts["reset"]["ranges"]
    assert start["body"] == "robot/trunk"
    assert start["low"] == [-0.5, -0.5, 0.01, 0.0, 0.0, -3.14]
    [fall] = facts["terminations"]
    assert fall["kind"] == "tilt" and 1.2 < fall["limit_rad"] < 1.3
    assert facts["camera"]["track_body"] == "robot/trunk"
    quadruped.cfg.viewer.body_name = "nothing"
    camera = world_facts(quadruped, quadruped.sim.mj_model)["camera"]
    quadruped.cfg.viewer.body_name = "trunk"
    assert camera["track_body"] is None


def test_joints_start_within_their_ranges():
    """Give a range for each joint that a task moves at the start."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    facts = world_facts(env, env.sim.mj_model)
    env.close()
    assert facts["reset"]["ranges"] == [
        {"joint": "cartpole/slider", "low": [-0.1], "high": [0.1]},
        {"joint": "cartpole/hinge_1", "low": [-0.034], "high": [0.034]},
    ]
    assert {"label": "time out", "kind": "time", "limit_s": 10.0} in facts["terminations"]
    assert mujoco.mj_name2id(env.sim.mj_model, mujoco.mjtObj.mjOBJ_JOINT, "cartpole/slider") >= 0
