"""Cases that were sent to a run, for its policies."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from manyworlds.cli.main import main
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.live import take_snapshot
from manyworlds.live.cases import case_env, case_table, evaluate_case
from manyworlds.live.edits import AddCase, RecordedPush
from manyworlds.live.user_events import StartState
from manyworlds.tasks import load_env_cfg
from tests.live.test_run_edits import run

TASK = "Velocity-Flat-Quadruped"


def standing(num_envs: int = 12):
    """Return the task and a case of a robot that stands."""
    cfg = load_env_cfg(TASK)
    cfg.scene.num_envs, cfg.seed = num_envs, 4
    env = ManagerBasedRlEnv(cfg, device="cpu")
    for _ in range(20):
        env.step(torch.zeros(num_envs, 12))
    state = StartState.of(take_snapshot(env, 5), env)
    env.close()
    return cfg, AddCase(name="stand", state=state, seconds=1.5)


def still(obs):
    """Act with the default pose."""
    return torch.zeros(len(obs["actor"]), 12)


def test_a_push_fells_who_only_stands():
    """Stand, with no push and with a strong one: all worlds succeed, and none."""
    cfg, case = standing()
    env = case_env(case, cfg, "cpu")
    assert env.event_manager.active_terms.keys() == {"startup", "reset"}
    quiet = evaluate_case(env, case, still, "model_0")
    assert (quiet.worlds, quiet.successes, quiet.ends) == (12, 12, {})
    push = RecordedPush(body="robot/trunk", force=(0.0, 900.0, 0.0), duration_s=0.3)
    felled = evaluate_case(env, dataclasses.replace(case, push=push), still, "model_0")
    assert felled.successes == 0 and sum(felled.ends.values()) >= 12
    assert set(felled.ends) <= {"fell_over", "illegal_contact"}
    table = case_table([quiet, felled])
    assert "12 of 12" in table and "0 of 12" in table
    forces = []
    env.event_manager.apply("reset", env_ids=None, global_env_step_count=0)
    forces.append(env.scene["robot"].data.body_external_force.abs().max())
    assert float(forces[0]) == 0.0  # nothing is left of the push
    env.close()


@pytest.mark.slow
def test_the_command_line_reports_each_checkpoint_from_then_on(tmp_path, capsys):
    """Send a case after the second iteration: checkpoints from the one before it on have a row."""

    def send(env):
        return [AddCase(name="side", state=StartState.of(take_snapshot(env, 2), env), seconds=0.2)]

    result, _ = run(tmp_path, 4, at=2, send=send)
    command = ["evaluate", TASK, "--cases", "--env.scene.num-envs", "4"]
    assert main([*command, "--checkpoint", str(result.run.path)]) == 0
    out = capsys.readouterr().out
    assert "model_0 " not in out
    rows = [line.split("│")[1:4] for line in out.splitlines() if "side" in line]
    assert len(rows) == 3 and [row[1].strip() for row in rows] == ["model_1", "model_2", "model_3"]
    assert all("of 4" in row[2] for row in rows)
    plain, _ = run(tmp_path / "plain", 1)
    assert main([*command, "--checkpoint", str(plain.run.path)]) == 1
    assert "This run has no cases" in capsys.readouterr().err
