"""A world of a running training on the fast path."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.plugins.ros2.bridge import RosBridge
from manyworlds.plugins.urlab.fast_path import FastPathReader, PublisherError, find_publishers
from manyworlds.plugins.urlab.fast_path.reader import Newest
from manyworlds.plugins.urlab.fast_path.training import PublishedTraining, TrainingPublisher
from manyworlds.viewer.training_view import Frames, TrainingView
from tests.browser import free_port
from tests.lab.server.waiting import until
from tests.plugins.urlab.publishers import registry
from tests.waiting import PATIENCE_S

__all__ = ["registry"]
pytestmark = pytest.mark.slow_on_warp


@pytest.fixture
def env(make_env):
    """Four cart-poles in a row, as training sees them."""
    env = make_env(4)
    env.scene = SimpleNamespace(env_origins=torch.zeros(4, 3))
    env.sim.expand_model_fields(("geom_rgba",))
    return env


def frames_of(env):
    """Show the states of worlds as a training does, without a page."""
    data, model = env.sim.data, env.sim.model
    sources = {"time": data.time, "qpos": data.qpos, "qvel": data.qvel}
    sources["model.geom_rgba"] = model.geom_rgba
    rows = {name: tensor.numpy() for name, tensor in sources.items()}
    frames = Frames({name: (row.shape, row.dtype.str) for name, row in rows.items()})

    def show():
        frames.begin()
        for name, tensor in sources.items():
            frames.arrays[name][:] = tensor.numpy()
        frames.end()

    show()
    return frames, show


def test_one_world_is_shown(env):
    """Step the batch: poses are those of the world that was asked for, and colors are, too."""
    env.sim.data.qpos[2] = torch.tensor([0.5, 0.3])
    env.sim.model.geom_rgba[2, 1] = torch.tensor([0.1, 0.2, 0.3, 1.0])
    frames, show = frames_of(env)
    try:
        source = PublishedTraining(frames, env.sim.mj_model, 2, "run")
        pose = source.pose()
        assert source.pose() is pose and pose.model_version == 0
        twin = mujoco.MjData(env.sim.mj_model)
        twin.qpos[:] = [0.5, 0.3]
        mujoco.mj_kinematics(env.sim.mj_model, twin)
        np.testing.assert_allclose(pose.xpos, twin.xpos, atol=1e-6)
        np.testing.assert_allclose(pose.qpos, [0.5, 0.3], atol=1e-6)
        content = source.model()
        model = mujoco.MjModel.from_binary_path("m.mjb", {"m.mjb": content})
        np.testing.assert_allclose(model.geom_rgba[1], [0.1, 0.2, 0.3, 1.0], atol=1e-6)
        env.step(torch.zeros(4, 1))
        env.sim.model.geom_rgba[1, 1] = 0.9  # of another world
        show()
        later = source.pose()
        assert later.frame_id > pose.frame_id and later.model_version == 0
        np.testing.assert_allclose(later.qvel, env.sim.data.qvel[2].numpy())
        env.sim.model.geom_rgba[2, 1] = 0.8
        show()
        assert source.pose().model_version == 1
    finally:
        frames.close()


@pytest.mark.slow
def test_a_training_is_found_and_cannot_be_pushed(env, registry, caplog):
    """Train with a page: its world is found, is shown, and says why it cannot be pushed."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    share = functools.partial(TrainingPublisher, world=1, name="run")
    view = TrainingView(env, num_shown=2, port=free_port(), share=share)
    try:
        (publisher,) = until(find_publishers, "no publisher is there")
        assert f"{publisher.host}:{publisher.control_port}" == view.shared_at
        assert publisher.scene == "run, world 1" and publisher.pid == view._process.pid
        reader = FastPathReader(publisher.control, timeout=PATIENCE_S)
        scene = reader.hello()
        assert scene.model.nbody == env.sim.mj_model.nbody and not scene.has_state
        refused = reader.request("fastpath_perturb", body=1, force=[1.0, 0.0, 0.0])["error"]
        assert refused == scene.note
        assert "World 1 of this training is only shown: a push would change" in refused
        newest, seen = Newest(), set()

        def moved():
            view._next = 0.0  # a frame is due
            env.step(torch.zeros(4, 1))
            if reader.read(newest) and newest.viewer:
                seen.add(newest.viewer["t"])
            return len(seen) > 2

        until(moved, "no poses come")
        with pytest.raises(PublisherError, match="publishes poses only, as trainings do"):
            RosBridge(publisher.control, [])
        reader.close()
    finally:
        view.finish()
    assert find_publishers() == [] and not list(registry.glob("*.json"))


def test_several_trainings_run_at_once(env, registry):
    """Open two publishers: both have ports, and each says where it is."""
    frames, _ = frames_of(env)
    publishers = [TrainingPublisher(frames, env.sim.mj_model, i, "run") for i in range(2)]
    try:
        until(lambda: len(find_publishers()) == 2, "a publisher is missing")
        assert publishers[0].address != publishers[1].address
        assert {o.scene for o in find_publishers()} == {"run, world 0", "run, world 1"}
    finally:
        for publisher in publishers:
            publisher.close()
        frames.close()
    assert find_publishers() == []
