"""Worlds of the gallery."""

from __future__ import annotations

import subprocess
import sys

import mujoco
import numpy as np
import pytest

from manyworlds.cli.main import main
from manyworlds.lab import LiveLab
from manyworlds.lab.world.gallery import GALLERY, open_gallery
from tests.waiting import PATIENCE_S

_TIMED = """
import sys
from manyworlds.cli.lab import LabOptions, open_lab
lab = open_lab(LabOptions(target=sys.argv[1], headless=True))
slow = {"torch", "gymnasium"} & set(sys.modules)
assert not slow, f"{slow} take long to import"
lab.stop()
"""


@pytest.mark.parametrize("name", GALLERY)
def test_a_world_runs(name):
    """Open each world and run it for a second: it is calm, quick, and its robot is known."""
    lab = open_gallery(name, LiveLab)
    model, data = lab.model, lab.loop.data
    robot = GALLERY[name].robot
    assert [control.name for control in lab.controls] == ([robot] if robot else [])
    for _ in range(round(1.0 / model.opt.timestep)):
        lab.loop.iterate_once()
    assert not lab.loop.fault and not lab.loop.warnings and not lab.loop.reports.lines
    assert np.abs(data.qvel).max() < 30.0
    assert np.isfinite(data.qpos).all() and lab.snapshot.time == pytest.approx(1.0)
    lab.stop()


def test_robots_stand_and_planks_hang():
    """Look at where things are after two seconds: nothing has fallen that should not."""
    places = {
        "quadruped-on-hills": ("quadruped/trunk", 0.2, 0.4),
        "humanoid-and-launcher": ("humanoid/pelvis", 0.65, 0.8),
        "swinging-bridge": ("plank_7", 0.6, 1.0),
        "arm-and-blocks": ("block_2", 0.5, 0.55),
        "bowl-and-ball": ("ball_0", 0.03, 0.4),
    }
    for name, (body, low, high) in places.items():
        spec = GALLERY[name].build()
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        for _ in range(1000):
            mujoco.mj_step(model, data)
        assert low < data.body(body).xpos[2] < high, name
        assert np.linalg.norm(data.body(body).xpos[:2]) < 1.0, name


def test_the_launcher_hits_the_humanoid():
    """Throw the ball as the key does: it returns, has the computed velocity, touches the robot."""
    lab = open_gallery("humanoid-and-launcher", LiveLab)
    ball, touches = lab.loop.data.joint("ball"), []
    start = ball.qpos[:3].copy()
    lab.post(lambda model, data: ball.qpos.__setitem__(0, 5.0))
    lab.on_contact(touches.append, "ball", "humanoid/.*")
    velocity = lab.launcher.fire("ball")["ball"]
    assert ball.qpos[:3].tolist() == start.tolist()
    assert ball.qvel[:3].tolist() == velocity.tolist() and velocity[2] > 0.0
    for _ in range(750):
        lab.loop.iterate_once()
    assert touches
    lab.stop()


def test_keys_drive_the_arm():
    """Hold keys: the arm turns, and the gripper closes."""
    lab = open_gallery("arm-and-blocks", LiveLab)
    lab.driving.clock = lambda: 0.0
    lab.driving.drive("arm", values={"KeyL": 1.0, "KeyG": 1.0})
    for _ in range(500):
        lab.loop.iterate_once()
    data = lab.loop.data
    assert data.joint("arm/joint1").qpos[0] == pytest.approx(0.8, abs=0.1)
    assert data.joint("arm/left_finger").qpos[0] < 0.005
    lab.stop()


def test_a_policy_walks_where_it_is_driven():
    """Drive the quadruped ahead, then turn it: it walks there on its feet, and stops by itself."""
    lab = open_gallery("quadruped-to-drive", LiveLab)
    lab.driving.clock = lambda: 0.0
    trunk = lab.loop.data.body("quadruped/trunk")

    def drive(twist: list[float], seconds: float) -> None:
        lab.driving.drive("quadruped", twist)
        for _ in range(round(seconds / lab.model.opt.timestep)):
            lab.loop.iterate_once()
        assert trunk.xpos[2] > 0.2 and trunk.xmat[8] > 0.9

    drive([0.0, 0.7, 0.0], 3.0)  # to the side, where no crates are
    assert trunk.xpos[1] > 0.4
    drive([0.0, 0.0, 1.0], 2.0)
    assert np.arctan2(trunk.xmat[3], trunk.xmat[0]) > 0.7
    lab.driving.stop("quadruped")
    drive([0.0, 0.0, 0.0], 1.0)
    place = trunk.xpos.copy()
    drive([0.0, 0.0, 0.0], 1.0)
    assert np.linalg.norm(trunk.xpos - place) < 0.1
    lab.stop()


@pytest.mark.parametrize("name", [name for name in GALLERY if name != "quadruped-to-drive"])
def test_worlds_open_without_torch(name):
    """Open a world without a policy in a process of its own: what takes long is not imported."""
    done = subprocess.run(
        [sys.executable, "-c", _TIMED, name], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr


def test_worlds_are_listed(capsys):
    """List the worlds; open one without a page; a wrong name names those that resemble it."""
    assert main(["list", "--worlds"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(GALLERY)
    assert main(["lab", "bowl-and-ball", "--headless", "--seconds", "0.1"]) == 0
    assert "bowl-and-ball runs without a page" in capsys.readouterr().out
    assert main(["lab", "bowl-and-bal", "--headless"]) == 1
    assert "Did you mean 'bowl-and-ball'" in capsys.readouterr().err
    assert main(["lab", "bowl-and-ball", "--plane"]) == 1
    assert "is a world of the gallery" in capsys.readouterr().err
    with pytest.raises(KeyError, match="did you mean 'swinging-bridge'"):
        open_gallery("swinging-brige", LiveLab)
