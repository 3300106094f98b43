"""Pulling at bodies."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab.play.perturb import Perturbation


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


def test_a_drag_is_a_grab_and_a_pull(lab):
    """Drag a point of a body, repeatedly: the force is that of a grab and a pull, and it turns."""
    data, pull = lab.loop.data, lab.perturbation
    local = np.array([0.0, 0.02, 0.05])
    point = data.xpos[3] + data.xmat[3].reshape(3, 3) @ local
    target = point + np.array([0.2, 0.0, 0.1])
    pull.grab(3, point)
    pull.pull(target)
    expected = lab.step().xfrc_applied[3]
    lab.reset()
    pull.release()
    lab.step()
    lab.reset()
    for _ in range(2):  # a renewal is no new grab
        pull.drag(3, local, target)
    assert np.array_equal(lab.step().xfrc_applied[3], expected)
    pull.drag(3, local, quat=np.array([0.0, 1.0, 0.0, 0.0]))
    turned = lab.step().xfrc_applied[3]
    assert np.abs(turned[3:]).max() > 0.0 and np.allclose(turned[:3], 0.0)
    pull.drag(3, local, target, np.array([0.0, 1.0, 0.0, 0.0]))
    both = lab.step().xfrc_applied[3]
    assert np.abs(both[:3]).max() > 0.0 and np.abs(both[3:]).max() > 0.0
    pull.release()
    assert not lab.step().xfrc_applied.any()


def test_pushes_add_up_and_last_for_one_step(lab):
    """Push twice: one step feels the sum, as in MuJoCo, and the next one feels nothing."""
    model, twin = lab.world.model, mujoco.MjData(lab.world.model)
    lab.world.reset(model, twin)
    mujoco.mj_forward(model, twin)
    for wrench in ([1.0, 0, 0, 0, 0, 0.5], [2.0, 0, 3.0, 0, 0, 0]):
        lab.perturbation.push(3, np.array(wrench))
    twin.ctrl[:] = lab.loop.data.ctrl
    twin.xfrc_applied[3] = [3.0, 0, 3.0, 0, 0, 0.5]
    lab.step()
    mujoco.mj_step(model, twin)
    twin.xfrc_applied[:] = 0.0
    assert np.array_equal(lab.snapshot.qvel, twin.qvel)
    assert not lab.snapshot.xfrc_applied.any()
    lab.step()
    mujoco.mj_step(model, twin)
    assert np.array_equal(lab.snapshot.qvel, twin.qvel)
    assert len(lab.loop._post) == 1  # only the timeline is called after further steps


def test_pushes_do_not_pile_up_while_the_world_is_paused(lab):
    """Push a paused world for a while: the first step feels the last push, on top of a pull."""
    lab.pause()
    for _ in range(5):
        lab.perturbation.push(3, np.array([1.0, 0, 0, 0, 0, 0]))
        lab.loop.iterate_once()
        assert not lab.snapshot.xfrc_applied.any()
    felt = []
    handle = lab.loop.on_pre_step(lambda model, data, moved: felt.append(data.xfrc_applied[3, 0]))
    lab.step()
    lab.step()
    handle.remove()
    assert felt == [1.0, 0.0]
    with pytest.raises(ValueError, match="no body 99 to push"):
        lab.perturbation.push(99, np.zeros(6))
