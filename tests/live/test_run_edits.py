"""Edits of a training: order, atomicity, records, and runs that are resumed or repeated."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.utils._pytree import tree_leaves

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.live import take_snapshot
from manyworlds.live.edits import (
    AddCase,
    AddDisturbance,
    AddRandomization,
    AddStartState,
    SetValue,
    apply_edit,
    edit_from_plain,
    edit_log,
)
from manyworlds.live.run_edits import RunEdits
from manyworlds.live.user_events import StartState
from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.progress import EDITS_FILE, read_edits
from manyworlds.rl.training import train
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.utils.devices import torch_threads

TASK = "Velocity-Flat-Quadruped"
PUSH = AddDisturbance(
    name="side_push",
    body="robot/trunk",
    force=(0.0, 120.0, 0.0),
    duration_s=0.1,
    pause_s=(0.02, 0.2),
    any_direction=True,
)


def start_state(env: ManagerBasedRlEnv, env_id: int = 1) -> StartState:
    """Return the present state of a world."""
    return StartState.of(take_snapshot(env, env_id), env)


def edits_of(env: ManagerBasedRlEnv) -> list:
    """Return one edit of each kind."""
    return [
        SetValue(path="rewards.upright.weight", value=2.5),
        SetValue(path="events.foot_friction_slide.params.ranges", value=[0.1, 2.0]),
        SetValue(path="events.push_robot.interval_range_s", value=[0.05, 0.1]),
        SetValue(path="commands.twist.ranges.heading", value=[-1.0, 1.0]),
        AddStartState(state=start_state(env), share=0.5),
        PUSH,
        AddRandomization(
            name="trunk_mass",
            func="body_mass",
            params={
                "asset_cfg": {"name": "robot", "body_names": ["trunk"]},
                "operation": "scale",
                "ranges": [0.8, 1.3],
            },
        ),
        AddStartState(state=start_state(env, 2), weight=3.0, share=0.4),
    ]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Let torch sum in one order: the comparison is of edits, not of threads."""
    with torch_threads(1):
        yield


def run(log_root, iterations, at=None, send=edits_of, recorded=(), repeat=True, **kwargs):
    """Train six worlds; send edits while an iteration runs."""
    env_cfg, rl_cfg = load_env_cfg(TASK), load_rl_cfg(TASK)
    env_cfg.scene.num_envs, env_cfg.episode_length_s = 6, 0.3
    rl_cfg.max_iterations, rl_cfg.num_steps_per_env, rl_cfg.save_interval = iterations, 8, 1
    rl_cfg.actor.hidden_dims = rl_cfg.critic.hidden_dims = (16,)
    rl_cfg.seed = 5
    attached, sent = [], []

    def attach(runner):
        attached.append((runner, RunEdits(runner, recorded, repeat=repeat)))

    def report(record):
        if record.iteration == at:
            [(runner, edits)] = attached
            sent.extend(map(edits.send, send(runner.env.unwrapped)))

    result = train(
        TASK,
        env_cfg,
        rl_cfg,
        log_root,
        device="cpu",
        on_runner=attach,
        on_start=lambda runner, folder: attached[0][1].open(folder.path),
        on_iteration=report,
        **kwargs,
    )
    return result, sent


def same(left, right) -> bool:
    """True if networks, optimizer and worlds of two checkpoints are equal, bit for bit."""
    left, right = (load_checkpoint(result.checkpoint) for result in (left, right))
    assert left["infos"]["env_state"].keys() == right["infos"]["env_state"].keys()
    pairs = zip(tree_leaves(left), tree_leaves(right), strict=True)
    return all(
        torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        if isinstance(a, torch.Tensor)
        else a == b or a != a
        for a, b in pairs
    )


@pytest.fixture(scope="module")
def edited(tmp_path_factory, one_thread):
    """A run of 6 iterations with an edit of each kind after the third."""
    return run(tmp_path_factory.mktemp("edited"), 6, at=3)


@pytest.mark.slow
def test_edits_are_recorded_in_their_order(edited):
    """Send one edit of each kind: each is applied after its iteration, and in the run folder."""
    result, sent = edited
    assert all(edit.wait(0.0).after == 3 for edit in sent)
    records = read_edits(result.run.path)
    assert [record.edit for record in records] == [edit.edit.plain() for edit in sent]
    assert records[0].text == "rewards.upright.weight = 2.5"
    assert all(record.time.startswith("20") for record in records)
    edits = load_checkpoint(result.checkpoint)["infos"]["env_state"]["edits"]["applied"]
    assert edits == [record.edit for record in records]
    assert (result.run.path / "learning_curve.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["model_1.pt", "model_2.pt", "model_4.pt"])
def test_a_resumed_run_makes_the_same_edits(edited, tmp_path, checkpoint):
    """Resume before, at and after the edits: worlds and networks are equal to the bit."""
    whole = edited[0]
    recorded = read_edits(whole.run.path)
    resumed, _ = run(tmp_path, 6, recorded=recorded, resume=whole.run.path / checkpoint)
    assert same(whole, resumed)
    assert read_edits(resumed.run.path)[0].after == 3
    texts = [[record.text for record in read_edits(r.run.path)] for r in (whole, resumed)]
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_a_run_with_edits_is_not_continued_without_them(edited, tmp_path):
    """Resume after the edits from Python, without `RunEdits`: the error names it."""
    env_cfg, rl_cfg = load_env_cfg(TASK), load_rl_cfg(TASK)
    env_cfg.scene.num_envs, rl_cfg.actor.hidden_dims = 6, (16,)
    rl_cfg.critic.hidden_dims = (16,)
    checkpoint = edited[0].run.path / "model_4.pt"
    with pytest.raises(ValueError, match="give `on_runner=RunEdits` to `train`"):
        train(TASK, env_cfg, rl_cfg, tmp_path, device="cpu", resume=checkpoint)


@pytest.mark.slow
def test_a_repeated_run_makes_the_same_edits(edited, tmp_path):
    """Begin again with the edits of a run: equal to the bit; without them it differs."""
    recorded = read_edits(edited[0].run.path)
    repeated, _ = run(tmp_path / "a", 6, recorded=recorded)
    assert same(edited[0], repeated)
    plain, _ = run(tmp_path / "b", 6)
    assert "edits" not in load_checkpoint(plain.checkpoint)["infos"]["env_state"]
    checkpoint = edited[0].run.path / "model_1.pt"
    left, _ = run(tmp_path / "c", 6, recorded=recorded, repeat=False, resume=checkpoint)
    assert not (left.run.path / EDITS_FILE).exists()
    assert same(plain, left)


BAD = [
    (SetValue(path="rewards.upright.weight", value="much"), "cannot replace"),
    (SetValue(path="rewards.upright.weight", value=float("nan")), "cannot replace"),
    (SetValue(path="rewards.uprigth.weight", value=1.0), "has no term 'uprigth'"),
    (SetValue(path="rewards.upright.func", value="print"), "is fixed"),
    (SetValue(path="rewards.upright.params.std", value=[1.0]), "cannot replace"),
    (SetValue(path="rewards.upright.params.std", value=0.0), "division by zero"),
    (SetValue(path="physics.timestep", value=1.0), "is no path of a value"),
    (SetValue(path="commands.twist.ranges.lin_vel_x", value=[-2.0, 2.0]), "curriculum"),
    (SetValue(path="commands.twist.ranges.heading", value=[1.0, -1.0]), "lower bound first"),
    (SetValue(path="commands.twist.rel_standing_envs", value=1.5), "probability"),
    (SetValue(path="events.push_robot.interval_range_s", value=[3.0, 1.0]), "0 <= lower"),
    (SetValue(path="events.foot_friction_slide.params.ranges", value=[2.0, 1.0]), ""),
    (AddDisturbance(name="base_com", body="robot/trunk", force=(1, 0, 0), duration_s=1), "already"),
    (AddDisturbance(name="p", body="robot/nose", force=(1, 0, 0), duration_s=0.1), "nose"),
    (AddDisturbance(name="p", body="robot/trunk", force=(1, 0, 0), duration_s=-1.0), "positive"),
    (AddDisturbance(**{**vars(PUSH), "duration_s": float("inf")}), "positive duration"),
    (AddDisturbance(**{**vars(PUSH), "pause_s": (0.0, float("inf"))}), "0 <= low <= high"),
    (AddDisturbance(**{**vars(PUSH), "scale": (2.0, 1.0)}), "low <= high"),
    (AddDisturbance(**{**vars(PUSH), "scale": (float("nan"), 1.0)}), "low <= high"),
    (AddDisturbance(**{**vars(PUSH), "scale": ("a", 1.0)}), "'<'"),
    (AddDisturbance(**{**vars(PUSH), "scale": (1.0,)}), "values to unpack"),
    (AddDisturbance(**{**vars(PUSH), "any_direction": "no"}), "true or false"),
    (AddRandomization(name="p", func="requires_model_fields", params={}), "no randomization"),
    (AddRandomization(name="p", func="body_mass", params={"rangs": [1, 2]}), "rangs"),
    (AddRandomization(name="p", func="body_mass", params=None), "wrong type"),
    (AddRandomization(name="p", func="geom_friction", params={"ranges": [math.nan, 1]}), "finite"),
    (AddRandomization(name="p", func="joint_armature", params={"ranges": [-1, 1]}), "at least"),
    (AddDisturbance(name="p", body="robot/trunk", force=None, duration_s=1.0), "wrong type"),
    (AddDisturbance(name=5, body="robot/trunk", force=(1, 0, 0), duration_s=1.0), "is refused"),
]  # fmt: skip


def test_bad_edits_change_nothing():
    """Refuse what does not fit, with the reason; the whole state stays equal to the bit."""
    cfg = load_env_cfg(TASK)
    cfg.scene.num_envs, cfg.seed = 4, 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.step(torch.zeros(4, 12))
    state = start_state(env)
    wrong = [
        (AddStartState(state=state, share=1.5), "share of episodes is 1.5"),
        (AddStartState(state=state, weight=-1.0), "must be positive"),
        (AddStartState(state=state, weight=None), "wrong type"),
        (AddStartState(state=replace(state, origin=(0.0, 0.0))), "three finite numbers"),
        (AddStartState(state=replace(state, fields={"qpos": [0.0]})), "but the model has"),
        (AddCase(name="", state=state), "needs a name"),
        (AddCase(name=5, state=state), "needs a name"),
        (AddStartState(state=StartState("0", {}, (0, 0, 0), None, {})), "another compiled"),
    ]  # fmt: skip
    before, expanded = env.state_dict(), env.sim.expanded_fields
    for edit, reason in [*BAD, *wrong]:
        with pytest.raises(ValueError) as error:
            apply_edit(env, edit)
        assert reason in str(error.value)
        assert env.sim.expanded_fields == expanded, edit
        after = env.state_dict()
        leaves = zip(tree_leaves(before), tree_leaves(after), strict=True)
        assert all(
            torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in leaves
        ), edit
    with pytest.raises(ValueError, match="There is no edit of kind 'explode'"):
        edit_from_plain({"kind": "explode"})
    with pytest.raises(ValueError, match="has the fields path, value"):
        edit_from_plain({"kind": "set", "way": 1})
    for wrong_type in ({"kind": []}, {**PUSH.plain(), "force": None}, {**PUSH.plain(), "force": 1}):
        with pytest.raises(ValueError, match="no edit of kind|wrong type"):
            edit_from_plain(wrong_type)
    apply_edit(env, PUSH)()  # and what is taken back leaves nothing, either
    assert edit_log(env).applied == []
    leaves = zip(tree_leaves(before), tree_leaves(env.state_dict()), strict=True)
    assert all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in leaves)


@pytest.mark.slow
def test_a_refused_edit_leaves_the_training_as_it_was(edited, tmp_path):
    """Send a bad edit between good ones: it is refused, and the run is that without it."""

    def with_bad(env):
        good = edits_of(env)
        return [good[0], BAD[1][0], *good[1:], BAD[7][0]]

    result, sent = run(tmp_path, 6, at=3, send=with_bad)
    refused = [edit for edit in sent if edit.record is None]
    assert [edit.edit for edit in refused] == [BAD[1][0], BAD[7][0]]
    with pytest.raises(ValueError, match="is refused"):
        refused[0].wait(0.0)
    assert same(edited[0], result)


def test_an_edit_is_described_in_one_line(tmp_path):
    """Send a push: its record says which body it pushes, and how."""
    result, sent = run(tmp_path, 2, at=1, send=lambda env: [PUSH])
    assert sent[0].done and sent[0].wait(0.0).after == 1
    assert read_edits(result.run.path)[0].text == (
        "disturbance side_push: (0, 120, 0) N on robot/trunk for 0.1 s"
    )
