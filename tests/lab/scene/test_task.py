"""Edits of a world that a task's environment drives."""

from __future__ import annotations

import numpy as np

from manyworlds.entity import PropCfg
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LiveLab
from manyworlds.tasks.registry import load_env_cfg


def test_an_edit_ends_the_tasks_driving_and_says_so():
    """Add a prop to a task's world: plain MuJoCo goes on from its state, and a note says so."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs = 1
    lab = LiveLab.driven_by(ManagerBasedRlEnv(cfg, device="cpu"))
    lab.step(20)
    qpos, masses = lab.snapshot.qpos.copy(), lab.model.body_mass.copy()
    lab.scene.add_prop(PropCfg.primitive("sphere", (0.1,)), pos=(0.0, 2.0, 1.0))
    assert lab.environment is None and "no longer steps" in " ".join(lab.scene.notes)
    assert np.array_equal(lab.snapshot.qpos[: len(qpos)], qpos)
    assert np.array_equal(lab.model.body_mass[: len(masses)], masses), "what was randomized stays"
    assert np.isfinite(lab.step(20).qpos).all()
    lab.stop()


def test_a_move_in_a_world_of_a_batch_is_in_its_initial_state():
    """Move the cube of a copied world: its drawn values stay; a reset returns to the new place."""
    cfg = load_env_cfg("Lift-Cube-Arm")
    cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    lab = LiveLab.from_env(env, 1)
    lab.step(20)
    model, masses = lab.model, lab.model.body_mass.copy()
    frictions = lab.model.geom_friction.copy()
    lab.scene.move("cube", pos=(0.3, 0.1, 0.2))
    assert lab.model is model and lab.timeline.num_frames >= 20
    assert np.array_equal(model.body_mass, masses)
    assert np.array_equal(model.geom_friction, frictions)
    placed = lab.snapshot.qpos.copy()
    lab.step(50)
    lab.reset()
    start = lab.model.jnt_qposadr[lab.model.body("cube/cube").jntadr[0]]
    assert np.array_equal(lab.snapshot.qpos[start : start + 3], placed[start : start + 3])
    lab.scene.undo()
    lab.reset()
    assert not np.array_equal(lab.snapshot.qpos[start : start + 3], placed[start : start + 3])
    lab.stop()
    env.close()
