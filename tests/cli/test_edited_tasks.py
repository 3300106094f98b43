"""Commands for a run whose task's file was edited, moved or deleted after the training."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from manyworlds.cli.main import main
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import registry

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

TASK = """
from manyworlds.tasks import load_env_cfg, load_rl_cfg, register_task

env = load_env_cfg("Cartpole-Balance")
env.rewards["smooth_reward"].weight = 2.0
env.scene.num_envs = 4
rl = load_rl_cfg("Cartpole-Balance")
rl.num_steps_per_env = 4
rl.max_iterations = 2
register_task("Edited", env, env, rl)
"""
NEW_TERM = """
from manyworlds.envs import mdp
from manyworlds.managers import ObservationTermCfg
env.observations["actor"].terms["last"] = ObservationTermCfg(func=mdp.last_action)
"""


@pytest.fixture(autouse=True)
def run(tmp_path, monkeypatch) -> RunFolder:
    """Train the task of a file for two iterations."""
    monkeypatch.setattr(registry, "_TASKS", {})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    Path("my_task.py").write_text(TASK)
    assert main(["train", "Edited", "--load", "my_task.py"]) == 0
    registry._TASKS.clear()
    return RunFolder.latest(tmp_path / "runs")


def run_again(*argv: str) -> int:
    """Run a command as in a new process."""
    registry._TASKS.clear()
    return main([*argv])


def edit(old: str, new: str) -> None:
    """Edit the file of the task."""
    assert old in TASK
    Path("my_task.py").write_text(TASK.replace(old, new))


def weights_used(run: RunFolder) -> list[float]:
    """Return the weight of the reward in a run's settings."""
    return [run.env_params()["rewards"]["smooth_reward"]["weight"]]


def mean_return(out: str) -> float:
    """Return the mean return that `evaluate` prints."""
    found = re.search(r"return\W+([\d.]+)", out)
    assert found is not None
    return float(found[1])


def test_a_run_has_a_copy_of_its_task(run):
    """Keep the text of the file, and load it where the file is gone; say where it comes from."""
    assert run.task_copies() == {str(Path("my_task.py").resolve()): run.path / "task/my_task.py"}
    assert (run.path / "task" / "my_task.py").read_text() == TASK
    Path("my_task.py").unlink()
    assert run_again("evaluate", str(run.path), "--num-envs", "2") == 0
    assert run_again("play", "Edited", "--viewer", "viser", "--steps", "2") == 0


def test_edits_are_told_once_and_the_runs_settings_apply(run, capsys):
    """Resume after an edit: the weight is that of the run, and the edit is named."""
    edit("weight = 2.0", "weight = 5.0")
    capsys.readouterr()
    assert run_again("train", "Edited", "--resume", "--agent.max-iterations", "3") == 0
    err = capsys.readouterr().err
    assert err.count("was edited since this training, whose copy applies; --from-file") == 1
    assert '-env.rewards["smooth_reward"].weight = 2.0' in err
    assert '+env.rewards["smooth_reward"].weight = 5.0' in err
    assert f"the training continues from '{run.path / 'model_1.pt'}'" in err.replace(
        "'runs/", f"'{Path.cwd()}/runs/"
    )
    resumed = RunFolder.latest(Path("runs"))
    assert resumed.path.name != run.path.name and weights_used(resumed) == [2.0]
    assert (resumed.path / "task" / "my_task.py").read_text() == TASK  # the copy of the copy


def test_from_file_takes_the_edits(run, capsys):
    """Resume and evaluate with the file as it is now: each setting that differs is named."""
    edit("weight = 2.0", "weight = 5.0")
    capsys.readouterr()
    argv = ["train", "Edited", "--resume", "--from-file", "--agent.max-iterations", "3"]
    assert run_again(*argv) == 0
    err = capsys.readouterr().err
    assert "in 1 setting; those of the task apply:" in err
    assert "env.rewards.smooth_reward.weight: 2.0, in the task 5.0" in err
    resumed = RunFolder.latest(Path("runs"))
    assert weights_used(resumed) == [5.0]
    assert "weight = 5.0" in (resumed.path / "task" / "my_task.py").read_text()
    assert run_again("evaluate", str(run.path), "--from-file", "--num-envs", "2") == 0
    high = mean_return(capsys.readouterr().out)
    assert run_again("evaluate", str(run.path), "--num-envs", "2") == 0
    low = mean_return(capsys.readouterr().out)
    assert high == pytest.approx(2.5 * low, rel=1e-2)


def test_from_file_keeps_the_number_of_worlds(run, capsys):
    """Resume with the file as it is now, whose number of worlds is not that of the saved states."""
    edit("num_envs = 4", "num_envs = 8")
    argv = ["train", "Edited", "--resume", "--from-file", "--agent.max-iterations", "3"]
    assert run_again(*argv) == 0
    assert RunFolder.latest(Path("runs")).env_params()["scene"]["num_envs"] == 4


def test_a_copy_finds_what_lies_beside_the_file(run, capsys):
    """Load a model beside the task's file, by `__file__`, from the file's own folder."""
    Path("robot.txt").write_text("here")
    beside = (
        TASK.replace('"Edited"', '"Beside"')
        + """
from pathlib import Path
assert (Path(__file__).parent / "robot.txt").read_text() == "here"
"""
    )
    Path("beside.py").write_text(beside)
    assert run_again("train", "Beside", "--load", "beside.py") == 0
    trained = RunFolder.latest(Path("runs"))
    (trained.path / "task" / "robot.txt").write_text("of the run folder")
    assert run_again("evaluate", str(trained.path), "--num-envs", "2") == 0


def test_a_copy_from_elsewhere_is_asked_for(run, capsys):
    """Change the copy in the run folder: it is no code that this user has trained with."""
    copy = run.path / "task" / "my_task.py"
    copy.write_text(f"{TASK}\nprint('run')\n")
    capsys.readouterr()
    assert run_again("evaluate", str(run.path)) == 1
    shown = capsys.readouterr()
    assert "with which you have not trained yet" in shown.err and "run\n" not in shown.out
    assert str(copy) in shown.err  # the file that would run


def test_a_new_training_begins_with_a_policy(run, capsys):
    """Fine-tune under another weight: a new run from iteration 0, with the networks of the old."""
    edit("weight = 2.0", "weight = 5.0")
    argv = ["train", "Edited", "--load", "my_task.py", "--init-policy", str(run.path)]
    assert (
        run_again(*argv, "--agent.max-iterations", "1", "--agent.algorithm.learning-rate", "1e-12")
        == 0
    )
    tuned = RunFolder.latest(Path("runs"))
    assert weights_used(tuned) == [5.0]
    assert tuned.origin().get("init") == str(run.last_checkpoint().resolve())
    begun = torch.load(tuned.last_checkpoint(), weights_only=True)
    before = torch.load(run.last_checkpoint(), weights_only=True)
    assert begun["iter"] == 0
    for name, value in before["actor_state_dict"].items():
        if "normalizer" not in name:
            assert torch.allclose(begun["actor_state_dict"][name], value, atol=1e-6), name


def test_an_observation_that_differs_is_named(run, capsys):
    """Evaluate with a term that the run did not have: name the term and its group."""
    edit('register_task("Edited"', f'{NEW_TERM}\nregister_task("Edited"')
    capsys.readouterr()
    assert run_again("evaluate", str(run.path), "--from-file", "--num-envs", "2") == 1
    err = capsys.readouterr().err
    assert "does not fit these networks" in err
    assert "The observations differ: actor.terms.last: only here." in err
    capsys.readouterr()
    assert run_again("evaluate", str(run.path), "--num-envs", "2") == 0  # the copy fits


def test_a_file_that_registers_nothing_says_so(capsys):
    """Load a file without a task: a note names the file and the call."""
    Path("nothing.py").write_text("x = 1\n")
    assert run_again("list", "Cartpole", "--load", "nothing.py") == 0
    assert (
        "note: 'nothing.py' registers no task: call register_task(...)" in capsys.readouterr().err
    )
