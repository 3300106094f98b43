"""What accompanies `manyworlds train`: edits that are printed, recorded and repeated."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from manyworlds.cli.main import main
from manyworlds.cli.training_watchers import TrainingWatchers
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.live.edits import SetValue
from manyworlds.rl.progress import EditRecord, read_edits, write_edits
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import load_env_cfg

EDIT = SetValue(path="rewards.smooth_reward.weight", value=2.5)


def test_edits_are_printed():
    """Apply an edit: a line of the terminal says which, and after how many iterations."""
    console = Console(file=io.StringIO(), width=40)
    cfg = load_env_cfg("Cartpole-Swingup")
    cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    runner = SimpleNamespace(env=env, between_iterations=[], learner_device="cpu")
    watchers = TrainingWatchers(SimpleNamespace(repeat_edits=True), console)
    watchers.attach(runner)
    watchers._edits.send(EDIT)
    [apply] = runner.between_iterations
    apply(3)
    told = "edit after iteration 3: rewards.smooth_reward.weight = 2.5\n"
    assert console.file.getvalue() == told
    env.close()


@pytest.mark.slow
def test_edits_of_a_run_are_repeated(tmp_path, capsys):
    """Repeat the edits of a named run, and of the run that is continued; name a run without any."""
    options = ["--log-root", str(tmp_path), "--env.scene.num-envs", "2"]
    train = ["train", "Cartpole-Swingup", *options, "--agent.max-iterations"]
    assert main([*train, "2"]) == 0
    first = RunFolder.latest(tmp_path)
    assert main([*train, "2", "--edits", str(first.path)]) == 1
    assert "edits.jsonl': give the folder of a run that was edited" in capsys.readouterr().err
    write_edits(first.path, [EditRecord(1, "2026-01-01T00:00:00", EDIT.plain(), EDIT.text)], "w")
    assert main([*train, "2", "--edits", str(first.path)]) == 0
    second = RunFolder.latest(tmp_path)
    assert main([*train, "3", "--resume"]) == 0
    third = RunFolder.latest(tmp_path)
    for run in (second, third):
        assert run.path != first.path
        assert [record.text for record in read_edits(run.path)] == [EDIT.text]
    assert "edit after iteration 1" in capsys.readouterr().out
