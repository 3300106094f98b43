"""Share folders: complete, as small as they can be, and true to plain playback."""

import gzip

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.robots.policy import PolicyController
from manyworlds.lab.world.gallery import GALLERY, open_gallery
from manyworlds.managers import ObservationTermCfg
from manyworlds.rl import OnnxPolicy
from manyworlds.rl.run_folder import RunFolder
from manyworlds.share import PageCard, write_folder
from manyworlds.share.folder import check_replaceable
from manyworlds.share.sources import (
    driven_world,
    page_world,
    recorded_motion,
    run_page,
    task_worlds,
)
from manyworlds.tasks import load_env_cfg
from tests.envs.bucket_tasks import chains_cfg
from tests.share.folders import driver_of, read_json, world_model
from tests.share.test_control_graph import COMMANDS, exported, exported_task

CARD = PageCard(title="A page", command="manyworlds share RUN --output page", task="A task")

pytestmark = pytest.mark.usefixtures("no_downloads")


@pytest.mark.parametrize(
    ("task", "variants"),
    [
        ("Cartpole-Balance", ()),
        ("Velocity-Flat-Quadruped", ()),
        ("Lift-Cube-Arm", ()),
        ("Push-Variants", ("bar", "star")),
        pytest.param("Velocity-Flat-Humanoid", (), marks=pytest.mark.slow),
        pytest.param("Tracking-Flat-Humanoid", (), marks=pytest.mark.slow),
    ],
)
def test_folders_move_as_plain_playback(tmp_path, task, variants):
    """Run what the folder holds for 200 control steps: the state is that of plain playback."""
    exported_task(task, tmp_path)
    cfg = load_env_cfg(task, play=True)
    run = RunFolder(tmp_path)
    policies = list(run_page(run, tmp_path / "policy.onnx", cfg, "policy", variants))
    worlds = [policy.world for policy in policies]
    folder = write_folder(tmp_path / "page", worlds, policies, CARD)
    about = read_json(folder)
    assert [world["name"] for world in about["worlds"]] == [*variants] or len(worlds) == 1
    for i, shared in enumerate(about["policies"]):
        model = world_model(folder, shared["world"], tmp_path / f"world{i}")
        driver = driver_of(folder, model, i)
        # In the exported scene, whose XML is another one, unless the task has variants.
        plain_model = model
        if not variants:
            plain_model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene" / "scene.xml"))
        plain = OnnxPolicy(tmp_path / "policy.onnx", plain_model, double=True)
        for name, values in driver.commands.items():
            values[:] = plain.commands[name][:] = COMMANDS[name]
        expected = mujoco.MjData(plain_model)
        found = mujoco.MjData(model)
        driver.reset(found, about["worlds"][shared["world"]]["keyframe"])
        plain.reset(expected)
        expected.qpos[:], expected.qvel[:] = found.qpos, found.qvel  # a task may have drawn them
        mujoco.mj_step1(plain_model, expected)
        for _ in range(200):
            plain.step(expected)
            driver.step(found, shared["decimation"])
        np.testing.assert_allclose(found.qpos, expected.qpos, atol=1e-9)
        np.testing.assert_allclose(found.qvel, expected.qvel, atol=1e-9)


def test_a_folder_has_all_that_the_page_names(tmp_path):
    """Name every file, keep others out, and replace an earlier page but nothing else."""
    exported_task("Reach", tmp_path)
    cfg = load_env_cfg("Reach", play=True)
    run = RunFolder(tmp_path)
    policies = []
    for name in ("first", "second"):
        policies += run_page(run, tmp_path / "policy.onnx", cfg, name)
    worlds = [policy.world for policy in policies]
    folder = write_folder(tmp_path / "page", worlds, policies, CARD)
    about = read_json(folder)
    assert len(about["worlds"]) == 1  # both are the same
    assert [policy["name"] for policy in about["policies"]] == ["first", "second"]
    assert [policy["world"] for policy in about["policies"]] == [0, 0]
    named = {about["worlds"][0]["model"], *(policy["file"] for policy in about["policies"])}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {path for path in there if path.startswith(("worlds/", "policies/"))} == named
    assert {"index.html", "page/main.js", "vendor/mujoco.js", "LICENSES", "README.md"} <= there
    [command] = about["commands"]
    assert command["labels"] == ["x [m]", "y [m]"] and command["high"] == [0.5, 0.5]
    assert "onnxruntime-web" in (folder / "LICENSES").read_text(encoding="utf-8")
    assert CARD.command in (folder / "README.md").read_text(encoding="utf-8")
    assert 'class="embed"' not in (folder / "index.html").read_text(encoding="utf-8")
    write_folder(folder, worlds[:1], [], CARD, embed=True)
    assert read_json(folder)["policies"] == []
    assert 'class="embed"' in (folder / "index.html").read_text(encoding="utf-8")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not an earlier page, it contains .*notes.txt"):
        check_replaceable(folder)


def _riddle(env):
    return env.scene["cartpole"].data.joint_pos


@pytest.mark.slow_on_warp
def test_nothing_is_written_if_a_term_has_no_form(env_cfg, rl_cfg, tmp_path):
    """Name the term before any world is built."""
    env_cfg.observations["actor"].terms["riddle"] = ObservationTermCfg(func=_riddle)
    with pytest.raises(ValueError, match="'riddle'"):
        exported(env_cfg, rl_cfg, tmp_path)
    with pytest.raises(ValueError, match="'riddle' .*ONNX_OBSERVATION_FNS"):
        list(run_page(RunFolder(tmp_path), tmp_path / "policy.onnx", None, "policy"))


def test_a_policy_drives_a_robot_of_another_world(tmp_path):
    """Walk in a world of the gallery as the lab does, with the gains and timestep of training."""
    shown = GALLERY["quadruped-to-drive"]
    assert shown.policy is not None
    page = driven_world(shown.world(), "walk", shown.policy, shown.robot)
    folder = write_folder(tmp_path / "page", [page.world], [page], CARD)
    model = world_model(folder, 0, tmp_path / "world")
    driver = driver_of(folder, model, 0)
    driver.commands["twist"][:] = (0.5, 0.0, 0.3)
    data = mujoco.MjData(model)
    driver.reset(data, read_json(folder)["worlds"][0]["keyframe"])
    for _ in range(100):
        driver.step(data, page.decimation)
    with open_gallery("quadruped-to-drive", lambda w: LiveLab(w, LabCfg(start_paused=True))) as lab:
        controller = lab["quadruped"].controller
        assert isinstance(controller, PolicyController)
        controller.commands["twist"][:] = (0.5, 0.0, 0.3)
        lab.reset()  # a lab that waits may have computed its first controls for no command
        lab.step(100 * page.decimation)
        expected = lab.read(lambda model, data: data.qpos.copy()).result()
    assert data.qpos[0] > 0.3
    np.testing.assert_allclose(data.qpos, expected, atol=1e-3)


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_a_recording_becomes_a_motion(tmp_path, suffix):
    """Take poses of a recorded joint at equal times; say when the world has none of the joints."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="ball", pos=(0, 0, 1))
    body.add_freejoint(name="fall")
    body.add_geom(size=(0.1, 0, 0))
    world = world_from_spec(spec)
    with LiveLab(world, LabCfg(start_paused=True)) as lab:
        lab.recorder.folder = tmp_path
        lab.recorder.start()
        lab.step(100)
        lab.recorder.stop()
        path = lab.recorder.save(f"take{suffix}")
    motion = recorded_motion(path, world.model)
    assert motion.rows.shape == (len(motion.rows), 13) and motion.period == 0.02
    last = motion.rows[-1, 2]
    assert motion.rows[0, 2] == pytest.approx(1.0, abs=1e-3)
    assert 0.5 < last < 0.95  # it falls for about 0.2 s
    assert (np.diff(motion.rows[:, 2]) < 0.0).all()
    page = page_world(world, "ball")
    page.motion = motion
    about = read_json(write_folder(tmp_path / "page", [page], [], CARD))
    recording = about["worlds"][0]["recording"]
    packed = (tmp_path / "page" / recording["file"]).read_bytes()
    values = np.frombuffer(gzip.decompress(packed), "<f4")
    np.testing.assert_allclose(values.reshape(-1, recording["columns"]), motion.rows, rtol=1e-6)
    other = mujoco.MjSpec()
    other.worldbody.add_body(name="box").add_freejoint(name="box")
    other.bodies[1].add_geom(size=(0.1, 0, 0))
    with pytest.raises(ValueError, match="has the joints fall, of which the world has none"):
        recorded_motion(path, other.compile())


@pytest.mark.slow
def test_a_world_of_a_terrain_starts_in_its_cell():
    """Stand on the ground of a cell after a second, and not in the ground at the origin."""
    cfg = load_env_cfg("Velocity-Rough-Quadruped", play=True)
    [world] = [world for world, _ in task_worlds(cfg, "rough")]
    data = mujoco.MjData(world.model)
    mujoco.mj_resetDataKeyframe(world.model, data, world.model.key(world.keyframe).id)
    fastest = 0.0
    for _ in range(200):
        mujoco.mj_step(world.model, data)
        fastest = max(fastest, np.abs(data.qvel[:3]).max())
    assert fastest < 2.0
    assert np.abs(data.qvel[:6]).max() < 0.5


def test_buckets_are_refused():
    """Say that a task of several robots has no page, before its worlds are built."""
    with pytest.raises(ValueError, match=r"has buckets \(two, three, four\), whose padded"):
        list(task_worlds(chains_cfg(), "Chains"))
