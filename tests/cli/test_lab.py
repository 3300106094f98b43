"""`manyworlds lab`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from manyworlds.cli import lab as command
from manyworlds.cli.main import main
from tests.browser import free_port
from tests.lab.conftest import ARM
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from manyworlds.rl.run_folder import RunFolder

_WITHOUT_VISER = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("viser", "mjviser", "trimesh"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Missing())
from manyworlds.cli.main import main
assert main([*sys.argv[1:], "--headless"]) == 0
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def arm(tmp_path) -> Path:
    """A model file."""
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def test_headless_needs_no_viser(arm):
    """Run a model without a page where viser is missing; with a page, the extra is named."""
    run = [sys.executable, "-c", _WITHOUT_VISER, "lab", str(arm), "--seconds", "0.3"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and "runs without a page" in done.stdout, done.stderr
    assert "manyworlds-rl[lab]" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "address"), [(signal.SIGINT, ""), (signal.SIGTERM, "0.0.0.0")])
def test_control_c_ends_cleanly(arm, ending, address):
    """Open the page, fetch it, send the signal: nothing is left and nothing is complained of.

    A page for other machines needs the token of the user's file, which the printed address has.
    """
    pytest.importorskip("viser", reason="the page needs the extra 'lab'")
    more = ["--listen", address] if address else []
    settings = {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CONFIG_HOME": str(arm.parent)}
    process = subprocess.Popen(
        [sys.executable, "-m", "manyworlds", "lab", str(arm), "--port", str(free_port()), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | settings,
        # Who runs tests in the background has them ignore the signal, and so their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.match(r"lab at (http://127\.0\.0\.1:\d+)(/\?token=(\S+))? ", line)
    assert found, line
    token_file = arm.parent / "manyworlds" / "token"
    if address:
        assert found[3] == token_file.read_text().strip()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(found[1], timeout=PATIENCE_S)
    assert token_file.exists() == bool(address)
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with visitor.open(found[1] + (found[2] or ""), timeout=PATIENCE_S) as page:
        assert page.status == 200 and page.url == found[1] + "/" * bool(address)
    process.send_signal(ending)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "", "")


def test_targets(arm, capsys):
    """Open a task, refuse what is nothing, and say what does not compile."""
    lab = command.open_lab(command.LabOptions(target="Cartpole-Balance"))
    assert list(lab.world.robots) == ["cartpole"] and lab.world.model.opt.timestep == 0.01
    lab.stop()
    assert main(["lab", "nothing", "--headless"]) == 1
    err = capsys.readouterr().err
    assert "no model file, world, task or run 'nothing'" in err
    assert err.endswith("a task of your own needs --load FILE.\n")
    for command_ in ("lab", "report", "bench", "train", "evaluate", "play"):
        assert main([command_, "Velocity-Flat-Go"]) == 1
        assert "id you mean 'Velocity-Flat-Go1'" in capsys.readouterr().err, command_
    assert main(["lab", str(arm), "--headless", "--world", "3"]) == 1
    assert "a model file has one" in capsys.readouterr().err
    assert main(["lab", str(arm), "--headless", "--command", "{'twist': (1, 0, 0)}"]) == 1
    assert "--command sets commands of a policy" in capsys.readouterr().err
    arm.write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    assert main(["lab", str(arm), "--headless"]) == 1
    error = capsys.readouterr().err
    assert "mass and inertia" in error and "). Hint: " in error


def test_worlds_of_a_batch_differ():
    """Open two worlds of a task whose start is drawn at random: they begin differently."""
    labs = [
        command.open_lab(command.LabOptions(target="Cartpole-Balance", world=i)) for i in (0, 1)
    ]
    first, second = (lab.snapshot.qpos for lab in labs)
    assert (first != second).any()
    for lab in labs:
        lab.stop()


@pytest.mark.parametrize(
    ("task", "world", "last"),
    [
        ("Cartpole-Swingup", 1024, 1023),
        ("Cartpole-Swingup", -1, 1023),
        ("Push-Variants", 100_000, 1023),
        ("Reach", 512, 511),
    ],
)
def test_a_world_is_one_of_the_training(task, world, last):
    """Refuse a world that the training of a task does not have, before anything is built."""
    with pytest.raises(ValueError, match=f"--world must be from 0 to {last}, .*, got {world}: "):
        command.open_lab(command.LabOptions(target=task, world=world))


def test_a_world_is_one_of_the_run(monkeypatch):
    """Take the number of worlds of the run, not of its task."""
    run = SimpleNamespace(env_params=lambda: {"scene": {"num_envs": 20}})
    target = command.Target(task="Cartpole-Swingup", run=cast("RunFolder", run))
    options = command.LabOptions(target="run", world=20)
    with pytest.raises(ValueError, match="--world must be from 0 to 19, .* has 20 worlds, got 20"):
        command.world_of(target, options)


def test_a_floor_can_be_added(tmp_path):
    """Let a ball fall onto the floor that was asked for; without one, warn that it falls."""
    path = tmp_path / "ball.xml"
    path.write_text(
        "<mujoco><worldbody><body name='ball' pos='0 0 .2'><freejoint/><geom size='.1'/></body>"
        "</worldbody></mujoco>"
    )
    lab = command.open_lab(command.LabOptions(target=str(path), plane=True))
    assert lab.step(1000).qpos[2] == pytest.approx(0.1, abs=0.01) and not lab.world.warnings
    lab.stop()
    lab = command.open_lab(command.LabOptions(target=str(path)))
    assert lab.world.warnings == ["nothing holds 'ball', which falls: --plane adds a floor."]
    assert lab.call("read_status")["world_warnings"] == lab.world.warnings
    lab.stop()


_CLIENT = """
import sys, msgpack, zmq
peer = zmq.Context().socket(zmq.REQ)
peer.connect("tcp://127.0.0.1:" + sys.argv[1])
peer.send(msgpack.packb({"op": "hello"}))
reply = msgpack.unpackb(peer.recv())
print(reply["op"], [robot["prefix"] for robot in reply["articulations"]])
"""


@pytest.mark.slow
def test_programs_reach_the_world(arm):
    """Serve a world on shifted ports: a program greets it, and Ctrl-C ends both ports and lab."""
    pytest.importorskip("zmq", reason="programs need the extra 'net'")
    shift = free_port() - 5559
    lab = [sys.executable, "-m", "manyworlds", "lab", str(arm), "--headless", "--serve"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [*lab, "--port-shift", str(shift)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    said = ""
    while "runs without a page" not in said:  # a port in use is told before that
        said += process.stdout.readline()
        assert process.poll() is None, said
    assert f"step {5559 + shift}, state {5555 + shift}" in said, said
    client = [sys.executable, "-c", _CLIENT, str(5559 + shift)]
    done = subprocess.run(
        client, capture_output=True, text=True, timeout=PATIENCE_S, env=environment
    )
    assert done.stdout == "hello_ok ['arm']\n", done.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_ports_that_are_not_valid(arm, capsys):
    """Shift the ports out of range: the command ends with one sentence."""
    assert main(["lab", str(arm), "--headless", "--serve", "--port-shift", "70000"]) == 1
    assert "from 0 to 65535" in capsys.readouterr().err
    assert main(["lab", str(arm), "--headless", "--serve", "--listen", "everywhere"]) == 1
    assert "'everywhere' is no address to listen on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "bound"),
    [
        ("--speed", "100", "from 0.05 to 10, got 100"),
        ("--speed", "nan", "from 0.05 to 10, got nan"),
        ("--seconds", "-1", "not be negative, got -1"),
    ],
)
def test_numbers_out_of_range(arm, capsys, option, value, bound):
    """Refuse a speed that the world cannot have, and a negative time, in one line."""
    assert main(["lab", str(arm), "--headless", option, value]) == 1
    assert f"{option} must {'be ' if option == '--speed' else ''}{bound}" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["lab", "--attach"], ["terrain"]])
def test_negative_times_of_other_commands(command, capsys):
    """Refuse them before anything else is looked for."""
    assert main([*command, "--seconds", "-1"]) == 1
    assert "--seconds must not be negative, got -1" in capsys.readouterr().err


def test_a_run_without_a_checkpoint(tmp_path, capsys):
    """Say that a run has no checkpoint yet, instead of that there is no such run."""
    params = tmp_path / "run" / "params"
    params.mkdir(parents=True)
    (params / "run.yaml").write_text("task: Cartpole-Swingup\n")
    assert main(["lab", str(tmp_path / "run"), "--headless"]) == 1
    assert main(["play", "Cartpole-Swingup", "--checkpoint", str(tmp_path / "run")]) == 1
    said = f"The run '{tmp_path / 'run'}' has no checkpoint yet"
    assert capsys.readouterr().err.count(said) == 2


def test_doubts_can_be_switched_off(tmp_path, capsys):
    """Warn of a model that cannot move, unless it is not wanted."""
    path = tmp_path / "rock.xml"
    path.write_text('<mujoco><worldbody><body><geom size=".1"/></body></worldbody></mujoco>')
    run = ["lab", str(path), "--headless", "--seconds", "0"]
    assert main(run) == 0 and "warning: nothing can move" in capsys.readouterr().out
    assert main([*run, "--no-validate"]) == 0 and "warning" not in capsys.readouterr().out


def test_missing_meshes_can_be_left_out(tmp_path, capsys):
    """Open a model without its meshes if this is wanted, and say which ones."""
    path = tmp_path / "arm.xml"
    path.write_text(
        """<mujoco><asset><mesh name="m" file="gone.stl"/></asset><worldbody>
        <body><joint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    )
    run = ["lab", str(path), "--headless", "--seconds", "0"]
    assert main(run) == 1 and "gone.stl" in capsys.readouterr().err
    assert main([*run, "--missing-meshes", "skip"]) == 0
    assert "warning: mesh 'm' is left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("edit", "No training that can be entered runs in 'runs'"),
        ("edit gone", "There is no run 'gone'"),
        ("edit --set x", "'x' sets nothing"),
        ("lab --attach", "No training that can be entered runs in 'runs'"),
        ("lab --attach gone", "There is no run 'gone'"),
    ],
)
def test_a_training_that_does_not_run_is_told_at_once(line, message, tmp_path):
    """Refuse it before torch and the page load, which take seconds."""
    code = f"""import sys
from manyworlds.cli.main import main
code = main({line.split()!r})
assert not {{"torch", "viser"}} & set(sys.modules)
sys.exit(code)"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert message in done.stderr and done.stderr.count("\n") == 1
