"""Projects written for the reference train, play and film their tasks unmodified."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import onnx
import pytest

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

HERE = Path(__file__).parent
PACKAGES = HERE / "packages"
PLAY, INSPECT, DRIVE = (
    str(PACKAGES / "scripts" / f"{name}.py")
    for name in ("play_policy", "inspect_tasks", "drive_rover")
)
_ON_NATIVE_ONLY = ("play", "watch", "inspect", "drive", "resume")
PLUGINS = {
    **{"trotter": "trotter", "mimic": "mimic", "picker": "picker.tasks"},
    **{"dancer": "dancer", "sorter": "sorter.tasks"},
}


def _install(folder: Path) -> None:
    """Write what installing the packages writes: their entry points."""
    for package, module in PLUGINS.items():
        info = folder / f"{package}-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text(f"[mjlab.tasks]\n{package} = {module}\n")


def _write_motion(path: Path, fps: float = 50.0, frames: int = 60) -> None:
    """Write a clip in which the humanoid stands and swings its arms, at the control rate."""
    model = mujoco.MjModel.from_xml_path(str(PACKAGES / "mimic" / "biped.xml"))
    data = mujoco.MjData(model)
    home = model.key_qpos[0]
    joints = [i for i in range(model.njnt) if model.jnt_type[i] != mujoco.mjtJoint.mjJNT_FREE]
    arms = [model.joint(f"{side}_shoulder_pitch_joint").qposadr[0] for side in ("left", "right")]
    swing = 0.4 * np.sin(2 * np.pi * np.arange(frames) / fps)
    qpos = np.tile(home, (frames, 1))
    qpos[:, arms] += np.stack([swing, -swing], axis=1)
    clip = {name: [] for name in ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")}
    qvel = np.zeros((frames, model.nv))
    for t in range(frames - 1):
        mujoco.mj_differentiatePos(model, qvel[t], 1 / fps, qpos[t], qpos[t + 1])
    for t in range(frames):
        data.qpos[:], data.qvel[:] = qpos[t], qvel[t]
        mujoco.mj_forward(model, data)
        velocity = np.zeros((model.nbody, 6))
        for body in range(model.nbody):
            mujoco.mj_objectVelocity(
                model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity[body], 0
            )
        clip["body_pos_w"].append(data.xpos[1:].copy())
        clip["body_quat_w"].append(data.xquat[1:].copy())
        clip["body_lin_vel_w"].append(velocity[1:, 3:])
        clip["body_ang_vel_w"].append(velocity[1:, :3])
    addresses, dofs = model.jnt_qposadr[joints], model.jnt_dofadr[joints]
    np.savez(path, joint_pos=qpos[:, addresses], joint_vel=qvel[:, dofs], **clip)


def _commands(logs: Path, motion: Path, extra: list[str]) -> dict[str, list[str]]:
    """List the command lines, as users of the reference write them."""
    train, play = ["-m", "mjlab.scripts.train"], ["-m", "mjlab.scripts.play"]
    size = ["--env.scene.num-envs", "8", "--agent.max-iterations", "2", "--log-root", str(logs)]
    more = [*size, "--agent.max-iterations", "3", "--agent.resume", "True"]
    film = ["--video", "True", "--video-length", "4", "--video-interval", "30"]
    clip = ["--env.commands.motion.motion-file", str(motion)]
    tiles = "--env.scene.terrain.terrain-generator"

    def checkpoint(experiment: str) -> str:
        return f"{{newest:{logs}/{experiment}/*/model_*.pt}}"

    def playing(experiment: str) -> list[str]:
        return [
            *("--checkpoint-file", checkpoint(experiment), "--num-envs", "2"),
            *("--video", "True", "--video-length", "3", "--log-root", str(logs)),
        ]

    return {
        "train trotter": [*train, "Mjlab-Velocity-Flat-Trotter", *size, *film, *extra],
        "play trotter": [*play, "Mjlab-Velocity-Flat-Trotter", *playing("trotter_velocity")],
        "watch trotter": [PLAY, "Mjlab-Velocity-Flat-Trotter", checkpoint("trotter_velocity")],
        "train trotter on stairs": [
            *(*train, "Mjlab-Velocity-Rough-Trotter", *size, *extra),
            *(f"{tiles}.num-rows", "2", f"{tiles}.num-cols", "3", f"{tiles}.border-width=2.0"),
            *("--agent.experiment-name", "trotter_stairs", "--agent.logger", "tensorboard"),
        ],
        "train mimic": [*train, "Mimic-Biped", *size, *film, *clip, *extra],
        "play mimic": [
            *(*play, "Mimic-Biped", *playing("mimic_biped")),
            *("--motion-file", str(motion)),
        ],
        "watch mimic": [PLAY, "Mimic-Biped", checkpoint("mimic_biped"), "5", str(motion)],
        "train picker": [*train, "Picker-Lift", *size, *film, *extra],
        "play picker": [*play, "Picker-Lift", *playing("picker_lift"), "--no-terminations", "True"],
        "watch picker": [PLAY, "Picker-Lift", checkpoint("picker_lift")],
        "inspect": [INSPECT, str(motion)],
        "train picker from depth": [*train, "Picker-Lift-Depth", *size, *extra],
        "train picker's gripper": [
            *(*train, "Picker-Lift-Cartesian", *size, *extra),
            *("--agent.experiment-name", "picker_gripper"),
        ],
        "train dancer": [*train, "Dancer", *size, *film, *extra],
        "play dancer": [*play, "Dancer", *playing("dancer")],
        "watch dancer": [PLAY, "Dancer", checkpoint("dancer")],
        "train sorter": [*train, "Sorter-Flat", *size, *film, *extra],
        "play sorter": [*play, "Sorter-Flat", *playing("sorter_flat")],
        "watch sorter": [PLAY, "Sorter-Flat", checkpoint("sorter_flat")],
        "drive sorter": [DRIVE, "Sorter-Flat", checkpoint("sorter_flat")],
        "train sorter on slabs": [*train, "Sorter-Rough", *size, *extra],
        "resume dancer": [*train, "Dancer", *more, *extra],
        "resume sorter": [*train, "Sorter-Flat", *more, *extra],
        "resume trotter": [*train, "Mjlab-Velocity-Flat-Trotter", *more, *extra],
        "resume mimic": [*train, "Mimic-Biped", *more, *clip, *extra],
        "resume picker": [*train, "Picker-Lift", *more, *extra],
    }


def _run(folder: Path, engine: str) -> dict[str, dict]:
    motion, site, results = folder / "motion.npz", folder / "site", folder / "results.json"
    _install(site)
    _write_motion(motion)
    extra: list[str] = []
    if engine == "warp":  # on the CPU, the default is the native engine
        extra = ["--env.sim.engine", "warp", "--agent.num-steps-per-env", "8"]
    commands = _commands(folder / "logs", motion, extra)
    if engine == "warp":  # scripts use the default engine, and checkpoints are alike on both
        resumed = commands["resume trotter"]
        commands = {
            name: line for name, line in commands.items() if not name.startswith(_ON_NATIVE_ONLY)
        }
        commands["resume trotter"] = resumed
    paths = [str(PACKAGES), str(site), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, HERE / "run_programs.py", results],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=folder,
    )
    assert results.is_file(), done.stdout + done.stderr
    return json.loads(results.read_text())


@pytest.fixture(scope="module")
def run_on(tmp_path_factory):
    """Run the programs once on an engine: all of them on the native one, trainings on Warp."""
    done = {}

    def run(engine: str) -> tuple[Path, dict[str, dict]]:
        if engine not in done:
            folder = tmp_path_factory.mktemp(engine)
            done[engine] = folder / "logs", _run(folder, engine)
        return done[engine]

    return run


@pytest.fixture(params=[pytest.param("native", marks=pytest.mark.slow)])
def ran(request, run_on):
    """All programs, on the native engine."""
    return run_on(request.param)


@pytest.fixture(
    params=[pytest.param(engine, marks=pytest.mark.slow) for engine in ("native", "warp")]
)
def trained(request, run_on):
    """The trainings, on an engine."""
    return run_on(request.param)


def _succeeded(results: dict[str, dict], program: str) -> str:
    result = results[program]
    assert result["error"] in (None, 0), f"{result['error']}\n{result['printed']}"
    return result["printed"]


@pytest.mark.parametrize(
    ("program", "experiment"),
    [
        ("train trotter", "trotter_velocity"),
        ("train trotter on stairs", "trotter_stairs"),
        ("train mimic", "mimic_biped"),
        ("train picker", "picker_lift"),
        ("train picker from depth", "picker_lift_depth"),
        ("train picker's gripper", "picker_gripper"),
        ("train dancer", "dancer"),
        ("train sorter", "sorter_flat"),
        ("train sorter on slabs", "sorter_rough"),
    ],
)
def test_a_project_trains(trained, program, experiment):
    """Train two iterations, with the overrides of the command line, and keep a checkpoint."""
    logs, results = trained
    assert "iteration 2/2" in _succeeded(results, program)
    run = min((logs / experiment).iterdir())  # a later one continues it
    assert list(run.glob("model_*.pt")) and (run / "policy.onnx").is_file()


@pytest.mark.parametrize(
    "experiment", ["trotter_velocity", "mimic_biped", "picker_lift", "dancer", "sorter_flat"]
)
def test_training_is_filmed(trained, experiment):
    """Record videos while a project trains."""
    logs, _ = trained
    films = list(logs.glob(f"{experiment}/*/videos/train/*"))
    assert films and all(film.stat().st_size > 1000 for film in films)


def test_a_training_is_resumed(trained):
    """Continue the newest run of a project by one iteration."""
    _, results = trained
    assert "iteration 3/3" in _succeeded(results, "resume trotter")


@pytest.mark.parametrize("package", PLUGINS)
def test_each_training_is_resumed(ran, package):
    """Continue the newest run of each project by one iteration."""
    _, results = ran
    assert "iteration 3/3" in _succeeded(results, f"resume {package}")


@pytest.mark.parametrize("package", PLUGINS)
def test_a_project_is_played(ran, package):
    """Film the policy by the command, and watch it by a script of the project."""
    _, results = ran
    printed = _succeeded(results, f"play {package}")
    film = Path(printed.partition("video: ")[2].strip())
    assert film.is_file() and film.stat().st_size > 1000
    assert ": 5 steps" in _succeeded(results, f"watch {package}")


def test_terms_of_the_projects_do_what_they_say(ran):
    """Check actions, commands, rewards, randomization, cameras and records of the projects."""
    _, results = ran
    assert "inspected all" in _succeeded(results, "inspect")


def test_a_runner_of_the_project_saves(ran):
    """Call what a subclass of the runner overrides: learn, save and load."""
    logs, results = ran
    notes = min(logs.glob("mimic_biped/*/mimic_notes.json"))
    (text, *_) = {path.read_text() for path in logs.glob("trotter_velocity/*/trotter_notes.txt")}
    assert text.startswith("tensorboard: ")
    saved = [Path(path) for path in json.loads(notes.read_text())["checkpoints"]]
    metrics = json.loads(saved[-1].with_suffix(".json").read_text())["metrics"]
    assert {"error_heading", "error_body_pos"} <= set(metrics)
    assert (saved[-1].parent / "mimic.onnx").is_file()
    assert list(logs.glob("picker_lift/*/20*.onnx"))
    assert "[picker] loaded the policy that was saved 2 times" in _succeeded(results, "play picker")
    [first, *_] = sorted(logs.glob("dancer/*"))
    onnx_file = onnx.load(str(first / f"{first.name}.onnx"))
    assert [output.name for output in onnx_file.graph.output] == ["actions", "joint_pos"]
    assert {"dance", "joint_names"} <= {entry.key for entry in onnx_file.metadata_props}
    assert "[dancer] best so far" in _succeeded(results, "resume dancer")


def test_a_viewer_of_the_project_takes_keys(ran):
    """Drive a policy by keys, in a viewer that a project derives."""
    _, results = ran
    assert re.search(r"drove \d+ steps, paused False", _succeeded(results, "drive sorter"))


def test_what_is_doubtful_in_a_project_is_told(ran):
    """Warn of each doubt in a project that mjlab takes as it is."""
    _, results = ran
    printed = _succeeded(results, "train dancer")
    for sentence in (
        "There is no folder",
        "body 'tail' not found",
        "'tail_collision' matches none of",
        "'.*_elbow' matches none of",
        "interval_range_s=(2.0, 1.0)",
        "lower bound 1.2 above its upper bound 0.3",
        "must be at least 0, but operation 'abs'",
        "has offset=0.1, but use_default_offset",
        "has no parameter 'typo'",
    ):
        assert sentence in printed, sentence
