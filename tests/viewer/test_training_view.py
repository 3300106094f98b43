"""A page of a running training."""

import multiprocessing
import time
import urllib.request
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from manyworlds.viewer import training_view
from manyworlds.viewer.cpu_share import CpuShare
from manyworlds.viewer.training_view import Frames, TrainingView
from tests.browser import free_port
from tests.waiting import PATIENCE_S

pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.fixture
def env(make_env):
    """Four cart-poles in a row, as training sees them."""
    env = make_env(4)
    env.scene = SimpleNamespace(env_origins=torch.zeros(4, 3))
    env.sim.expand_model_fields(("geom_rgba",))
    return env


@pytest.fixture
def view(env):
    """A page of two of the worlds."""
    view = TrainingView(env, num_shown=2, port=free_port())
    yield view
    view.finish()


def test_page(env, view):
    """Serve a page from another process, until training ends."""
    with urllib.request.urlopen(view.url, timeout=PATIENCE_S) as page:
        assert page.status == 200
    process = view._process
    assert process.is_alive()
    view.finish()
    view.finish()
    assert not process.is_alive()
    env.step(torch.zeros(4, 1))  # training may go on without it


def test_training_is_not_touched(make_env, env, view):
    """Step as without the page: same states, same random numbers."""
    other = make_env(4)
    other.sim.expand_model_fields(("geom_rgba",))
    draws = []
    for stepped in (other, env):
        torch.manual_seed(3)
        for _ in range(20):
            stepped.step(torch.rand(4, 1) - 0.5)
        draws.append(torch.rand(1))
    assert torch.equal(env.sim.data.qpos, other.sim.data.qpos)
    assert torch.equal(env.sim.data.qvel, other.sim.data.qvel)
    assert torch.equal(*draws)


def test_shows_the_first_worlds(env, view, monkeypatch):
    """Copy state and looks of the worlds shown, at most a few times a second, and records."""
    now = time.perf_counter() + 9.0
    monkeypatch.setattr(training_view, "time", SimpleNamespace(perf_counter=lambda: now))
    env.sim.model.geom_rgba[1, 2] = 0.25
    env.step(torch.zeros(4, 1))
    arrays = view._frames.arrays
    np.testing.assert_array_equal(arrays["qpos"], env.sim.data.qpos[:2].numpy())
    np.testing.assert_array_equal(arrays["model.geom_rgba"], env.sim.model.geom_rgba[:2].numpy())
    before = arrays["qpos"].copy()
    now += 0.05
    env.step(torch.zeros(4, 1))
    np.testing.assert_array_equal(arrays["qpos"], before)
    now += 1.0
    env.step(torch.zeros(4, 1))
    np.testing.assert_array_equal(arrays["qpos"], env.sim.data.qpos[:2].numpy())
    assert (arrays["qpos"] != before).any()
    view.note(SimpleNamespace(iteration=3, total=9, mean_return=None, steps_per_s=100.0))
    np.testing.assert_array_equal(arrays["record"], [3, 9, np.nan, 100])


def test_keys_of_the_page(env, view):
    """Press the keys of the page: the camera stays where it is, and follows again."""
    from manyworlds.viewer.browser.keys import KEYS
    from manyworlds.viewer.browser.server import stop_server

    where = np.zeros((2, 3)), "127.0.0.1", free_port()
    page = training_view._TrainingPage(view._frames, env.sim.mj_model, env.cfg.viewer, *where)
    try:
        assert page.keys.names == {n for n, key in KEYS.items() if "training" in key.pages}
        assert page._follow
        page.keys.actions["C"]()
        assert not page._follow
        page.keys.actions["F"]()
    finally:
        stop_server(page._server)


class FakeLab:
    """Lab that opens at once, or cannot."""

    def __init__(self) -> None:
        self.warmed, self.entered, self.error = 0, [], ""

    def warm(self):
        self.warmed += 1

    def enter(self, world):
        if self.error:
            raise RuntimeError(self.error)
        self.entered.append(world)
        return "http://127.0.0.1:9/?a=1&b=2"

    def close(self):
        pass


def test_walk_in_from_the_page(env, view):
    """Select a world and walk in: the link leads to the lab, or the page says why not."""
    from manyworlds.viewer.browser.server import stop_server

    where, lab = (np.zeros((2, 3)), "127.0.0.1", free_port()), FakeLab()
    page = training_view._TrainingPage(
        view._frames, env.sim.mj_model, env.cfg.viewer, *where, walk_in=lab
    )
    try:
        controls = page._entry
        assert controls is not None and controls.button.label == "Walk in to world 0"
        page._select(1)
        page._draw()
        assert controls.button.label == "Walk in to world 1"
        controls.enter()
        assert lab.entered == [1] and not controls.button.disabled
        assert 'href="http://127.0.0.1:9/?a=1&amp;b=2"' in controls.text.content
        assert "World 1 in the lab" in controls.text.content
        lab.error = "The training <has> ended."
        controls.enter()
        assert controls.text.content == "<p>The training &lt;has&gt; ended.</p>"
        assert not controls.button.disabled
    finally:
        stop_server(page._server)


def test_frames_are_whole():
    """Read whole frames only, and each of them once."""
    frames = Frames({"a": ((2, 3), "float32"), "b": ((1,), "float64")})
    reader = Frames({"a": ((2, 3), "float32"), "b": ((1,), "float64")}, frames.memory.name)
    try:
        frames.begin()
        frames.arrays["a"][:] = 1.5
        frames.arrays["b"][:] = -2.0
        assert reader.read(0) == (0, None)
        frames.end()
        last, arrays = reader.read(0)
        assert arrays is not None
        np.testing.assert_array_equal(arrays["a"], np.full((2, 3), 1.5))
        assert arrays["b"][0] == -2.0
        assert reader.read(last) == (last, None)
    finally:
        reader.close()
        frames.close()


def test_page_that_cannot_be_served(env):
    """Say why there is no page, and leave no process and no memory behind."""
    with pytest.raises(RuntimeError, match="could not be served: ValueError: Cannot serve"):
        TrainingView(env, host="203.0.113.1", port=8099)


def test_a_training_that_ends_before_its_page_is_there(monkeypatch):
    """Kill the training while its page starts: the page's process ends without an error."""
    for name in ("lower_priority", "signal", "Frames", "_TrainingPage"):
        monkeypatch.setattr(training_view, name, MagicMock())
    answers, pipe = multiprocessing.Pipe(duplex=False)
    answers.close()
    training_view._serve("", {}, (), pipe, None, None)
    pipe.close()


@pytest.mark.parametrize("cost", [0.0001, 0.005, 0.2])
def test_budget_keeps_to_its_share(cost):
    """Take turns for ten minutes: at most the share, but for ten turns, and all that is needed."""
    budget, spent, time = CpuShare(0.01, 0.1), 0.0, 0.0
    while time < 600.0:
        spent += cost
        time += budget.rest(cost)
        assert spent <= 0.01 * time + 10.0 * cost + 1e-9
    assert spent >= min(0.01, cost / 0.1) * time * 0.999


def test_budget_spreads_a_burst():
    """Owe much for one turn: go on, more slowly, until all of it is made up for."""
    budget = CpuShare(0.01, 0.1)
    rests = [budget.rest(0.3), *(budget.rest(0.0) for _ in range(400))]
    assert max(rests) == pytest.approx(3.0)
    assert rests[-1] == 0.1
    paid = 0.01 * sum(rest for rest in rests if rest > 0.1)
    assert 0.28 < paid < 0.3
