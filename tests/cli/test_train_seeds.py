"""`train --seeds`: processes, their output, their failures, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from manyworlds.cli.main import main
from manyworlds.cli.train_seeds import _Processes, _report, _Training
from manyworlds.rl.progress import read_progress
from manyworlds.rl.run_folder import RunFolder
from tests.waiting import PATIENCE_S

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

SMALL = ["--env.scene.num-envs", "8", "--agent.num-steps-per-env", "4"]
TWO = [*SMALL, "--agent.max-iterations", "2"]
CODES = {1: 130, 3: 1, 5: -9, 7: None}
"""Exit codes by seed: stopped, failed, killed, and not started."""
FAILING = """
import sys
if "--agent.seed" in sys.argv and sys.argv[sys.argv.index("--agent.seed") + 1] == "2":
    raise RuntimeError("the disk is on fire")
"""


def runs_of(root) -> dict[str, RunFolder]:
    """Return the runs of a log root by the end of their names."""
    runs = [RunFolder(path.parent.parent) for path in root.glob("cartpole/*/params/run.yaml")]
    return {run.path.name.split("_", 2)[2]: run for run in runs}


@pytest.mark.slow
def test_a_seed_that_fails_does_not_stop_the_others(tmp_path, capfd):
    """Train one after the other; name the failure, go on, compare the others, and return 1."""
    plugin = tmp_path / "plugin.py"
    plugin.write_text(FAILING)
    root = tmp_path / "runs"
    args = ["train", "Cartpole-Swingup", "--load", str(plugin), *TWO, "--log-root", str(root)]
    args += ["--env.episode-length-s", "0.1"]  # so that episodes end
    assert main([*args, "--seeds", "1,2,5", "--agent.run-name", "wide"]) == 1
    out, err = capfd.readouterr()
    assert "seed 2 (2 of 3):" in out and "the disk is on fire" in err
    assert "error: seed 2 failed: exit code 1; its message is above." in err
    assert "Cartpole-Swingup: 2 of 3 seeds trained, mean return" in out
    runs = runs_of(root)
    assert set(runs) == {"wide_seed-1", "wide_seed-5"}
    for name, run in runs.items():
        seed = int(name[-1])
        assert run.agent_params()["seed"] == run.env_params()["seed"] == seed
        assert str(run.origin()["command"]).endswith(f"--agent.run-name {name}")
        assert "--seeds" not in run.origin()["command"]
    (picture,) = (root / "cartpole").glob("*_wide_seeds.png")
    assert f"picture: {picture}" in out and picture.stat().st_size > 5000
    # The same seed trains the same policy by itself.
    assert main([*args, "--agent.seed", "5", "--agent.run-name", "alone"]) == 0
    alone, among = (read_progress(runs_of(root)[n].path) for n in ("alone", "wide_seed-5"))
    assert [r.scalars["Loss/value"] for r in alone] == [r.scalars["Loss/value"] for r in among]


@pytest.mark.slow
def test_ctrl_c_stops_all_seeds_with_their_checkpoints(tmp_path):
    """Train side by side, each line with its seed; stop all between two iterations."""
    command = [sys.executable, "-m", "manyworlds.cli.main", "train", "Cartpole-Swingup", *SMALL]
    options = ["--agent.max-iterations", "1000000", "--log-root", str(tmp_path)]
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(
            [*command, *options, "--seeds", "3,4", "--seeds-parallel"],
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Background jobs of a shell inherit an ignored SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    text = ""
    for _ in range(1200):
        text = (tmp_path / "out").read_text()
        if all(f"seed {seed}: iteration 1/" in text for seed in (3, 4)):
            break
        assert process.poll() is None, text
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130
    text = (tmp_path / "out").read_text()
    runs = runs_of(tmp_path)
    assert set(runs) == {"seed-3", "seed-4"}
    for name, run in runs.items():
        summary = json.loads((run.path / "summary.json").read_text())
        assert summary["interrupted"] is True
        assert run.last_checkpoint().name == f"model_{summary['iterations'] - 1}.pt"
        assert f"{name.replace('-', ' ')}: stopped after iteration" in text
    assert (
        "Cartpole-Swingup: 2 of 2 seeds trained until the stop" in text and "Traceback" not in text
    )


@pytest.mark.slow
def test_seeds_begin_new_runs(capsys, tmp_path, monkeypatch):
    """Refuse to continue one run with several seeds, or to run below torchrun."""
    args = ["train", "Cartpole-Swingup", "--log-root", str(tmp_path)]
    assert main([*args, *TWO]) == 0
    assert main([*args, "--seeds", "1,2", "--resume"]) == 2
    assert "--seeds begins new runs: leave out --resume" in capsys.readouterr().err
    assert main([*args, "--seeds", "1,2", "--auto-resume", "--agent.run-name", "x"]) == 2
    assert "--seeds begins new runs" in capsys.readouterr().err
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main([*args, "--seeds", "1,2"]) == 2
    assert "use it without torchrun" in capsys.readouterr().err


def test_seeds_without_an_iteration_are_counted(tmp_path, capsys):
    """Count and name trainings that failed or ended before an iteration, without a picture."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "progress.jsonl").write_text("")
    trainings = [_Training(seed, tmp_path / f"seed-{seed}", code) for seed, code in CODES.items()]
    trainings[0].run_file.write_text(str(run))
    _report("Reach", trainings, tmp_path / "picture.png")
    out, err = capsys.readouterr()
    assert out == "Reach: 0 of 4 seeds trained until the stop\n"
    assert err == (
        "error: seed 3 failed: exit code 1; its message is above.\n"
        "error: seed 5 failed: SIGKILL ended it.\n"
    )
    assert not (tmp_path / "picture.png").exists()


def test_ignored_signals_stay_ignored():
    """Leave the end of the terminal to `nohup`; restore what was there before."""
    before = signal.getsignal(signal.SIGTERM)
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        processes = _Processes()
        with processes.forward_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
        assert processes.stopped and signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGHUP, old)
