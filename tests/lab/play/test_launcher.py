"""Launches of free bodies at targets."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LiveLab, world_from_file, world_from_spec
from manyworlds.lab.verbs import VerbError

THROW = """
<mujoco model="throw">
  <option timestep="{dt}" integrator="{integrator}" gravity="{gravity}"/>
  <worldbody>
    <body name="ball" pos="0.2 -.3 .4">
      <freejoint/><geom size=".02" contype="0" conaffinity="0"/>
    </body>
    <body name="box" pos="0 1 1">
      <freejoint/><geom type="box" size=".1 .05 .02" pos=".03 0 0" contype="0" conaffinity="0"/>
    </body>
    <body name="goal" pos="3 1.5 1.2"><geom size=".1" contype="0" conaffinity="0"/></body>
  </worldbody>
</mujoco>
"""


def throw(dt=0.002, integrator="Euler", gravity="0 0 -9.81") -> LiveLab:
    """A lab of two bodies that fly freely, and a goal."""
    text = THROW.format(dt=dt, integrator=integrator, gravity=gravity)
    return LiveLab(world_from_spec(mujoco.MjSpec.from_string(text)))


def nearest(lab: LiveLab, body: str, goal: np.ndarray, seconds: float) -> float:
    """Shortest distance of the straight pieces of a body's path from a goal [m]."""
    row, best, model = lab.model.body(body).id, np.inf, lab.model
    data = lab.loop.data
    before = data.xipos[row].copy()
    for _ in range(round(seconds / model.opt.timestep)):
        lab.loop.iterate_once()
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        after = data.xipos[row].copy()
        piece = after - before
        length = float(piece @ piece)
        share = np.clip((goal - before) @ piece / length, 0.0, 1.0) if length else 0.0
        best = min(best, float(np.linalg.norm(before + share * piece - goal)))
        if best < 0.5 and np.linalg.norm(after - goal) > np.linalg.norm(before - goal):
            break  # it has passed
        before = after
    return best


@pytest.mark.parametrize(
    ("dt", "integrator", "gravity"),
    [
        (0.002, "Euler", "0 0 -9.81"),
        (0.005, "implicitfast", "0 0 -1.62"),
        (0.02, "Euler", "1 0 -5"),
        (0.01, "RK4", "0 0 -9.81"),
    ],
)
def test_a_parabola_hits_the_target(dt, integrator, gravity):
    """Launch two bodies on parabolas: they pass the target, whatever the model's options are."""
    lab = throw(dt, integrator, gravity)
    goal = lab.model.body("goal").pos.copy()
    for body in ("ball", "box"):
        lab.reset()
        lab.launcher.aim(body, "goal", path="ballistic")
        velocity = lab.launcher.fire(body)[body]
        np.testing.assert_array_equal(
            lab.loop.data.joint(lab.model.body(body).jntadr[0]).qvel[:3], velocity
        )
        # A chord of a step is off the parabola by g dt^2 / 8.
        assert nearest(lab, body, goal, 4.0) < 1e-4 + 10.0 * dt**2
    lab.stop()


def test_the_arc_is_a_share_of_the_distance():
    """Launch on a parabola: its top is 0.3 of the way across above the higher end."""
    lab = throw(dt=0.0005)
    lab.launcher.aim("ball", (2.2, -0.3, 0.4), path="ballistic", arc=0.3)
    lab.launcher.fire()
    heights = []
    for _ in range(2000):
        lab.loop.iterate_once()
        heights.append(lab.loop.data.qpos[2])
    assert max(heights) == pytest.approx(0.4 + 0.3 * 2.0, abs=1e-4)
    lab.stop()


def test_direct_launches_have_their_speed():
    """Launch straight: the velocity points to the target; without gravity the body gets there."""
    lab = throw(gravity="0 0 0")
    aimed = lab.launcher.aim("ball", "goal")
    assert (aimed.path, aimed.speed, aimed.arc, aimed.delay) == ("direct", 10.0, 0.3, 2.0)
    lab.launcher.aim("ball", "goal", speed=6.0)
    velocity = lab.launcher.fire()["ball"]
    way = lab.model.body("goal").pos - [0.2, -0.3, 0.4]
    np.testing.assert_allclose(velocity, 6.0 * way / np.linalg.norm(way))
    assert nearest(lab, "ball", lab.model.body("goal").pos, 1.0) < 1e-9
    lab.stop()


def test_reset_and_auto_fire():
    """Fire by itself in simulated time: the body returns to its start and flies again."""
    lab = throw()
    lab.launcher.aim("ball", "goal", path="ballistic", auto=True, delay=0.5)
    starts = []
    for _ in range(700):
        before = lab.loop.data.qvel[2]
        lab.loop.iterate_once()
        if lab.loop.data.qvel[2] > before + 1.0:
            starts.append(lab.loop.data.time)
            np.testing.assert_allclose(lab.loop.data.qpos[:3], [0.2, -0.3, 0.4], atol=0.02)
    np.testing.assert_allclose(starts, [0.002, 0.502, 1.002], atol=0.003)
    lab.launcher.forget("ball")
    lab.launcher.aim("ball", "goal", path="ballistic")
    lab.launcher.fire("ball", reset=True)
    np.testing.assert_allclose(lab.loop.data.qpos[:3], [0.2, -0.3, 0.4])
    lab.stop()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"body": "goal", "target": "ball"}, "'goal' cannot be launched, because it has no free"),
        ({"body": "bal", "target": "goal"}, "no body 'bal'; did you mean 'ball'"),
        ({"target": "goal"}, r"Name the body to launch: ball, box\."),
        ({"body": "ball", "target": "gaol"}, "no body 'gaol' to aim at; did you mean 'goal'"),
        ({"body": "ball"}, "aim_launcher needs a target or a point"),
        ({"body": "ball", "target": "goal", "speed": 1000.0}, "from 0.1 to 100"),
        ({"body": "ball", "target": "ball"}, "cannot be aimed at itself"),
    ],
)
def test_wrong_aims_are_refused(fields, sentence):
    """Aim at what is not there: one sentence, and nothing is set."""
    lab = throw()
    with pytest.raises(VerbError, match=sentence):
        lab.call("aim_launcher", **fields)
    assert not lab.launcher.launches
    with pytest.raises(VerbError, match="Nothing was aimed"):
        lab.call("fire_launcher")
    lab.stop()


def test_targets_out_of_reach_are_refused():
    """Aim too far, or on a parabola without gravity: an error, and the body stays."""
    lab = throw()
    lab.launcher.aim("ball", (5000.0, 0.0, 0.0), path="ballistic", reset=True)
    lab.loop.iterate_once()
    before = lab.loop.data.qpos.copy()
    with pytest.raises(ValueError, match="above the limit of 100 m/s"):
        lab.launcher.fire()
    np.testing.assert_array_equal(lab.loop.data.qpos, before)
    lab.stop()
    lab = throw(gravity="0 0 0")
    lab.launcher.aim("ball", "goal", path="ballistic")
    with pytest.raises(ValueError, match="needs gravity"):
        lab.launcher.fire()
    lab.stop()


def test_a_world_without_free_bodies():
    """Launch in a world where nothing floats: one sentence says what is missing."""
    import gymnasium.envs.mujoco as package

    pendulum = Path(package.__file__).parent / "assets" / "inverted_pendulum.xml"
    lab = LiveLab(world_from_file(pendulum))
    for verb, fields in (("aim_launcher", {"point": [1.0, 0.0, 0.0]}), ("fire_launcher", {})):
        with pytest.raises(VerbError, match="no body with a free joint, which a launcher needs"):
            lab.call(verb, **fields)
    lab.stop()


def test_rebuilds_keep_launches():
    """Rebuild the world: launches of bodies that are there stay; others end, which is said."""
    lab = throw()
    lab.launcher.aim("ball", "goal")
    lab.launcher.aim("box", "ball")
    spec = mujoco.MjSpec.from_string(
        THROW.format(dt=0.002, integrator="Euler", gravity="0 0 -9.81")
    )
    spec.delete(spec.body("goal"))
    lab.rebuild(world_from_spec(spec))
    assert [launch.body for launch in lab.launcher.launches] == ["box"]
    assert any("launch of 'ball'" in note for note in lab.rebuild_notes)
    lab.stop()
