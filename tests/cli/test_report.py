"""`report` and `compare`: pages and pictures of tiny trainings, and of runs that are not whole."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import yaml

from manyworlds.cli.main import main
from manyworlds.cli.report_content import _named
from manyworlds.live.edits import SetValue
from manyworlds.rl.comparison import RunCurves, _groups, _labels
from manyworlds.rl.progress import EditRecord, read_progress, write_edits
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.tasks.run_configs import evaluation_env_cfg
from manyworlds.utils.config import flatten

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

QUICK = ["--no-evaluate", "--no-film"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train a run of two iterations; return its log root."""
    root = tmp_path_factory.mktemp("runs")
    size = ["--env.scene.num-envs", "8", "--agent.num-steps-per-env", "4"]
    options = ["--agent.max-iterations", "2", "--env.episode-length-s", "0.1"]
    options += ["--env.rewards.smooth-reward.weight", "2.5", "--log-root", str(root)]
    assert main(["train", "Cartpole-Swingup", *size, *options]) == 0
    return root


@pytest.fixture
def root(trained, tmp_path):
    """Copy the log root."""
    return shutil.copytree(trained, tmp_path / "runs")


@pytest.fixture
def run(root) -> RunFolder:
    """Return the run."""
    return RunFolder.latest(root)


def copy_run(run: RunFolder, name: str, **agent) -> RunFolder:
    """Copy a run under a name, with changed settings of the learner."""
    copy = RunFolder(shutil.copytree(run.path, run.path.with_name(name)))
    params = {**run.agent_params(), **agent}
    (copy.path / "params" / "agent.yaml").write_text(yaml.safe_dump(params))
    return copy


@pytest.mark.slow
def test_a_report_shows_everything_about_a_run(run, root, capsys, gl):
    """Write one page with film, evaluation, curves, command and settings."""
    options = ["--worlds", "4", "--film-seconds", "0.3", "--log-root", str(root)]
    assert main(["report", "Cartpole-Swingup", *options]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"run: {run.path}\nreport: {run.path / 'report.html'}\n"
    note, *said = captured.err.splitlines()
    assert note.startswith(f"note: '{run.path}' differs from the task 'Cartpole-Swingup' in ")
    said = [line.partition(":")[0] for line in said if not line.startswith("  ")]
    assert said == ["evaluating", "filming"]  # without a terminal, a line for each
    page = (run.path / "report.html").read_text()
    for text in (
        f"<h1>Cartpole-Swingup: {run.path.name}</h1>",
        "2 of 2",
        "4 episodes of at most 0.1 s in new worlds with the settings of the training",
        "<td>time_out</td>",
        "--env.rewards.smooth-reward.weight 2.5",
        "<td>env.rewards.smooth_reward.weight</td><td>2.5</td><td>1.0</td>",
        "<td>seed</td><td>42</td>",
        "Losses and learning rate",
        "physics ",
    ):
        assert text in page, text
    kinds = re.findall(r'src="data:(\w+/\w+);base64,', page)
    assert kinds.count("image/png") >= 6 and kinds[1] in ("image/gif", "video/mp4")
    assert "<script" not in page and 'src="http' not in page


@pytest.mark.slow
def test_a_report_repeats_edits(run, root):
    """Report a run that was edited while it ran: its command repeats the edits, which are told."""
    edit = SetValue(path="rewards.smooth_reward.weight", value=2.0)
    write_edits(run.path, [EditRecord(1, "2026-01-01T00:00:00", edit.plain(), edit.text)], "w")
    out = root / "page.md"
    assert main(["report", str(run.path), *QUICK, "--out", str(out)]) == 0
    page = out.read_text()
    assert f" --edits {run.path}\n" in page
    assert re.search(r"\| 1 +\| rewards.smooth.*2", page)
    (run.path / "edits.jsonl").write_text("{}\n")
    assert main(["report", str(run.path), *QUICK, "--out", str(out)]) == 0
    assert "The edits of the training are not known: Line 1 of" in out.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "folder", "name", "experiment/name", "checkpoint"])
def test_reports_find_runs_as_play_does(run, root, name, capsys):
    """Take a folder, a name, a checkpoint, or the newest run; name the checkpoint."""
    named = {
        "": [],
        "folder": [str(run.path)],
        "name": [run.path.name],
        "experiment/name": [f"cartpole/{run.path.name}"],
        "checkpoint": [f"{run.path.name}/model_1.pt"],
    }[name]
    out = root / "page.md"
    assert main(["report", *named, "--out", str(out), *QUICK, "--log-root", str(root)]) == 0
    text = out.read_text()
    assert r"| checkpoint | model\_1.pt |" in text and "## Film" not in text
    pictures = re.findall(r"!\[.*\]\((page_files/.*\.png)\)", text)
    assert len(pictures) >= 5 and all((root / picture).stat().st_size > 500 for picture in pictures)


@pytest.mark.slow
def test_what_cannot_be_shown_is_said_on_the_page(run, root, capsys, monkeypatch):
    """Write the page without film and evaluation, with the reasons there and on the screen."""
    for path in run.path.glob("*.pt"):
        path.unlink()
    assert main(["report", str(run.path), "--log-root", str(root)]) == 0
    err = capsys.readouterr().err
    assert "warning: no evaluation: The run" in err and "has no checkpoint yet" in err
    page = (run.path / "report.html").read_text()
    assert "There is no film: The run" in page and "There is no evaluation: The run" in page

    (run.path / "model_1.pt").write_text("hello")
    monkeypatch.setattr("manyworlds.utils.gl.gl_available", lambda: "OpenGL is missing: get it.")
    assert main(["report", str(run.path), "--worlds", "2"]) == 0
    err = capsys.readouterr().err
    assert "model_1.pt' is not a checkpoint" in err
    assert "warning: no film: OpenGL is missing: get it." in err
    assert "There is no film: OpenGL is missing: get it." in (run.path / "report.html").read_text()


def test_a_place_that_cannot_be_written_is_told_first(run, tmp_path, capsys):
    """Refuse a place for the page before anything is evaluated or filmed."""
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "page.html"
    assert main(["report", str(run.path), "--out", str(out)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: Cannot write '{out}' (Not a directory): choose a place")
    assert len(err.splitlines()) == 1
    assert main(["report", str(run.path), "--out", str(tmp_path)]) == 2
    assert f"--out '{tmp_path}' is a folder: name a file in it" in capsys.readouterr().err


def test_runs_of_other_versions_are_shown(run, root, capsys):
    """Show old records without shares and scalars, an unknown task, and no command; escape all."""
    lines = [json.loads(line) for line in (run.path / "progress.jsonl").open()]
    kept = ("iteration", "total", "mean_return", "steps_per_s", "collect_time", "learn_time")
    old = [f"{json.dumps({key: line[key] for key in kept})}\n" for line in lines]
    (run.path / "progress.jsonl").write_text("".join(old) + '{"iteration": 3, "tot')
    (run.path / "params" / "run.yaml").write_text("task: <b>Gone</b>\n")
    (run.path / "params" / "agent.yaml").write_text("gone: [<i>1</i>]\n")
    for page_format in ("html", "md"):
        assert main(["report", str(run.path), *QUICK, "--format", page_format]) == 0
    page = (run.path / "report.html").read_text()
    for text in (
        "&lt;b&gt;Gone&lt;/b&gt;",
        "gone: [&lt;i&gt;1&lt;/i&gt;]",
        "recorded no further curves",
        "records no command",
        "The differences from the task are not known: There is no task",
    ):
        assert text in page, text
    assert "<b>" not in page and "<i>" not in page
    assert r"\<b\>Gone\</b\>" in (run.path / "report.md").read_text()
    capsys.readouterr()
    assert main(["report", str(run.path), "--no-evaluate"]) == 1
    out, err = capsys.readouterr()
    assert not out and err.startswith("error: There is no task '<b>Gone</b>'. A task of your own")
    assert err.endswith(" --no-evaluate --no-film writes the page without the task.\n")


def test_runs_that_are_not_there_are_named(run, root, capsys, monkeypatch):
    """Refuse what is no run, and runs without an iteration, in one line."""
    monkeypatch.chdir(root)
    (run.path / "progress.jsonl").write_text("")
    other = root / "cartpole" / "other"
    shutil.copytree(run.path, other)
    (other / "progress.jsonl").write_text('{"iteration": 1}\n')
    (root / "loose.pt").write_text("")
    cases = {
        "nothing": "There is no run 'nothing'. Give the path of a run folder",
        "loose.pt": "There is no run 'loose.pt'",
        "Velocity-Flat-G1": "There is no trained run of task 'Velocity-Flat-G1'",
        str(run.path): "holds 0 iterations, at least 1 needed: train longer.",
        str(other): "Line 1 of",
    }
    for name, message in cases.items():
        for command in (["report", name, *QUICK], ["compare", name]):
            assert main([*command, "--log-root", str(root)]) == 1
            err = capsys.readouterr().err
            assert message in err and err.count("\n") == 1, err
    assert main(["report", "--log-root", "empty"]) == 1
    assert "There is no trained run in 'empty'" in capsys.readouterr().err


def test_compare_draws_runs_over_time_and_steps(run, root, capsys, monkeypatch):
    """Draw one picture of all runs; warn about a run without a value; refuse unknown values."""
    monkeypatch.chdir(root)
    other = copy_run(run, "other", seed=7)
    lines = [json.loads(line) for line in (run.path / "progress.jsonl").open()]
    for line in lines:
        line["scalars"] = {}
    (other.path / "progress.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["compare", str(run.path), "other", "other", "--log-root", str(root)]) == 0
    assert capsys.readouterr() == ("picture: compare.png\n", "")
    small = (root / "compare.png").stat().st_size
    keys = ["--keys", "share/physics", "Loss/value", "steps_per_s"]
    assert main(["compare", str(run.path), "--log-root", str(root)]) == 0
    assert capsys.readouterr().out == "picture: compare.png (replaced)\n"
    args = ["compare", str(run.path), str(other.path), "--out", "new/c.png"]
    assert main([*args, *keys]) == 0
    assert capsys.readouterr().err == "warning: 'other' has no values of Loss/value\n"
    assert (root / "new" / "c.png").stat().st_size > small
    assert main([*args, "--keys", "Loss/valu"]) == 1
    err = capsys.readouterr().err
    assert "No run has values of 'Loss/valu'. Did you mean" in err and "mean_return" in err


def test_runs_that_differ_in_the_seed_only_are_one_curve(run, root):
    """Group by task and settings; label by seeds, and by the settings that differ."""
    repeated = copy_run(run, "repeated", seed=7, run_name="b")
    again = copy_run(run, "again", seed=42)
    changed = copy_run(run, "changed", seed=8, num_steps_per_env=6)
    runs = [RunCurves.of(folder) for folder in (run, repeated, again, changed)]
    groups = _groups(runs)
    assert [[member.name for member in group] for group in groups] == [
        [run.path.name, "repeated"],
        ["again"],
        ["changed"],
    ]
    first, second, third = _labels(groups)
    assert "seeds 42, 7: mean, and range from minimum to maximum" in first
    assert first.endswith("agent.num_steps_per_env = 4") and "again, seed 42;" in second
    assert third == "Cartpole-Swingup, changed, seed 8; agent.num_steps_per_env = 6"
    assert runs[0].records == read_progress(run.path)


def test_evaluations_take_the_files_that_a_task_needs_from_the_run(tmp_path):
    """Take all settings of the run, or only its motion with those of the task."""
    cfg, rl_cfg = load_env_cfg("Tracking-Flat-G1"), load_rl_cfg("Tracking-Flat-G1")
    cfg.commands["motion"].motion_file, cfg.decimation = "motion.npz", 7
    run = RunFolder.reserve(tmp_path, "tracking", "").begin("Tracking-Flat-G1", cfg, rl_cfg)
    used = evaluation_env_cfg("Tracking-Flat-G1", run)
    assert used.commands["motion"].motion_file == "motion.npz"
    assert used.decimation == 7
    used = evaluation_env_cfg("Tracking-Flat-G1", run, from_file=True)
    assert used.commands["motion"].motion_file == "motion.npz"
    assert used.decimation == load_env_cfg("Tracking-Flat-G1").decimation != 7


def test_a_policy_of_another_task_is_named(run, capsys):
    """Evaluate a policy in a task that it does not fit: say for which task it was trained."""
    assert main(["evaluate", "Reach", "--checkpoint", str(run.path), "--num-envs", "2"]) == 1
    err = capsys.readouterr().err
    assert "does not fit these networks" in err and err.count("\n") == 1
    assert "The run was trained for 'Cartpole-Swingup', and this is 'Reach'." in err


def test_settings_in_lists_are_compared_one_by_one():
    """Change one value of one sensor: the path names the sensor, the rest is not listed."""
    sensors = [{"name": "scan", "max_distance": 1.0}, {"name": "touch", "history_length": 4}]
    here, there = {"sensors": sensors}, {"sensors": [dict(sensor) for sensor in sensors]}
    there["sensors"][1]["history_length"] = 2
    pair = [flatten(_named(settings), "env") for settings in (here, there)]
    differing = {path for path in pair[0] if pair[0][path] != pair[1][path]}
    assert differing == {"env.sensors.touch.history_length"}
    assert _named({"stages": [{"step": 0}]}) == {"stages": {"0": {"step": 0}}}
