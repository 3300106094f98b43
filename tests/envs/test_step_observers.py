"""Observers of an environment's control steps."""

import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg


class Notes:
    """Notes what it sees in a list that several share."""

    def __init__(self, name: str, env: ManagerBasedRlEnv, notes: list[tuple[str, str, int]]):
        self.name = name
        self.env = env
        self.notes = notes
        self.actions: list[torch.Tensor] = []

    def before_step(self, action: torch.Tensor) -> None:
        self.actions.append(action)
        self.notes.append((self.name, "before", self.env.common_step_counter))

    def after_step(self) -> None:
        self.notes.append((self.name, "after", self.env.common_step_counter))


def make_env() -> ManagerBasedRlEnv:
    """Return two worlds of the cartpole."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs = 2
    cfg.seed = 1
    return ManagerBasedRlEnv(cfg, device="cpu")


def test_observers_see_each_control_step_once():
    """Step as a whole and by physics steps: observers are nested around both."""
    env = make_env()
    notes: list[tuple[str, str, int]] = []
    outer = Notes("outer", env, notes)
    env.observers = [outer, Notes("inner", env, notes)]
    nested = ["outer before", "inner before", "inner after", "outer after"]

    action = torch.full((2, 1), 0.5)
    env.step(action)
    assert [f"{name} {when}" for name, when, _ in notes] == nested
    assert [count for *_, count in notes] == [0, 0, 1, 1]
    assert torch.equal(outer.actions[0], action)

    notes.clear()
    for _ in env.substeps(action):
        pass
    assert [f"{name} {when}" for name, when, _ in notes] == nested

    notes.clear()
    env.reset()
    env.observers = []
    env.step(action)
    assert notes == []


def test_observers_do_not_see_the_rest_of_a_control_step():
    """Continue a control step of a loaded state: it was not seen to begin, so not to end either."""
    env = make_env()
    stages = env.substeps(torch.zeros(2, 1))
    next(stages)
    next(stages)
    state = env.state_dict()
    other = make_env()
    notes: list[tuple[str, str, int]] = []
    other.observers = [Notes("all", other, notes)]
    other.load_state_dict(state)
    for _ in other.substeps(None, done=1):
        pass
    for _ in stages:
        pass
    assert notes == []
    assert torch.equal(env.obs_buf["actor"], other.obs_buf["actor"])


def test_an_observer_that_the_first_one_adds_sees_the_same_step():
    """Add an observer before a step, as a request that the first one waits for: it sees it all."""
    env = make_env()
    notes: list[tuple[str, str, int]] = []
    added = Notes("added", env, notes)

    class Adds(Notes):
        def before_step(self, action: torch.Tensor) -> None:
            super().before_step(action)
            self.env.observers.append(added)

        def after_step(self) -> None:
            super().after_step()
            self.env.observers.remove(added)

    env.observers = [Adds("first", env, notes)]
    for _ in range(2):
        env.step(torch.zeros(2, 1))
    seen = [f"{name} {when}" for name, when, _ in notes]
    assert seen == ["first before", "added before", "added after", "first after"] * 2
