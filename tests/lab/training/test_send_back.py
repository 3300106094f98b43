"""States, pushes, cases and values that a user sends from a lab to a running training."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from manyworlds.cli.main import main
from manyworlds.lab import LabCfg, RecorderCfg
from manyworlds.lab.training import Visitor, enter_run
from manyworlds.live.edits import AddCase, AddStartState, edit_from_plain, edit_log
from manyworlds.live.story import episode_story
from manyworlds.rl.progress import read_edits
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks.run_configs import configs_of_run

DIRECT = LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))


@pytest.fixture
def entered(training):
    """World 3 of a training, in a lab."""
    entered = enter_run(training.folder, 3, DIRECT)
    yield entered
    entered.lab.stop()


@pytest.mark.slow
def test_a_push_lasts_as_long_as_it_says(entered):
    """Push for 0.05 s: as many physics steps have the force; those before and after do not."""
    lab = entered.lab
    body = lab.model.body("robot/trunk").id
    lab.step(4)
    found: list[float] = []
    lab.loop.on_pre_step(lambda model, data, moved: found.append(data.xfrc_applied[body][1]))
    lab.step(2)
    entered.push("robot/trunk", (0.0, 150.0, 0.0), duration_s=0.05)
    lab.step(14)
    steps = round(0.05 / lab.model.opt.timestep)
    assert steps >= 5 and found == [0.0] * 2 + [150.0] * steps + [0.0] * (14 - steps)
    with pytest.raises(ValueError, match="nose"):
        entered.push("robot/nose", (1.0, 0.0, 0.0))


@pytest.mark.slow
def test_what_is_sent_reaches_the_training(training, entered):
    """Send a start state, a push, a case and a weight: each is in the run folder, in order."""
    lab = entered.lab
    lab.step(8)
    before = lab.snapshot.qpos.copy()
    push = entered.push("robot/trunk", (0.0, 150.0, 0.0), duration_s=0.1)
    lab.step(40)
    fallen = lab.snapshot.qpos.copy()
    known = len(read_edits(training.folder))
    sent = [
        entered.send_start_state(weight=2.0, share=0.2),
        entered.send_disturbance("side_push", any_direction=True),
        entered.send_case("side push", seconds=2.0, with_push=True),
        entered.send_case("after it", seconds=1.0),
        entered.set_value("rewards.upright.weight", 1.5),
    ]
    records = read_edits(training.folder)[known:]
    assert records == sent and len({record.after for record in sent}) >= 1
    edits = [edit_from_plain(record.edit) for record in records]
    assert np.allclose(edits[0].state.fields["qpos"], fallen, atol=1e-12)
    assert edits[1].force == push.force and edits[1].duration_s == 0.1
    assert isinstance(edits[2], AddCase) and edits[2].push == push
    assert np.allclose(edits[2].state.fields["qpos"], before, atol=1e-12)
    assert edits[3].push is None
    training.wait_for_iterations(2)
    # A world that is entered now has the edits, too, and repeats what the training does.
    again = enter_run(training.folder, 1, DIRECT, record=60)
    env = again.lab.environment.env
    assert len(edit_log(env).applied) == len(read_edits(training.folder))
    assert env.reward_manager.get_term_cfg("upright").weight == 1.5
    replay = again.repeat()
    while not replay.ended:
        again.lab.step(env.cfg.decimation)
    assert replay.ended == "All 60 recorded steps are repeated."
    again.lab.stop()


@pytest.mark.slow
def test_a_bad_edit_is_refused_with_the_reason(training, entered):
    """Send what does not fit: the sender is told why, and the training goes on without it."""
    known = read_edits(training.folder)
    with pytest.raises(ValueError, match="rewards has no term 'nothing'"):
        entered.set_value("rewards.nothing.weight", 1.0)
    with pytest.raises(ValueError, match="Nothing was pushed"):
        entered.send_disturbance("none")
    state = entered.start_state()
    bad = {**state.fields, "qvel": [float("nan")] * len(state.fields["qvel"])}
    with pytest.raises(ValueError, match="qvel is not finite"):
        entered.send(AddStartState(state=dataclasses.replace(state, fields=bad)))
    with pytest.raises(ValueError, match="another compiled model"):
        entered.send(AddStartState(state=dataclasses.replace(state, model_hash="0")))
    training.wait_for_iterations(2)
    assert read_edits(training.folder) == known
    with pytest.raises(ValueError, match="There is no edit of kind 'explode'"):
        Visitor(training.folder)._ask("POST", "/edit", json.dumps({"kind": "explode"}).encode())


@pytest.mark.slow
def test_the_command_line_edits_a_training(training, capsys):
    """Set a value by `manyworlds edit`, and list the edits; a wrong one ends with its reason."""
    folder = str(training.folder)
    assert main(["edit", folder, "--set", "rewards.upright.weight=1.25"]) == 0
    assert "rewards.upright.weight = 1.25" in capsys.readouterr().out
    assert main(["edit", folder]) == 0
    assert "rewards.upright.weight = 1.25" in capsys.readouterr().out
    assert main(["edit", folder, "--set", "rewards.upright.weight=true"]) == 1
    assert "cannot replace" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_line_says_why_episodes_ended(training, capsys):
    """Wait for the first falls: the worst is simulated again, and its end is named."""
    visitor = Visitor(training.folder)
    while not (worst := visitor.worst()):
        training.wait_for_iterations(2)
    assert set(worst[0]["ended_by"]) & {"fell_over", "illegal_contact", "time_out"}
    assert main(["why", str(training.folder), "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert "after the start of its episode: " in out and "rewards that fell most" in out
    story = None
    while story is None:
        try:
            record = visitor.past(2)
        except ValueError:  # it has just begun an episode
            continue
        story = episode_story(record, configs_of_run(RunFolder(training.folder))[0])
    assert story.equal_steps == len(story.steps) > 0
    with pytest.raises(ValueError, match="No episode of world 3 that ended after step 1 is kept"):
        visitor.past(3, 1)
