"""Worlds of a training in another process that go on in a lab."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
import torch

from manyworlds.lab import LabCfg, RecorderCfg
from manyworlds.lab.training import Visitor, enter, enter_run, running_trainings
from manyworlds.lab.training.entered_world import EntryStock
from manyworlds.live.server import ATTACH_FILE
from manyworlds.live.snapshot import WorldSnapshot
from manyworlds.rl.run_folder import RunFolder
from tests.lab.training.test_walk_in import make_env, state_of
from tests.waiting import PATIENCE_S, until

DIRECT = LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))


@pytest.mark.slow
def test_the_lab_does_what_the_training_did(training):
    """Enter world 5, and repeat its next 80 control steps in the lab: equal to the bit."""
    entered = enter_run(training.folder, 5, DIRECT, record=80)
    lab, stepper = entered.lab, entered.lab.environment
    assert (entered.env_id, entered.snapshot.env_id) == (5, 5)
    assert lab.call("read_task")["name"] == RunFolder(training.folder).task != ""
    card = lab.world.card.plain(lab.loop.model)
    assert (card["env_id"], card["num_envs"]) == (5, 12)
    friction = next(row for row in card["randomized"] if row["field"] == "geom_friction")
    assert friction["low"][0] <= friction["value"][0] <= friction["high"][0]
    lab.step(3 * stepper.env.cfg.decimation)  # the present policy acts, with its own random numbers
    replay = entered.repeat()
    assert (replay.done, replay.ended) == (0, "")
    for i in range(80):
        lab.step(stepper.env.cfg.decimation)
        assert replay.done == i + 1, replay.ended
    assert replay.ended == "All 80 recorded steps are repeated."
    before = stepper.env.common_step_counter
    lab.step(2 * stepper.env.cfg.decimation)
    assert stepper.env.common_step_counter == before + 2  # and goes on by itself
    lab.stop()


@pytest.mark.slow
def test_what_a_user_does_ends_the_repetition(training):
    """Push the robot, and reset, while steps are repeated: the lab says where the record ends."""
    for end in ("push", "reset"):
        entered = enter_run(training.folder, 2, DIRECT, record=20)
        lab, period = entered.lab, entered.lab.environment.env.cfg.decimation
        replay = entered.repeat()
        lab.step(5 * period)
        assert replay.done == 5
        if end == "push":
            lab.loop.do(lambda model, data: data.qvel.__setitem__(0, data.qvel[0] + 0.5))
        else:
            lab.reset()
        lab.step(2 * period)
        assert replay.done == 5
        assert replay.ended.startswith("Step 6 is not" if end == "push" else "The world was reset")
        lab.stop()


@pytest.mark.slow
def test_the_policy_is_that_of_the_training(training):
    """Compare the lab's first action with that of the networks that the training has sent."""
    content = Visitor(training.folder).enter(3)
    weights = content["policy"]["actor"]
    assert content["policy"]["iteration"] >= 0 and len(weights) > 4
    stock = EntryStock(training.folder)
    snapshot = WorldSnapshot.from_bytes(content["snapshot"])
    stock.prepare(snapshot)
    env, policy = stock.take(snapshot, content["policy"])
    loaded = policy.actor.state_dict()
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
    other = {name: value + 0.1 for name, value in weights.items()}
    action = policy(env.get_observations())
    again = stock.take(snapshot, {**content["policy"], "actor": other})[1]
    assert not torch.allclose(again(env.get_observations()), action)
    bad = {**content["policy"], "actor": {"a": torch.zeros(1)}}
    with pytest.raises(ValueError, match="does not fit the networks"):
        stock.take(snapshot, bad)
    env.close()


@pytest.mark.slow
def test_a_lab_that_dies_does_not_disturb_the_training(training):
    """Kill a process that enters worlds, while it waits for an answer: training goes on."""
    program = (
        "import sys; from pathlib import Path; from manyworlds.lab.training import Visitor\n"
        "visitor = Visitor(Path(sys.argv[1])); print('ready', flush=True)\n"
        "while True: visitor.enter(1, record=2000)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(training.folder)], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    training.wait_for_iterations(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    training.wait_for_iterations(3)
    assert training.process.poll() is None
    assert Visitor(training.folder).facts()["num_envs"] == 12


def test_trainings_are_found(training, tmp_path, monkeypatch):
    """Look for trainings: one that runs is found, one that was killed is not."""
    dead = tmp_path / "experiment" / "killed"
    dead.mkdir(parents=True)
    shutil.copy(training.folder / ATTACH_FILE, dead)
    content = json.loads((dead / ATTACH_FILE).read_text())
    (dead / ATTACH_FILE).write_text(json.dumps({**content, "address": "127.0.0.1:1"}))
    assert running_trainings(training.root) == [training.folder]
    assert running_trainings(tmp_path) == []
    with pytest.raises(ConnectionError, match="does not answer"):
        Visitor(dead).facts()
    os.chmod(dead / ATTACH_FILE, 0o644)
    with pytest.raises(ValueError, match=r"Other users can read the token of a training in .* 644"):
        Visitor(dead)
    monkeypatch.setattr("sys.platform", "win32")  # where each file has this mode
    assert Visitor(dead).folder == dead
    monkeypatch.undo()
    os.chmod(dead / ATTACH_FILE, 0o600)
    (dead / ATTACH_FILE).write_text(json.dumps({**content, "address": "example.com:1"}))
    with pytest.raises(ValueError, match=r"names another machine \(example.com\)"):
        Visitor(dead)
    for damaged in (b"{", b'{"address": 3}', b"\xff\xfe"):
        (dead / ATTACH_FILE).write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged: start the training again"):
            Visitor(dead)
    with pytest.raises(FileNotFoundError, match="train TASK --enter"):
        Visitor(tmp_path)
    with pytest.raises(ValueError, match="no world 12"):
        enter_run(training.folder, 12)


@pytest.mark.slow
def test_attach_on_the_command_line(training):
    """Run `lab --attach` from a fresh process: the world is there, and the steps are repeated."""
    args = ["lab", "--attach", "--log-root", str(training.root), "--world", "4", "--headless"]
    result = subprocess.run(
        [sys.executable, "-m", "manyworlds", *args, "--repeat", "40", "--seconds", "0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert f"world 4 of {training.folder.name} after" in result.stdout
    assert "All 40 recorded steps are repeated." in result.stdout


@pytest.mark.slow
def test_enter_in_the_same_process():
    """Enter a world of an environment in this process: the lab runs, the batch stays."""
    env, _ = make_env("Cartpole-Balance")
    before = state_of(env, 1)
    lab = enter(env, 1, None, LabCfg(recorder=RecorderCfg(to_file=False)))
    first = lab.snapshot.time
    until(lambda: lab.snapshot.time > first, "the lab does not run")
    assert state_of(env, 1) == before
    lab.stop()
    env.close()


@pytest.mark.slow
def test_the_attach_server_ends_with_the_training(training):
    """Stop the training: its file is gone. This test is the last one of the module."""
    assert training.end() == 130
    assert not (training.folder / ATTACH_FILE).exists()
