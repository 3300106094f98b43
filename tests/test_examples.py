"""The examples run, and show what they say; those of network clients are in `tests/lab/client`."""

from __future__ import annotations

import ast
import functools
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
import yaml
from torch.distributed.run import get_args_parser

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
TESTS = (Path(__file__), Path(__file__).parent / "lab/client/test_examples.py")


def load(name: str) -> dict[str, Any]:
    """Return what an example defines."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="example")


def run(monkeypatch, capsys, name: str, *arguments: object) -> str:
    """Run an example as a program in this process; return its output."""
    program = str(EXAMPLES / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [program, *map(str, arguments)])
    runpy.run_path(program, run_name="__main__")
    return capsys.readouterr().out


def test_each_example_has_a_number_and_a_test():
    """List the examples: their numbers have no gap, and a test runs each of them."""
    names = [path.stem for path in FILES]
    assert [int(name[:2]) for name in names] == [*range(1, len(names) + 1)]
    source = "".join(path.read_text() for path in TESTS)
    untested = [name for name in names if not re.search(rf'(run\w*|load)\([^)]*"{name}"', source)]
    assert untested == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_teaches(path):
    """Have less than 120 lines, the command that runs it, and a sentence about what is learned."""
    text = path.read_text()
    assert text.count("\n") < 120
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring and f"python examples/{path.name}" in docstring
    assert int(path.name[:2]) > 12 or "You learn" in docstring


def test_simulation(monkeypatch, capsys):
    """Follow plain MuJoCo in the world without writes, and no other."""
    example = load("01_simulation")
    sim, alone = example["simulate"](8), example["swing_alone"]()
    assert sim.data.qpos[0, 0].item() == torch.tensor(alone.qpos[0]).float()
    assert len(sim.data.qpos.unique()) == 8
    assert "world 0 equals plain MuJoCo: True" in run(monkeypatch, capsys, "01_simulation")


def test_scene_and_entity(monkeypatch, capsys):
    """Reach targets, in each world its own."""
    example = load("02_scene_and_entity")
    scene, sim = example["build"](4)
    goals = torch.linspace(-0.8, 0.8, 8).reshape(4, 2)
    assert torch.allclose(example["reach"](scene, sim, goals, 800), goals, atol=0.02)
    box = scene["box"].data.root_link_pos_w - scene.env_origins
    assert torch.allclose(box[:, 2], torch.tensor(0.05), atol=1e-3)  # it lies on the ground
    assert "shoulder" in run(monkeypatch, capsys, "02_scene_and_entity")


def test_own_reward(monkeypatch, capsys):
    """Add what the terms say: one in the middle, and the distance that was driven."""
    from manyworlds.envs import ManagerBasedRlEnv, check_env

    example = load("03_own_reward")
    assert not check_env(example["task"](4)).findings
    env = ManagerBasedRlEnv(example["task"](4), device="cpu")
    terms = example["rewards_by_term"](env, 20)
    assert 0.0 < terms["near_middle"] <= 0.5 and terms["distance"] < 0.0
    assert "near_middle" in run(monkeypatch, capsys, "03_own_reward")


def test_domain_randomization(monkeypatch, capsys):
    """Balance in some worlds and not in others; both have different masses."""
    from manyworlds.envs import ManagerBasedRlEnv

    example = load("04_domain_randomization")
    env = ManagerBasedRlEnv(example["task"](64), device="cpu")
    upright = example["survivors"](env, 2.0)
    pole = env.sim.mj_model.body("cartpole/pole").id
    assert len(env.sim.model.body_mass[:, pole].unique()) == 64
    assert 0.25 < upright.float().mean() < 1.0
    assert "worlds balance" in run(monkeypatch, capsys, "04_domain_randomization")


def test_variants(monkeypatch, capsys):
    """Let each object rest at its own height; resets leave no world without an object."""
    from manyworlds.envs import ManagerBasedRlEnv

    example = load("05_variants")
    env = ManagerBasedRlEnv(example["task"](10), device="cpu")
    given = env.sim.world_to_variant["thing"]
    assert given.bincount().tolist() == [2, 4, 2, 2]
    heights = example["fall"](env, 1.0)
    assert torch.allclose(heights[given == 0], torch.tensor(0.05), atol=2e-3)
    assert torch.allclose(heights[given == 3], torch.tensor(0.3))  # nothing falls
    env = ManagerBasedRlEnv(example["task"](10, draw=True), device="cpu")
    assert (env.sim.world_to_variant["thing"] < 3).all()
    assert "after resets" in run(monkeypatch, capsys, "05_variants")


def test_sensors_and_rays(monkeypatch, capsys):
    """Carry the weight with the feet, and see steps below the trunk."""
    example = load("06_sensors_and_rays")
    env = example["stand"](2, 1.0)
    model, ids = env.sim.mj_model, env.scene["robot"].indexing.body_ids
    weight = 9.81 * float(model.body_mass[ids].sum())
    carried = env.scene["feet"].data.force[:, :, 2].sum(dim=1).abs()
    assert torch.allclose(carried, torch.tensor(weight), rtol=0.1)
    assert env.scene["ground"].data.hit_pos_w[..., 2].std() > 0.02
    output = run(monkeypatch, capsys, "06_sensors_and_rays")
    assert "distance to the ground" in output and "tensor" not in output
    rows = re.findall(r"^ *-?\d\.\d{3}(?:  +-?\d\.\d{3}){5}$", output, re.MULTILINE)
    assert len(rows) == 4, output


@pytest.mark.slow
def test_cameras(gl, monkeypatch, capsys, tmp_path):
    """Draw images that show the pole, and a video."""
    from PIL import Image

    output = run(monkeypatch, capsys, "07_cameras", tmp_path / "images")
    assert "(4, 96, 128, 3)" in output
    pixels = re.search(r"pole in each world: tensor\(\[([^]]*)\]", output)
    assert pixels and all(int(n) > 50 for n in pixels[1].split(","))
    assert np.asarray(Image.open(tmp_path / "images/eyes.png")).std() > 5.0
    assert [*(tmp_path / "images").glob("worlds.*")]


@pytest.mark.slow
def test_training(tmp_path):
    """Improve the return, resume, and measure the policy."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    example = load("08_train")
    result = example["learn"](tmp_path, 128, 12)
    first, last = result.records[0], result.records[-1]
    assert last.iteration == 12 and len(result.records) == 12
    assert first.iteration == 1 and all(file.exists() for file in result.files)
    evaluation = example["measure"](result, 8)
    assert evaluation.episodes == 8 and 0.0 < evaluation.terms["smooth_reward"] <= 1.0


@pytest.mark.slow
def test_gymnasium():
    """Train with another library: longer training balances better; ends are reported."""
    pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    example = load("09_gymnasium")
    worlds = example["WorldsForSb3"](example["make"](4))
    assert worlds.reset().shape == (4, *worlds.observation_space.shape)
    for _ in range(worlds.env.env.max_episode_length):
        _, _, dones, infos = worlds.step(np.zeros((4, 1), np.float32))
    assert dones.all() and all(info["TimeLimit.truncated"] for info in infos)
    assert all(info["terminal_observation"].shape == (5,) for info in infos)
    threads = torch.get_num_threads()
    try:
        _, early = example["learn"](16, 64)
        _, late = example["learn"](16, 960)
    finally:
        torch.set_num_threads(threads)
    assert late > early


def test_lab(monkeypatch, capsys):
    """Go on from a world of the batch, change it, and find it as it was."""
    pytest.importorskip("zmq", reason="needs the extra 'lab'")
    from manyworlds.lab import LabCfg, LiveLab

    example = load("10_lab")
    env = example["batch"](8, 10)
    angle = env.scene["cartpole"].data.joint_pos[3, 1].item()
    with LiveLab.walk_into(env, 3, cfg=LabCfg(mode="direct")) as lab:
        angles = example["play"](lab)
    assert angles["as in the batch"] == pytest.approx(angle, abs=1e-6)
    assert angles["a second later"] == angles["a second later, again"]
    assert len(set(angles.values())) == 4
    assert "errors say what to do" in run(monkeypatch, capsys, "10_lab")


def test_record_and_replay(monkeypatch, capsys, tmp_path):
    """Replay the recorded angles in a model with another joint, which does not move."""
    example = load("11_record_and_replay")
    file = example["record"](tmp_path)
    report, shown = example["replay"](tmp_path, file.name)
    assert report.startswith("2 joints matched")
    table = np.genfromtxt(tmp_path / "swing.csv", delimiter=",", names=True)
    for moment, qpos in zip((0.25, 0.5, 0.75), shown, strict=True):
        row = table[np.argmin(np.abs(table["time"] - table["time"][0] - moment))]
        assert qpos[:2] == pytest.approx([row["shoulder"], row["elbow"]], abs=1e-6)
        assert qpos[2] == 0.0
    assert "500 steps" in run(monkeypatch, capsys, "11_record_and_replay", tmp_path / "again")


def test_onnx_in_mujoco(monkeypatch, capsys, tmp_path):
    """Move in the parts of a period as in one call."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    run_folder = load("12_onnx_in_mujoco")["trained"](tmp_path)
    model = mujoco.MjModel.from_xml_path(str(run_folder / "scene" / "scene.xml"))
    assert model.nq == 2
    output = run(monkeypatch, capsys, "12_onnx_in_mujoco", run_folder)
    assert "the same bits: True" in output and "after 2.00 s" in output


@pytest.mark.slow
def test_sweep(tmp_path):
    """Begin a study with small trainings, and add to it from another start of the program."""
    pytest.importorskip("optuna")
    for trials in (2, 1):
        example = load("17_sweep")
        study = example["study"](tmp_path / "sweep.db")
        small = functools.partial(example["objective"], num_envs=16, iterations=12)
        study.optimize(lambda trial, run=small: run(trial, tmp_path / "runs"), n_trials=trials)
    assert [trial.number for trial in study.trials] == [0, 1, 2]
    values = [trial.value for trial in study.trials if trial.value is not None]
    assert study.best_value == max(values) > 0.0
    rates = [trial.params["learning_rate"] for trial in study.trials]
    assert len({*rates}) == 3 and all(1e-4 <= rate <= 1e-2 for rate in rates)
    runs = sorted((tmp_path / "runs").glob("*/*"))
    assert [run.name.split("_")[-1] for run in runs] == ["trial0", "trial1", "trial2"]


WITH_ARGUMENTS = [
    "07_cameras",
    "08_train",
    "11_record_and_replay",
    "12_onnx_in_mujoco",
    "13_drive_an_arm",
    "14_run_a_policy",
    "15_record_episodes",
    "16_push_through_a_renderer",
    "17_sweep",
]


@pytest.mark.parametrize("name", WITH_ARGUMENTS)
def test_arguments_are_checked(name, monkeypatch, capsys):
    """Say how an example is called, in place of a traceback."""
    for package in ("optuna", "zmq"):
        pytest.importorskip(package)
    needs = {"14_run_a_policy", "15_record_episodes", "16_push_through_a_renderer"}
    for arguments in ([], ["--nosuch"]) if name in needs else (["--nosuch"],):
        with pytest.raises(SystemExit, match="2"):
            run(monkeypatch, capsys, name, *arguments)
        assert capsys.readouterr().err.startswith(f"usage: {name}.py [-h]")


@pytest.mark.parametrize("name", WITH_ARGUMENTS)
def test_help(name, tmp_path, monkeypatch, capsys):
    """Print what an example is about, and write nothing."""
    for package in ("optuna", "zmq"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        run(monkeypatch, capsys, name, "--help")
    about = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text()))
    assert about and about.splitlines()[0] in capsys.readouterr().out
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_cluster_files():
    """Use options that exist, in files that a shell and YAML can read."""
    script = EXAMPLES / "cluster/train.slurm"
    subprocess.run(["bash", "-n", str(script)], check=True)
    task = yaml.safe_load((EXAMPLES / "cluster/skypilot.yaml").read_text())
    assert {"name", "resources", "envs", "file_mounts", "setup", "run"} == {*task}
    torchrun = script.read_text().split(" torchrun ", 1)[1]
    assert all(folder["mode"] == "MOUNT_CACHED" for folder in task["file_mounts"].values())
    assert f"--log-root {next(iter(task['file_mounts']))} " in task["run"]
    assert "exec srun --cpus-per-task=" in script.read_text()
    own = torchrun.index("-m manyworlds")
    known = get_args_parser().format_help()
    for option in re.findall(r"(--[\w-]+)", torchrun[:own]):
        assert option.replace("_", "-") in known.replace("_", "-"), option
    for command in (torchrun[own:], task["run"]):
        options = re.findall(r"(--[\w.-]+)", command)
        assert "--auto-resume" in options
        help_text = train_help()
        assert all(option in help_text for option in options), options


def train_help() -> str:
    """Return the help text of `manyworlds train`."""
    command = [sys.executable, "-m", "manyworlds", "train", "Cartpole-Swingup", "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
