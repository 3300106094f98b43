"""Recorders of the batch: datasets of episodes, read back by pyarrow."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.mdp import record_dataset
from manyworlds.managers import RecorderTermCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.episode_dataset import EpisodeDatasetWriter

pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'data'")

TASKS = ["Cartpole-Swingup", "Velocity-Flat-Quadruped", "Lift-Cube-Arm"]


def record(folder, task="Cartpole-Swingup", worlds=3, steps=25, **params):
    """Record random actions; return what each step was given and returned."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = worlds, 5
    cfg.episode_length_s = 10 * cfg.decimation * cfg.sim.mujoco.timestep
    params = {"folder": folder, "task": "try at random", **params}
    cfg.recorders = {"dataset": RecorderTermCfg(func=record_dataset, params=params)}
    env = ManagerBasedRlEnv(cfg, device="cpu")
    torch.manual_seed(0)
    obs, _ = env.reset()
    seen = []
    for _ in range(steps):
        before = obs["actor"].clone()
        action = torch.rand(worlds, env.action_manager.total_action_dim) * 2.0 - 1.0
        obs, reward, terminated, truncated, _ = env.step(action)
        seen.append((before, action, reward.clone(), terminated | truncated, truncated.clone()))
    env.close()
    return env, seen


@pytest.mark.parametrize("task", TASKS)
def test_a_dataset_holds_what_the_environment_saw(tmp_path, task):
    """Compare each frame of each episode with the values that `step` took and returned."""
    folder = tmp_path / "set"
    env, seen = record(folder, task)
    info = json.loads((folder / "meta/info.json").read_text())
    rows = pq.read_table(folder / "data/chunk-000/file-000.parquet").to_pydict()
    episodes = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    expected = [[], [], [], [], []]
    starts = [0] * env.num_envs
    lengths = []
    for step, (*_, done, _) in enumerate(seen):
        for world in torch.nonzero(done).flatten().tolist():
            part = range(starts[world], step + 1)
            for k in range(5):
                expected[k] += [seen[t][k][world].numpy() for t in part]
            starts[world] = step + 1
            lengths.append(len(part))
    assert len(lengths) >= 6
    keys = ("observation.state", "action", "next.reward", "next.done", "next.truncated")
    for key, values in zip(keys, expected, strict=True):
        found = np.array(rows[key], np.float32)
        assert found.ndim == 1 or found.shape[1] > 1, "LeRobot reads single values as numbers"
        np.testing.assert_array_equal(found, np.stack(values).reshape(found.shape), key)
    assert [e["length"] for e in episodes] == lengths
    assert info["codebase_version"] == "v3.0" and info["fps"] == pytest.approx(1 / env.step_dt)
    assert info["total_frames"] == sum(lengths) and info["total_episodes"] == len(lengths)
    for key, feature in info["features"].items():
        size = np.array(rows[key]).reshape(len(rows[key]), -1).shape[1]
        assert feature["shape"] == [size]
        assert feature["names"] is None or len(feature["names"]) == size
    for episode in episodes:
        begin, end = episode["dataset_from_index"], episode["dataset_to_index"]
        assert rows["index"][begin:end] == list(range(begin, end))
        assert set(rows["episode_index"][begin:end]) == {episode["episode_index"]}
        assert rows["frame_index"][begin:end] == list(range(episode["length"]))
        assert rows["next.done"][end - 1] and not any(rows["next.done"][begin : end - 1])


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("Cartpole-Swingup", ["effort.slider"]),
        ("Velocity-Flat-Quadruped", ["joint_pos.FR_hip_joint", "joint_pos.FR_thigh_joint"]),
        ("Push-Variants", ["velocity.x", "velocity.y"]),
    ],
)
def test_actions_have_the_names_of_their_targets(tmp_path, task, names):
    """Name each action by its term and by the joint or actuator that it drives."""
    env, _ = record(tmp_path / "set", task, worlds=2, steps=11)
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    found = info["features"]["action"]["names"]
    assert len(set(found)) == env.action_manager.total_action_dim
    assert found[: len(names)] == names, found


def test_statistics_are_those_of_all_frames(tmp_path):
    """Compute means, deviations and quantiles again from the rows."""
    record(tmp_path / "set")
    stats = json.loads((tmp_path / "set/meta/stats.json").read_text())
    rows = pq.read_table(tmp_path / "set/data/chunk-000/file-000.parquet").to_pydict()
    values = np.array(rows["observation.state"], np.float64)
    found = stats["observation.state"]
    np.testing.assert_allclose(found["mean"], values.mean(0))
    np.testing.assert_allclose(found["std"], values.std(0))
    np.testing.assert_allclose(found["q99"], np.quantile(values, 0.99, axis=0))
    assert found["count"] == [len(values)]
    tasks = pq.read_table(tmp_path / "set/meta/tasks.parquet").to_pylist()
    assert tasks == [{"task_index": 0, "task": "try at random"}]


def test_tasks_have_the_index_that_pandas_looks_for(tmp_path):
    """Describe the index column of `tasks.parquet`, without which pandas cannot read the file."""
    record(tmp_path / "set")
    schema = pq.read_schema(tmp_path / "set/meta/tasks.parquet")
    about = json.loads(schema.metadata[b"pandas"])
    assert about["index_columns"] == ["task"]
    assert [column["field_name"] for column in about["columns"]] == ["task"]
    pandas = pytest.importorskip("pandas", reason="the rest needs pandas")
    assert list(pandas.read_parquet(tmp_path / "set/meta/tasks.parquet").task_index) == [0]


def test_each_world_records_as_many_episodes_as_asked(tmp_path):
    """Stop after one episode per world, and leave nothing unfinished beside the dataset."""
    record(tmp_path / "set", worlds=4, steps=35, episodes_per_world=1)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert json.loads((tmp_path / "set/meta/info.json").read_text())["total_episodes"] == 4


def test_a_group_without_a_vector_and_an_existing_folder_are_refused(tmp_path):
    """Say what to change before anything is lost."""
    with pytest.raises(ValueError, match=r"group 'camera' is no vector: set `group` to one of"):
        record(tmp_path / "set", group="camera")
    (tmp_path / "set").mkdir()
    (tmp_path / "set/mine.txt").write_text("kept")
    with pytest.raises(FileExistsError, match="give the dataset another folder"):
        record(tmp_path / "set")
    assert (tmp_path / "set/mine.txt").read_text() == "kept"


@pytest.mark.parametrize("task", ["Lift-Cube-Arm-Rgb", "Lift-Cube-Arm-Depth"])
def test_images_are_in_the_dataset(tmp_path, task):
    """Compare the PNG file of each frame with the image that the policy was given."""
    pil = pytest.importorskip("PIL.Image", reason="needs the extra 'data'")
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 2, 5
    cfg.episode_length_s = 5 * cfg.decimation * cfg.sim.mujoco.timestep
    params = {"folder": tmp_path / "set", "task": "look"}
    cfg.recorders = {"dataset": RecorderTermCfg(func=record_dataset, params=params)}
    env = ManagerBasedRlEnv(cfg, device="cpu")
    torch.manual_seed(0)
    obs, _ = env.reset()
    seen: list[list[np.ndarray]] = [[], []]
    for _ in range(10):
        for world in range(2):
            image = obs["camera"][world].permute(1, 2, 0).numpy()
            seen[world].append(np.round(image.clip(0, 1) * 255).astype(np.uint8))
        obs, *_ = env.step(torch.rand(2, env.action_manager.total_action_dim) * 2.0 - 1.0)
    env.close()
    key = "observation.images.camera"
    rows = pq.read_table(tmp_path / "set/data/chunk-000/file-000.parquet").to_pydict()
    found = []
    for cell in rows[key]:
        picture = np.asarray(pil.open(io.BytesIO(cell["bytes"])))
        found.append(picture if picture.ndim == 3 else picture[..., None])
    expected = np.stack(
        [frame for half in (0, 5) for world in seen for frame in world[half : half + 5]]
    )
    assert len(found) == 20 and expected.std() > 1.0
    np.testing.assert_array_equal(np.stack(found), expected)
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    feature = info["features"][key]
    assert feature["dtype"] == "image" and feature["shape"] == list(expected.shape[1:])
    stats = json.loads((tmp_path / "set/meta/stats.json").read_text())[key]
    scaled = expected / 255.0
    for name, of in (("mean", np.mean), ("std", np.std), ("min", np.min), ("max", np.max)):
        np.testing.assert_allclose(np.ravel(stats[name]), of(scaled, axis=(0, 1, 2)), atol=1e-9)
    middle = np.quantile(expected, 0.5, axis=(0, 1, 2), method="inverted_cdf") / 255.0
    np.testing.assert_allclose(np.ravel(stats["q50"]), middle)
    assert np.shape(stats["mean"]) == (expected.shape[-1], 1, 1)


def test_arrays_that_are_no_images_are_refused(tmp_path):
    """Give frames with two dimensions of floats: the error says what can be written."""
    writer = EpisodeDatasetWriter(tmp_path / "set", 10.0, "look", {})
    with pytest.raises(ValueError, match="Feature 'map' has frames of shape .* give vectors, or"):
        writer.add_episode({"map": np.zeros((3, 4, 4), np.float32)})
