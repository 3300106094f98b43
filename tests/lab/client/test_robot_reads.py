"""Robots of a client have the state that entities of a batch have, under the same names."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LiveLab
from manyworlds.lab.client import UnknownNameError, connect
from manyworlds.tasks import load_env_cfg
from tests.lab.client.conftest import address, serve
from tests.robots import robot_file
from tools.write_entity_reads import read_properties

OF_LAST_STEP = {"joint_acc", "actuator_force", "qfrc_actuator", "qfrc_external"}
"""Quantities of the last physics step; a world that is opened afresh has not made it."""
TASKS = {
    "Velocity-Flat-Quadruped": "",
    "Lift-Cube-Arm": "",
    "Velocity-Flat-Go1": "unitree_go1/go1.xml",
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_states_are_those_of_the_batch(task):
    """Step a batch, open its second world as a lab: each property of each entity is equal."""
    if TASKS[task]:
        robot_file(TASKS[task])
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 2, 3
    env = ManagerBasedRlEnv(cfg, device="cpu")
    for _ in range(5):
        env.step(torch.rand(2, env.action_manager.total_action_dim))
    with (
        LiveLab.from_env(env, 1) as lab,
        serve(lab) as hub,
        connect(address(hub), patience=60.0) as client,  # the server exports the meshes first
    ):
        assert set(client.robots) == set(env.scene.entities)
        with pytest.raises(UnknownNameError, match="'terrain' has no body"):
            _ = client["terrain"].joint_pos
        for name in set(client.robots) - {"terrain"}:  # part of the world body
            robot, entity = client[name], env.scene[name]
            indexing = entity.indexing
            assert robot.actuators == tuple(entity.actuator_names)
            assert len(robot.bodies) == len(indexing.bodies)
            for field in sorted(set(read_properties()) - OF_LAST_STEP):
                expected = getattr(entity.data, field)[1].numpy()
                got = getattr(robot, field)
                assert got.shape == expected.shape, field
                assert np.allclose(got, expected, rtol=1e-5, atol=2e-6), field
    env.close()


def test_quantities_of_the_last_step(client, lab):
    """Step a world with ball joints: accelerations and forces are those of MuJoCo's step."""
    for _ in range(3):
        client.step(targets={"go": {"hip": 1.0, "lag": 0.5}})
    go, model, data = client["go"], lab.model, lab.loop.data
    hip = model.joint("go/hip").dofadr[0]
    assert go.joint_acc.tolist() == [np.float32(data.qacc[hip])] and go.joint_acc[0] != 0.0
    assert np.array_equal(go.actuator_force, data.actuator_force[:2].astype(np.float32))
    assert go.ball_joint_quat.shape == (1, 4) and go.ball_joint_ang_vel.shape == (1, 3)
    assert go.root_link_pose_w.shape == (7,) and go.body_link_vel_w.shape == (3, 6)
    client.step(wrenches={"go/base": [1.0, 0.0, 0.0, 0.0, 0.0, 2.0]})
    assert not go.body_external_wrench.any()  # for these steps only
    client.reset(qpos={"go": {"hip": 0.4}})
    assert go.joint_pos.tolist() == [np.float32(0.4)]
    assert go.projected_gravity_b.tolist() == [0.0, 0.0, -1.0]
    for gravity, direction in (((0.0, 3.0, -4.0), [0.0, 0.6, -0.8]), ((0.0, 0.0, 0.0), [0.0] * 3)):
        client.set_sim_options({"gravity": gravity})
        np.testing.assert_allclose(go.gravity_vec_w, direction, atol=1e-6)
