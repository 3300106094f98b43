"""The loop that viewers share, with a clock that the test turns."""

import threading
from types import SimpleNamespace

import pytest
import torch

from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.base import BaseViewer, VerbosityLevel, ViewerAction


class Env:
    """Counts its steps; a step may take time and may fail."""

    def __init__(self, num_envs=4, viewer=None):
        self.num_envs = num_envs
        self.step_dt = 0.02
        self.cfg = SimpleNamespace(viewer=viewer or ViewerConfig())
        self.device = "cpu"
        self.sim = None
        self.unwrapped = self
        self.actions = []
        self.resets = 0
        self.on_step = lambda: None

    def get_observations(self):
        return torch.full((self.num_envs, 1), float(len(self.actions)))

    def step(self, actions):
        self.on_step()
        self.actions.append(actions)
        return (actions,)

    def reset(self):
        self.resets += 1

    def close(self):
        pass


class Viewer(BaseViewer):
    """Counts its frames and runs on a clock of its own."""

    def __init__(self, env, policy=lambda obs: 2 * obs, **kwargs):
        super().__init__(env, policy, **kwargs)
        self.now = 100.0
        self.frames = 0
        self.open = False
        self.custom = []

    def _clock(self):
        return self.now

    def setup(self):
        self.open = True

    def sync_env_to_viewer(self):
        self.frames += 1

    def close(self):
        self.open = False

    def is_running(self):
        return self.open

    def _handle_custom_action(self, action, payload):
        self.custom.append((action, payload))
        return action is ViewerAction.CUSTOM

    def pass_time(self, seconds):
        """Let time pass, then tick."""
        self.now += seconds
        return self.tick()


@pytest.fixture
def env():
    """An environment of four worlds that steps by 20 ms."""
    return Env()


@pytest.fixture
def viewer(env):
    """A viewer of ten frames per second that has ticked once, at time zero."""
    viewer = Viewer(env, frame_rate=10.0)
    assert viewer.tick()
    return viewer


def test_first_tick_draws_without_stepping(viewer, env):
    """Draw the first frame at once, and take no steps for time that did not pass."""
    assert viewer.frames == 1
    assert len(env.actions) == 0


def test_fraction_of_a_step_is_kept(viewer, env):
    """Carry what is left of the budget over to the next tick."""
    for _ in range(10):
        viewer.pass_time(0.015)
    assert len(env.actions) == 7
    viewer.pass_time(0.010001)
    assert len(env.actions) == 8


def test_real_time_over_many_ticks(viewer, env):
    """Simulate one second per second, whatever the ticks."""
    for i in range(300):
        viewer.pass_time(0.001 + 0.002 * (i % 3))
    assert len(env.actions) == pytest.approx(0.9 / 0.02, abs=1)


@pytest.mark.parametrize(
    ("ups", "steps"), [(-5, 1), (-1, 25), (0, 50), (1, 100), (3, 400), (9, 400)]
)
def test_speed(viewer, env, ups, steps):
    """Step as often as the speed says; stop at the lowest and the highest speed."""
    for _ in range(abs(ups)):
        viewer.request_speed_up() if ups > 0 else viewer.request_speed_down()
    for _ in range(100):
        viewer.pass_time(0.01)
    assert len(env.actions) == pytest.approx(steps, abs=1)


def test_reset_speed(viewer):
    """Go back to real time."""
    viewer.request_speed_up()
    viewer.tick()
    assert viewer.target_realtime == 2.0
    viewer.request_reset_speed()
    viewer.tick()
    assert viewer.target_realtime == 1.0


def test_frames_are_drawn_at_the_frame_rate(viewer):
    """Draw ten times a second and say so, however often the loop ticks."""
    drawn = sum(viewer.pass_time(0.01) for _ in range(300))
    assert drawn == viewer.frames - 1
    assert drawn == pytest.approx(30, abs=1)


def test_one_frame_after_a_stall(viewer):
    """Draw one frame after a long stall, not all that were missed."""
    assert viewer.pass_time(10.0)
    assert [viewer.pass_time(0.02) for _ in range(6)].count(True) <= 2


def test_slow_worlds_are_capped(viewer, env):
    """Draw after one frame's time when the worlds cannot keep up, and drop the debt."""

    def slow():
        viewer.now += 0.05

    env.on_step = slow
    viewer.pass_time(1.0)
    assert len(env.actions) == 2
    assert viewer.get_status().capped
    env.on_step = lambda: None
    viewer.pass_time(0.021)
    # Also the time that the slow steps took has passed.
    assert len(env.actions) == 2 + 6
    assert not viewer.get_status().capped


def test_pause_clears_the_budget(viewer, env):
    """Take no steps while paused, and none for the pause afterwards."""
    viewer.pass_time(0.019)
    viewer.request_toggle_pause()
    for _ in range(10):
        viewer.pass_time(0.1)
    assert viewer.get_status().paused
    assert len(env.actions) == 0
    viewer.request_toggle_pause()
    viewer.pass_time(0.005)
    viewer.pass_time(0.005)
    assert len(env.actions) == 0
    viewer.pass_time(0.0151)
    assert len(env.actions) == 1


def test_drawing_goes_on_while_paused(viewer):
    """Draw frames while paused, so that another world can be looked at."""
    viewer.pause()
    assert [viewer.pass_time(0.1001) for _ in range(5)] == [True] * 5


def test_single_step(viewer, env):
    """Take exactly one step and stay paused."""
    viewer.request_single_step()
    viewer.pass_time(0.1)
    viewer.pass_time(0.1)
    assert len(env.actions) == 1
    assert viewer.get_status().paused
    assert viewer.get_status().step_count == 1


def test_policy_acts_on_observations(viewer, env):
    """Give the policy the present observations, without gradients, and step its actions."""
    grads = []

    def policy(obs):
        grads.append(torch.is_grad_enabled())
        return 3 * obs

    viewer.policy = policy
    viewer.pass_time(0.0401)
    assert [float(a[0]) for a in env.actions] == [0.0, 3.0]
    assert grads == [False, False]


def test_reset(viewer, env):
    """Reset the worlds and the policy's memory, and count steps from zero."""
    policy_resets = []
    viewer.policy = type(
        "Policy",
        (),
        {"__call__": lambda self, obs: obs, "reset": lambda self: policy_resets.append(1)},
    )()
    viewer.pass_time(0.05)
    viewer.request_reset()
    viewer.tick()
    assert env.resets == 1
    assert policy_resets == [1]
    assert viewer.get_status().step_count == 0


def test_error_pauses(viewer, env, capsys):
    """Pause at an error, keep it in one line, and say where it came from."""

    def fail():
        raise ArithmeticError("solver\n  diverged")

    env.on_step = fail
    viewer.pass_time(0.05)
    status = viewer.get_status()
    assert status.paused
    assert status.last_error == "ArithmeticError: solver diverged"
    assert "Traceback" in capsys.readouterr().out
    assert viewer.pass_time(0.2), "drawing stopped"
    env.on_step = lambda: None
    viewer.request_toggle_pause()
    viewer.pass_time(0.05)
    assert viewer.get_status().last_error is None
    assert len(env.actions) == 2


def test_error_in_policy_and_reset(viewer, env):
    """Treat errors of the policy and of a reset like those of a step."""
    viewer.policy = lambda obs: obs[99]
    viewer.pass_time(0.05)
    assert "IndexError" in viewer.get_status().last_error
    env.reset = lambda: 1 / 0
    viewer.request_reset()
    viewer.tick()
    assert "ZeroDivisionError" in viewer.get_status().last_error


def test_selecting_worlds(viewer):
    """Go round the worlds in both directions."""
    seen = []
    for name in ("next_env", "PREV_ENV", "prev_env", "next_env"):
        viewer.request_action(name)
        viewer.tick()
        seen.append(viewer.env_idx)
    assert seen == [1, 0, 3, 0]


def test_first_world_comes_from_the_configuration():
    """Begin with the world that the configuration names."""
    assert Viewer(Env(viewer=ViewerConfig(env_idx=2))).env_idx == 2
    with pytest.raises(ValueError, match="env_idx is 4 but there are 4 worlds"):
        Viewer(Env(viewer=ViewerConfig(env_idx=4)))


def test_custom_actions(viewer):
    """Offer subclasses what the loop does not know; show what they refuse; refuse unknown names."""
    viewer.request_action("custom", {"x": 1})
    viewer.request_action("toggle_plots")
    viewer.tick()
    assert viewer.custom == [(ViewerAction.CUSTOM, {"x": 1}), (ViewerAction.TOGGLE_PLOTS, None)]
    assert "Viewer has no action TogglePlots()" in viewer.get_status().last_error
    with pytest.raises(ValueError, match="'reset' takes no payload, got 3"):
        viewer.request_action("reset", 3)
    with pytest.raises(ValueError, match="no viewer action 'fly': use one of reset"):
        viewer.request_action("fly")


def test_requests_from_threads(viewer):
    """Lose no request that other threads make."""
    threads = [
        threading.Thread(
            target=lambda i=i: [viewer.request_action("custom", i) for _ in range(250)]
        )
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        viewer.tick()
    viewer.tick()
    payloads = [payload for _, payload in viewer.custom]
    assert [payloads.count(i) for i in range(4)] == [250] * 4


def test_a_request_that_requests(viewer):
    """Leave what a request asks for to the next tick."""
    viewer._handle_custom_action = lambda *_: viewer.request_action("custom") or True
    viewer.request_action("custom")
    viewer.tick()
    assert viewer._requests.qsize() == 1


def test_status(viewer):
    """Report the speed reached and the frames drawn."""
    for _ in range(200):
        viewer.pass_time(0.01)
    status = viewer.get_status()
    assert status.actual_realtime == pytest.approx(1.0, abs=0.05)
    assert status.smoothed_fps == pytest.approx(10.0, abs=2.0)
    assert status.step_count == pytest.approx(100, abs=1)
    viewer.pause()
    assert viewer.actual_realtime == 0.0


@pytest.mark.parametrize(
    ("speed", "label"), [(1 / 32, "1/32x"), (0.5, "1/2x"), (1.0, "1x"), (8.0, "8x"), (0.3, "0.3x")]
)
def test_speed_labels(speed, label):
    """Write speeds as people do."""
    assert BaseViewer._format_speed(speed) == label


class RunningViewer(Viewer):
    """Runs on the real clock."""

    def _clock(self):
        return BaseViewer._clock()


def test_run_for_some_steps(env):
    """Open, take the steps asked for, also where many are due at once, and close."""
    env.step_dt = 1e-5
    viewer = RunningViewer(env)
    viewer.run(num_steps=5)
    assert len(env.actions) == 5
    assert viewer.frames >= 1
    assert not viewer.open


def test_run_ends_at_an_error(env):
    """End a run of so many steps at an error, and keep it."""
    env.step_dt = 0.001
    env.on_step = lambda: 1 / 0
    viewer = RunningViewer(env)
    viewer.run(num_steps=5)
    assert "ZeroDivisionError" in viewer.get_status().last_error
    assert not viewer.open


def test_run_ends_at_interrupt(env):
    """Close at Ctrl-C, with a traceback only if asked for."""

    def interrupt():
        raise KeyboardInterrupt

    env.on_step = interrupt
    env.step_dt = 0.001
    viewer = RunningViewer(env)
    viewer.run()
    assert not viewer.open
    with pytest.raises(KeyboardInterrupt):
        viewer.run(catch_sigint=False)


def test_verbosity(env, capsys):
    """Say only what the verbosity asks for."""
    viewer = Viewer(env, verbosity=VerbosityLevel.INFO)
    viewer.log("hello")
    viewer.log("details", VerbosityLevel.DEBUG)
    assert capsys.readouterr().out == "hello\n"


def test_frame_rate_is_checked(env):
    """Refuse a frame rate of zero."""
    with pytest.raises(ValueError, match="frame_rate must be above 0, got 0"):
        Viewer(env, frame_rate=0)
