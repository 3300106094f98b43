"""Films of an environment that something else steps."""

import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg
from manyworlds.viewer import VideoRecorder
from manyworlds.viewer import video_recorder as module


@pytest.fixture
def written(monkeypatch):
    """Take what would become files: name, number of frames, frames per second."""
    films = []

    def write(stem, frames, fps):
        films.append((stem.name, len(frames), round(fps, 3)))
        return stem

    monkeypatch.setattr(module, "write_video", write)
    return films


@pytest.fixture
def env(engine):
    """Three cart-poles with a renderer that draws nothing; the second one is filmed."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs, cfg.viewer.env_idx = 3, 1
    env = ManagerBasedRlEnv(cfg, render_mode="rgb_array")
    env.renderer = lambda: np.zeros((4, 4, 3), np.uint8)
    return env


def act(env, steps: int) -> None:
    """Step without a push."""
    for _ in range(steps):
        env.step(torch.zeros(3, 1))


def test_films_begin_where_the_step_trigger_says(env, written, tmp_path):
    """Film so many steps from each trigger on; one that is due while filming is left out."""
    recorder = VideoRecorder(env, tmp_path, step_trigger=lambda s: s % 4 == 0, video_length=6)
    act(recorder, 17)
    fps = round(1 / env.step_dt, 3)
    assert written == [("rl-video-step-0", 6, fps), ("rl-video-step-8", 6, fps)]
    recorder.close()
    assert written[2:] == [("rl-video-step-16", 1, fps)]
    assert recorder.files == [tmp_path / name for name, *_ in written]


def test_films_of_episodes_end_with_them(env, written, tmp_path):
    """Count the episodes of the world that is drawn, and film whole ones."""
    recorder = VideoRecorder(env, tmp_path, episode_trigger=lambda n: n in (0, 2), name_prefix="a")
    for length in (3, 5, 4):
        env.episode_length_buf[1] = env.max_episode_length - length
        act(recorder, length)
    assert [film[:2] for film in written] == [("a-episode-0", 3), ("a-episode-2", 4)]
    recorder.reset()
    assert recorder.unwrapped is env and recorder.num_envs == 3


def test_mistakes_are_named(env, tmp_path):
    """Refuse a recorder that could film nothing."""
    with pytest.raises(ValueError, match="give episode_trigger or step_trigger"):
        VideoRecorder(env, tmp_path)
    with pytest.raises(ValueError, match="video_length must be at least 1 frame, got 0"):
        VideoRecorder(env, tmp_path, step_trigger=bool, video_length=0)
    env.render_mode = None
    with pytest.raises(ValueError, match="render_mode='rgb_array', got None"):
        VideoRecorder(env, tmp_path, step_trigger=bool)
