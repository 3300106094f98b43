"""Pulling at bodies."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab.perturb import Perturbation


def test_the_force_is_mujocos(lab):
    """Pull as simulate does: the force is that of `mjv_applyPerturbForce` for the same spring."""
    pull, data, model = lab.perturbation, lab.loop.data, lab.world.model
    point = data.xpos[3] + np.array([0.0, 0.0, 0.05])
    pull.grab(3, point)
    pull.pull(point + np.array([0.2, 0.0, 0.1]))
    expected = mujoco.MjvPerturb()
    expected.select = 3
    expected.localpos[:] = [0.0, 0.0, 0.05]
    twin = mujoco.MjData(model)
    mujoco.mj_forward(model, twin)
    scene, option = mujoco.MjvScene(model, 1), mujoco.MjvOption()
    mujoco.mjv_updateScene(model, twin, option, None, mujoco.MjvCamera(), 0, scene)
    mujoco.mjv_initPerturb(model, twin, scene, expected)
    expected.refselpos[:] = point + np.array([0.2, 0.0, 0.1])
    expected.active = int(mujoco.mjtPertBit.mjPERT_TRANSLATE)
    mujoco.mjv_applyPerturbForce(model, twin, expected)
    lab.step()
    assert pull.body == 3 and np.abs(twin.xfrc_applied[3]).max() > 0.1
    assert np.array_equal(lab.snapshot.xfrc_applied, twin.xfrc_applied)
    lab.step(50)
    assert lab.snapshot.qvel[2] > 0.0


def test_letting_go_leaves_no_force(lab):
    """Let go, or fall silent for longer than allowed: the force is gone at the next step."""
    now = [0.0]
    pull = Perturbation(lab.loop, clock=lambda: now[0])
    for end in (pull.release, lambda: now.__setitem__(0, now[0] + 0.6)):
        pull.grab(3, lab.loop.data.xpos[3])
        pull.pull([1.0, 0.0, 1.0])
        lab.step(2)
        assert lab.snapshot.xfrc_applied[3].any()
        end()
        lab.step()
        assert not lab.snapshot.xfrc_applied.any() and pull.body == 0
    pull.pull([9.0, 9.0, 9.0])
    assert not lab.step().xfrc_applied.any()


def test_a_paused_body_is_put_where_it_is_pulled(lab):
    """Pause and pull: the body goes there, and time stands."""
    lab.pause()
    lab.loop.iterate_once()
    start = lab.loop.data.xpos[3].copy()
    lab.perturbation.grab(3, start)
    goal = start + np.array([0.0, 0.1, 0.2])
    lab.perturbation.pull(goal)
    lab.loop.iterate_once()
    assert lab.snapshot.qpos[2:5] == pytest.approx(goal)
    assert lab.snapshot.time == 0.0
    lab.perturbation.release()
    lab.loop.iterate_once()
    assert lab.snapshot.qpos[2:5] == pytest.approx(goal)


def test_a_mocap_body_goes_where_it_is_pulled(lab):
    """Pull the post while time goes by: it is put there, as simulate does."""
    start = lab.loop.data.xpos[4].copy()
    lab.perturbation.grab(4, start)
    lab.perturbation.pull(start + np.array([0.0, 0.3, 0.1]))
    lab.step()
    assert lab.snapshot.mocap_pos[0] == pytest.approx(start + np.array([0.0, 0.3, 0.1]))


def test_only_bodies_can_be_grabbed(lab):
    """Grab the world, and nothing."""
    for body in (0, 99):
        with pytest.raises(ValueError, match="no body .* to grab"):
            lab.perturbation.grab(body, [0.0, 0.0, 0.0])


def test_a_grab_waits_for_its_pull(lab):
    """Let steps go by between grab and pull, as with a slow hand: the pull counts."""
    lab.perturbation.grab(3, lab.snapshot.xpos[3])
    for _ in range(5):
        lab.loop.iterate_once()
    assert lab.perturbation.body == 3 and (lab.snapshot.xfrc_applied == 0.0).all()
    lab.perturbation.pull(lab.snapshot.xpos[3] + [0.0, 0.0, 1.0])
    lab.loop.iterate_once()
    assert lab.snapshot.xfrc_applied[3, 2] > 0.0
    lab.perturbation.release()
    lab.loop.iterate_once()
    assert lab.perturbation.body == 0 and (lab.snapshot.xfrc_applied == 0.0).all()
