"""Going back in a running training, two futures, and changed fields as randomization."""

from __future__ import annotations

import json
import time

import msgpack
import numpy as np
import pytest
import torch

from manyworlds.cli.main import main
from manyworlds.lab import LabCfg, RecorderCfg, VerbError
from manyworlds.lab.training import Visitor, enter_run
from manyworlds.lab.verbs import VERBS
from manyworlds.lab.verbs.registry import ALWAYS
from manyworlds.live.edits import AddRandomization, RecordedPush, SetValue, edit_from_plain
from manyworlds.rl.progress import read_edits
from tests.browser import free_port
from tests.lab.page.conftest import give, press
from tests.lab.task.test_env_stepper import make_env
from tests.waiting import PATIENCE_S, until

DIRECT = LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))


@pytest.fixture
def entered(training, tmp_path):
    """World 3 of a training, in a lab."""
    recorder = RecorderCfg(folder=tmp_path / "recordings", to_file=False)
    entered = enter_run(training.folder, 3, LabCfg(mode="direct", recorder=recorder))
    yield entered
    entered.lab.stop()


def rewound(entered, seconds, *args, **kwargs):
    """Go back; wait until the world has a past, which it lacks at the start of an episode."""
    for _ in range(200):
        try:
            return entered.rewind(seconds, *args, **kwargs)
        except ValueError as error:
            assert "just begun" in str(error), error
            time.sleep(0.05)
    raise AssertionError


@pytest.mark.slow
def test_what_the_policy_sees_and_expects(entered):
    """Read observations by term, actions with deviations, and the value of the critic."""
    lab, stepper = entered.lab, entered.lab.environment
    lab.step(8)
    found = lab.call("read_task_details")
    env, policy = stepper.env, stepper.policy
    terms = [f"actor/{name}" for name in env.observation_manager.active_terms["actor"]]
    assert set(terms) <= set(found["observations"])
    joined = [value for name in terms for value in found["observations"][name]]
    assert np.allclose(joined, env.obs_buf["actor"][0].numpy())
    with torch.no_grad():
        value = float(policy.critic(env.get_observations()))
    assert found["value"] == pytest.approx(value)
    # The value is that of the training, not of new networks.
    sent = entered.visitor.enter(3)["policy"]
    own = policy.critic.state_dict()
    assert set(sent["critic"]) == set(own) and sent["iteration"] >= entered.iteration
    (spread,) = found["deviation"].values()
    std = policy.actor.distribution.std[0]  # of one world; the rows that follow are padding
    assert np.allclose(spread, std.detach().numpy()) and len(spread) == 12
    assert 0.0 <= found["nearness"]["fell_over"] < 2.0 and found["episode_time"] > 0.0


@pytest.mark.slow
def test_go_back_and_repeat(entered):
    """Go back: the world repeats what it did in the training, to the bit, from any moment."""
    lab, stepper = entered.lab, entered.lab.environment
    for seconds in (0.1, 2.0, 600.0):
        replay = rewound(entered, seconds)
        begun = replay.done
        while not replay.ended:
            lab.step(stepper.env.cfg.decimation)
        assert replay.ended == f"All {replay.done} recorded steps are repeated."
        assert replay.done - begun <= max(1, round(seconds / stepper.env.step_dt))
    assert rewound(entered, 1.0, follow=False).ended == "The policy acts."
    with pytest.raises(ValueError, match="at least 0 s, got -1"):
        entered.rewind(-1.0)
    # A field that was changed in between does not stay.
    mass = lab.model.body("robot/trunk").mass[0]
    lab.set_model("body:robot/trunk", "mass", 2.0 * mass)
    replay = rewound(entered, 1.0)
    while not replay.ended:
        lab.step(stepper.env.cfg.decimation)
    assert "repeated" in replay.ended
    assert lab.model.body("robot/trunk").mass[0] != 2.0 * mass


@pytest.mark.slow
def test_go_back_into_a_worst_episode(training, entered):
    """Enter the last second of an episode of another world: it ends as it did, and stays so."""
    while not (worst := entered.visitor.worst()):
        training.wait_for_iterations(2)
    end = worst[-1]
    replay = entered.rewind(1.0, end["env_id"], end["step"])
    lab, stepper = entered.lab, entered.lab.environment
    assert entered.env_id == end["env_id"] == lab.world.card.env_id
    left = len(replay._steps) - replay.done
    lab.step(left * stepper.env.cfg.decimation)
    assert list(stepper.report.ended_by) == end["ended_by"] and not stepper.auto_reset
    with pytest.raises(ValueError, match="No episode of world 3 that ended after step 1 is kept"):
        entered.rewind(1.0, 3, 1)


@pytest.mark.slow
def test_two_futures(training, entered):
    """Compare a strong push with none, in a table and a film; the world does not change."""
    lab = entered.lab
    lab.step(40)
    before, seed = lab.snapshot.qpos.copy(), torch.get_rng_state()
    push = RecordedPush(body="robot/trunk", force=(0.0, 600.0, 200.0), duration_s=0.2)
    futures = entered.compare(2.0, push=push)
    assert np.array_equal(lab.snapshot.qpos, before)
    assert torch.equal(torch.get_rng_state(), seed)
    first, second = futures.first, futures.second
    assert np.array_equal(first.states["qpos"][0], second.states["qpos"][0])
    assert np.allclose(first.states["qpos"][0], before, atol=1e-5)
    assert second.end is not None and (first.end is None or first.end > second.end)
    assert "with push" in str(futures) and "fell_over" in str(futures)
    thrown = RecordedPush(body="robot/trunk", force=(0.0, 1e6, 0.0), duration_s=0.2)
    diverged = entered.compare(0.2, push=thrown).second
    assert any("diverged" in step.ended_by for step in diverged.steps)
    assert np.isfinite(diverged.states["qpos"]).all()
    # Without a push and with the same policy, both futures would be the same.
    again = entered.compare(
        0.4, push=RecordedPush(body="robot/trunk", force=(0, 0, 0), duration_s=1)
    )
    assert np.array_equal(again.first.states["qpos"], again.second.states["qpos"])
    film = again.save_film(lab.recorder.folder / "both", format="gif", width=64, height=48)
    assert film.stat().st_size > 1000
    with pytest.raises(ValueError, match="Give a checkpoint or a push"):
        entered.compare(1.0)
    with pytest.raises(FileNotFoundError, match="There is no checkpoint 'model_9.pt'"):
        entered.compare(1.0, checkpoint="model_9.pt")


@pytest.mark.slow
def test_two_policies(training, entered):
    """Compare with a checkpoint of the run: the second future has its networks."""
    lab = entered.lab
    names = until(
        lambda: lab.call("read_training")["checkpoints"],
        "the first checkpoint is written before the first iteration",
    )
    training.wait_for_iterations(4)
    now = enter_run(training.folder, 3, DIRECT)
    futures = now.compare(1.0, checkpoint=names[0])
    assert futures.first.label == f"policy of iteration {now.iteration}"
    assert futures.second.label != futures.first.label
    actions = [future.steps[0].action for future in (futures.first, futures.second)]
    assert actions[0] != actions[1]
    now.lab.stop()


@pytest.mark.slow
def test_changed_fields_become_randomization(training, entered):
    """Change a mass, a friction, a damping and a gain: events widen or appear, and are applied."""
    lab, env = entered.lab, entered.lab.environment.env
    with pytest.raises(ValueError, match="No field of the model was changed"):
        entered.randomization()
    foot = next(n for n in _names(lab.model, "geom") if "foot" in n and "collision" in n)
    lab.set_model(f"geom:{foot}", "friction", [3.0, 0.02, 0.01])
    joint = next(n for n in _names(lab.model, "joint") if "hip" in n)
    damping = lab.model.joint(joint).damping[0]
    lab.set_model(f"joint:{joint}", "damping", damping + 0.5)
    motor = next(iter(_names(lab.model, "actuator")))
    kp = lab.model.actuator(motor).gainprm[0]
    lab.set_model(f"actuator:{motor}", "kp", 1.5 * kp)
    edits = {type(edit): edit for edit in entered.randomization()}
    texts = [edit.text for edit in entered.randomization()]
    # Sliding, torsional and rolling friction are drawn by three events; damping and gains by none.
    assert len(texts) == 5, texts
    wide = [edit for edit in entered.randomization() if isinstance(edit, SetValue)]
    assert len(wide) == 3 and any("3.0" in edit.text for edit in wide)
    gains = [e for e in entered.randomization() if getattr(e, "func", "") == "pd_gains"]
    assert gains and gains[0].params["kp_range"] == (1.0, pytest.approx(1.5))
    assert AddRandomization in edits
    records = entered.send_randomization()
    kinds = [edit_from_plain(record.edit) for record in records]
    assert [edit.text for edit in kinds] == texts
    training.wait_for_iterations(2)
    assert [r.text for r in read_edits(training.folder)][-len(texts) :] == texts
    again = enter_run(training.folder, 1, DIRECT)
    names = [
        n for group in again.lab.environment.env.event_manager.active_terms.values() for n in group
    ]
    assert any(name.startswith("sent_pd_gains") for name in names)
    again.lab.stop()
    del env


def _names(model, kind):
    count = {"geom": model.ngeom, "joint": model.njnt, "actuator": model.nu}[kind]
    return [getattr(model, kind)(i).name for i in range(count) if getattr(model, kind)(i).name]


@pytest.mark.slow
def test_a_field_that_cannot_be_randomized_is_refused(entered):
    """Change the axis of a joint: no event draws it, and the error says which fields can be."""
    lab = entered.lab
    joint = next(n for n in _names(lab.model, "joint") if "hip" in n)
    lab.set_model(f"joint:{joint}", "axis", [0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="'axis' of a joint cannot be randomized by a range"):
        entered.randomization()


@pytest.mark.slow
def test_the_page_sends_back(training, entered):
    """Push, send and go back with the buttons of the page; what happened stands there."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    lab = entered.lab
    page = PageServer(lab, port=free_port())
    try:
        lab.gathered.max_age = float("-inf")

        def show() -> None:
            page._due = dict.fromkeys(page.parts, float("-inf"))
            page.update()
            assert not page.errors, page.errors[-1]

        part, details = page.parts["TrainingPart"], page.parts["TaskDetailsPart"]
        press(part.push)
        assert "No body is selected" in page.context.message
        press(part.disturbance)
        assert "Nothing was pushed" in page.context.message
        page.context.select("body", lab.model.body("robot/trunk").id)
        press(part.push)
        lab.step(8)
        show()
        assert "(0, 100, 0) N on robot/trunk" in part.facts.content
        known = len(read_edits(training.folder))
        part.name.value = "page_push"
        for button in (part.start_state, part.disturbance, part.case):
            press(button)
            assert not page.context.message, page.context.message
        give(part.path, "rewards.upright.weight")
        give(part.value, "1.75")
        press(part.set_value)
        show()
        training.wait_for_iterations(2)
        show()
        assert part.outcomes.content.count("after iteration") == 4
        assert [r.edit["kind"] for r in read_edits(training.folder)[known:]] == [
            "start_state",
            "disturbance",
            "case",
            "set",
        ]
        press(part.disturbance)  # the same name
        training.wait_for_iterations(2)
        show()
        assert "There is an event &#x27;page_push&#x27; already" in part.outcomes.content
        press(part.refresh)
        press(part.back)
        assert not page.context.message or "just begun" in page.context.message
        give(details.box, True)
        show()
        assert "±" in details.table.content and "To fell_over" in details.facts.content
        part.length.value = 0.3
        press(part.compare)
        part._comparison.join(PATIENCE_S)
        assert "data:image/gif" in part.film.content, page.context.message
    finally:
        page.close()


@pytest.mark.slow
def test_the_verbs_reply_as_declared(training, entered):
    """Carry out each verb of a training: its reply has the declared fields, of their types."""
    lab = entered.lab
    joint = next(name for name in _names(lab.model, "joint") if "hip" in name)
    lab.set_model(f"joint:{joint}", "damping", 0.7)
    value = {"kind": "set", "path": "rewards.upright.weight", "value": 1.5}
    while not entered.visitor.worst():
        training.wait_for_iterations(1)
    script = (
        ("read_training", {}),
        ("read_worst_episodes", {}),
        ("push_training", {"body": "robot/trunk", "force": [0, 50, 0]}),
        ("compare_futures", {"seconds": 0.2}),
        ("send_start_state", {"share": 0.05}),
        ("send_disturbance", {"name": "by_verb", "pause_s": [1, 2]}),
        ("send_case", {"name": "by verb", "seconds": 1.0, "with_push": True}),
        ("send_randomization", {"preview": True}),
        ("send_randomization", {}),
        ("send_value", {"path": "rewards.upright.weight", "value": 1.25}),
        ("send_edit", {"edit": value}),
        ("read_task_details", {}),
    )
    for name, fields in script:
        reply = lab.call(name, **fields)
        declared = {**VERBS[name].reply, **ALWAYS}
        assert set(reply) == set(declared), name
        for key, field in declared.items():
            field.check(reply[key], lab)
        msgpack.packb(reply), json.dumps(reply)
    training.wait_for_iterations(2)
    outcomes = lab.call("read_training")["edits"]
    assert len(outcomes) == 6
    assert all("after iteration" in each["outcome"] for each in outcomes), outcomes
    entered.visitor._port = free_port()  # as if the training had ended
    entered.sent[10**6] = next(iter(entered.sent.values()))
    outcomes = lab.call("read_training")["edits"]
    assert outcomes[-1]["outcome"] == "the training has ended before"
    assert "after iteration" in outcomes[0]["outcome"]
    with pytest.raises(VerbError, match="does not answer .*: it has ended"):
        lab.call("read_worst_episodes")
    entered.visitor = Visitor(training.folder)
    with pytest.raises(VerbError, match="no name of a checkpoint"):
        lab.call("compare_futures", checkpoint="../other/model_0.pt")
    for _ in range(200):
        try:
            assert lab.call("rewind_training", seconds=0.1)["equal_steps"] >= 0
            break
        except VerbError as error:
            assert "just begun" in str(error)


@pytest.mark.slow
def test_a_value_of_terrain_and_curriculum_is_sent(training, entered):
    """Set stages of a curriculum and a range of commands; wrong ones are refused."""
    env = entered.lab.environment.env
    curricula = env.curriculum_manager.active_terms
    assert curricula, "the task has a curriculum"
    name = "command_vel"
    stages = env.curriculum_manager.get_term_cfg(name).params["velocity_stages"]
    plain = [dict(stage) for stage in stages]
    plain[0] = {**plain[0], "lin_vel_x": (-0.5, 0.5)}
    path = f"curriculum.{name}.params.velocity_stages"
    assert entered.set_value(path, plain).edit["path"] == path
    training.wait_for_iterations(2)
    again = enter_run(training.folder, 1, DIRECT)
    now = again.lab.environment.env.curriculum_manager.get_term_cfg(name).params["velocity_stages"]
    assert tuple(now[0]["lin_vel_x"]) == (-0.5, 0.5)
    again.lab.stop()


@pytest.mark.slow
def test_the_world_moves_to_another_cell():
    """Move a robot on generated terrain to another cell: it stands there as it stood here."""
    from manyworlds.lab import LiveLab

    with LiveLab.driven_by(make_env("Velocity-Rough-Quadruped", 20.0), None, DIRECT) as lab:
        env = lab.environment.env
        lab.step(4)
        before, origin = lab.snapshot.qpos.copy(), env.scene.env_origins[0].numpy().copy()
        lab.call("set_terrain_cell", level=2, column=3)
        moved = env.scene.terrain.terrain_origins[2, 3].numpy() - origin
        assert np.allclose(lab.snapshot.qpos[:3] - before[:3], moved, atol=1e-4)
        assert np.array_equal(lab.snapshot.qpos[3:], before[3:])
        lab.step(20)
        assert np.isfinite(lab.snapshot.qpos).all()
        with pytest.raises(VerbError, match="cells, got rows"):
            lab.call("set_terrain_cell", level=99, column=0)
    with LiveLab.driven_by(make_env("Cartpole-Balance", 20.0), None, DIRECT) as lab:
        with pytest.raises(VerbError, match="no terrain|no cells"):
            lab.call("set_terrain_cell", level=0, column=0)
        with pytest.raises(VerbError, match="belongs to no running training"):
            lab.call("read_training")


@pytest.mark.slow
def test_the_command_line_goes_back(training, capsys):
    """Attach two seconds before the present, and to a worst episode; a wrong number is refused."""
    folder = str(training.folder)
    options = ["--headless", "--seconds", "0.5"]
    for _ in range(20):
        code = main(["lab", "--attach", folder, "--world", "2", "--back", "2", *options])
        out = capsys.readouterr()
        if code == 0:
            break
        assert "just begun" in out.err
    assert code == 0
    assert main(["lab", "--attach", folder, "--episode", "0", *options]) == 0
    assert "after " in capsys.readouterr().out
    assert main(["lab", "--attach", folder, "--episode", "9999", *options]) == 1
    assert "There is no episode 9999" in capsys.readouterr().err
