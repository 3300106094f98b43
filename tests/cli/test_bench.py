from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.cli.bench import measure_physics
from manyworlds.cli.main import main
from manyworlds.cli.plain_rollout import (
    StateLayout,
    control_sequence,
    holding_controls,
    start_state,
)
from manyworlds.spec.edits import add_ground_plane, add_position_actuators
from tests.robots import robot_file

BALL = """<mujoco><worldbody><body pos="0 0 {z}"><freejoint/><geom size=".1"/></body></worldbody>
</mujoco>"""
ARM = """<mujoco>
<worldbody>
  <body><joint name="base" type="ball"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint name="elbow" damping=".1"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
    </body>
  </body>
</worldbody>
<actuator>
  <motor name="torque" joint="elbow" ctrlrange="-1 1"/>
  <intvelocity name="servo" joint="elbow" kp="3" kv=".1" actrange="-1 1"/>
</actuator>
<sensor><jointpos joint="elbow"/></sensor>
<keyframe><key qpos="1 0 0 0 .3" ctrl=".2 0" act=".25"/></keyframe>
</mujoco>"""
UNSTABLE = """<mujoco><option timestep=".05"/><worldbody><body><joint name="j"/>
<geom size=".01"/></body></worldbody><actuator><position joint="j" kp="1e6"/></actuator></mujoco>"""


def bench(path: Path, options: str) -> int:
    """Run the command on a file."""
    return main(["bench", str(path), *options.split()])


def compiled(text: str) -> mujoco.MjModel:
    """Compile MJCF."""
    return mujoco.MjModel.from_xml_string(text)


def grounded_ball(z: float = 0.0) -> mujoco.MjModel:
    """Return a free ball of radius 0.1 m with its centre at height z, and a plane."""
    spec = mujoco.MjSpec.from_string(BALL.format(z=z))
    add_ground_plane(spec)
    return spec.compile()


class TestMeasure:
    @pytest.mark.parametrize("refresh", [False, True])
    def test_same_trajectory(self, refresh):
        """Take the very steps that the rollout takes, contacts and activations included."""
        for model in (compiled(ARM), grounded_ball()):
            result = measure_physics(model, 8, 2, 3, seconds=0.2, refresh=refresh)
            assert result["same_trajectory"] is True
            assert result["diverged_worlds"] == 0

    def test_figures(self):
        """Count steps, contacts and rounds."""
        result = measure_physics(grounded_ball(), 8, 1, 4, seconds=0.2)
        assert result["steps"] % (8 * 4 * result["rounds"]) == 0
        assert result["contacts_mean"] == pytest.approx(1.0, abs=0.3)
        assert result["ratio"] == pytest.approx(
            result["steps_per_s"] / result["rollout_steps_per_s"]
        )
        assert (result["num_envs"], result["num_threads"], result["nsubsteps"]) == (8, 1, 4)
        assert result["engine"] == "native"

    @pytest.mark.parametrize("text", ["<mujoco/>", BALL.format(z=1)])
    def test_poor_models(self, text):
        """Step models without joints, actuators and sensors."""
        assert measure_physics(compiled(text), 4, seconds=0.2)["same_trajectory"] is True

    def test_diverged(self, capfd, tmp_path, monkeypatch):
        """Count diverged worlds, and keep MuJoCo's warnings off terminal and disk."""
        monkeypatch.chdir(tmp_path)
        result = measure_physics(compiled(UNSTABLE), 4, 1, seconds=0.2)
        assert result["diverged_worlds"] == 4
        assert result["contacts_mean"] is None
        assert capfd.readouterr() == ("", "")
        assert not list(tmp_path.iterdir())

    def test_progress(self):
        """Report progress up to the end."""
        shares: list[float] = []
        measure_physics(grounded_ball(), 2, 1, seconds=0.2, progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0

    def test_model_unchanged(self):
        """Leave the caller's model alone."""
        model = grounded_ball()
        flags = model.opt.disableflags
        measure_physics(model, 2, 1, seconds=0.2)
        assert model.opt.disableflags == flags

    @pytest.mark.parametrize(
        "wrong",
        [
            {"num_envs": 0},
            {"num_threads": -1},
            {"nsubsteps": 0},
            {"seconds": 0.0},
            {"seconds": float("nan")},
            {"engine": "cuda"},
        ],
    )
    def test_bad_arguments(self, wrong):
        """Name the wrong argument and its value."""
        (name, value), *_ = wrong.items()
        with pytest.raises(ValueError, match=rf"{name.removeprefix('num_thr')}.*got '?{value}"):
            measure_physics(grounded_ball(), **wrong)


class TestStates:
    def test_layout(self):
        """Find the parts of a state row."""
        model = compiled(ARM)
        data = start_state(model)
        layout = StateLayout(model)
        row = layout.row(data)
        for name, columns in layout.columns.items():
            np.testing.assert_array_equal(row[columns], getattr(data, name))
        np.testing.assert_array_equal(row[layout.warmstart], data.qacc_warmstart)

    def test_keyframe(self):
        """Start at the first keyframe and hold its controls."""
        model = compiled(ARM)
        data = start_state(model)
        assert data.qpos[4] == 0.3
        assert data.act[0] == 0.25
        assert holding_controls(model, data)[0] == 0.2

    def test_lift(self):
        """Lift a floating body out of the ground."""
        assert start_state(grounded_ball(z=-0.3)).qpos[2] == pytest.approx(0.1)
        assert start_state(grounded_ball(z=0.4)).qpos[2] == 0.4

    def test_servo_holds_position(self):
        """Give a position servo the position that it has."""
        text = UNSTABLE.replace('name="j"', 'name="j" ref="30"')
        model = compiled(text)
        np.testing.assert_allclose(holding_controls(model, start_state(model)), np.pi / 6)

    def test_controls(self):
        """Draw controls that vary, respect limits and survive float32."""
        model = compiled(ARM)
        hold = np.array([1.0, 0.0])
        controls = control_sequence(model, hold, 5, 3, np.random.default_rng(0))
        assert controls.shape == (5, 3, 2)
        assert controls[..., 0].max() <= 1.0
        assert controls.std(axis=0).min() > 0
        np.testing.assert_array_equal(controls, controls.astype(np.float32))


class TestCommand:
    def test_report(self, tmp_path, capsys):
        """Print throughput, ratio and contacts of a file with plane and actuators added."""
        path = tmp_path / "arm.xml"
        path.write_text(ARM)
        options = "--num-envs 4 --threads 1 --seconds 0.2 --plane --position-kp 5"
        assert bench(path, options) == 0
        shown = capsys.readouterr().out
        for word in ("steps/s", "mujoco.rollout", "ratio", "contacts per world", "1 threads"):
            assert word in shown

    def test_json(self, tmp_path, capsys):
        """Print one JSON object and nothing else."""
        path = tmp_path / "ball.xml"
        path.write_text(BALL.format(z=1))
        assert bench(path, "--num-envs 4 --seconds 0.2 --json") == 0
        assert json.loads(capsys.readouterr().out)["num_envs"] == 4

    def test_diverged(self, tmp_path, capsys):
        """Say that figures of diverged worlds are not to be trusted."""
        path = tmp_path / "model.xml"
        path.write_text(UNSTABLE)
        assert bench(path, "--num-envs 2 --seconds 0.2") == 0
        assert "2 of 2: do not trust" in capsys.readouterr().out

    @pytest.mark.parametrize(
        "args, text",
        [
            ("--num-envs 0", "num_envs"),
            ("--seconds -1", "seconds"),
            ("--engine foo", "auto, native, warp"),
            ("--threads -2", "threads"),
            ("--position-kp 0", "kp"),
            ("--plane", "already has a ground plane, geom 'floor'"),
        ],
    )
    def test_bad_input(self, tmp_path, capsys, args, text):
        """Refuse bad input in one line."""
        path = tmp_path / "model.xml"
        path.write_text(
            '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/></worldbody></mujoco>'
        )
        assert bench(path, args) == 1
        error = capsys.readouterr().err
        assert text in error
        assert error.count("\n") == 1

    @pytest.mark.parametrize("text, message", [(None, "no such file"), ("<mujoc/>", "<mujoco>")])
    def test_bad_file(self, tmp_path, capsys, text, message):
        """Refuse a missing or broken file with the message of `validate`, in one line."""
        path = tmp_path / "model.xml"
        if text is not None:
            path.write_text(text)
        assert bench(path, "") == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1

    @pytest.mark.parametrize("args", ["", "--bogus", "model.xml --num-envs abc"])
    def test_usage(self, args):
        """Return 2 for wrong usage."""
        assert main(["bench", *args.split()]) == 2

    @pytest.mark.parametrize(
        "name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"]
    )
    def test_robots(self, name):
        """Step real robots on a plane, as MuJoCo does, without divergence."""
        spec = mujoco.MjSpec.from_file(str(robot_file(name)))
        add_ground_plane(spec)
        add_position_actuators(spec, 40.0)
        result = measure_physics(spec.compile(), 16, 2, seconds=0.3)
        assert result["same_trajectory"] is True
        assert result["diverged_worlds"] == 0
