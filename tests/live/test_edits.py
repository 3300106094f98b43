"""Edits of an environment in its state."""

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.live import SetValue, apply_edit, edit_log, fork_env
from manyworlds.live.edits import edits_in
from manyworlds.tasks import load_env_cfg

PATH = "rewards.smooth_reward.weight"
EDIT = SetValue(path=PATH, value=3.0)


def make_env() -> ManagerBasedRlEnv:
    """Return two worlds of the cartpole, after a control step."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.step(torch.zeros(2, 1))
    return env


def weight_of(env: ManagerBasedRlEnv) -> float:
    """Return the weight that the edit sets."""
    return env.reward_manager.get_term_cfg("smooth_reward").weight


@pytest.fixture(scope="module")
def edited() -> ManagerBasedRlEnv:
    """Return an environment after an edit."""
    env = make_env()
    apply_edit(env, EDIT)
    return env


@pytest.mark.parametrize("form", ["now", "list"])
def test_a_state_restores_its_edits(edited, form):
    """Load a state into a new environment, as it is saved now and as checkpoints had it before."""
    state = edited.state_dict()
    assert edits_in(state) == [EDIT.plain()]
    if form == "list":
        state["edits"] = edits_in(state)
    env = make_env()
    assert weight_of(env) != 3.0
    log = edit_log(env)
    env.load_state_dict(state)
    assert weight_of(env) == 3.0
    assert log.applied == [EDIT.plain()]


def test_a_fork_has_the_edits(edited):
    """Fork a world of an edited environment: the fork has its edits."""
    alone = fork_env(edited, 1)
    assert weight_of(alone) == 3.0
    assert edit_log(alone).applied == [EDIT.plain()]


def test_a_state_without_edits_has_no_log():
    """Attach a log: the state contains it only after an edit, and loads anywhere before."""
    env = make_env()
    edit_log(env)
    assert "edits" not in env.state_dict()
    make_env().load_state_dict(env.state_dict())


def test_edits_are_not_lost_in_silence(edited):
    """Load a state with edits where nothing restores them: the error names the remedy."""
    with pytest.raises(ValueError, match=r"has \['edits'\], which no part .*edit_log"):
        make_env().load_state_dict(edited.state_dict())


def test_the_edits_of_an_environment_must_begin_those_of_a_state(edited):
    """Load a state with other edits than those of the environment: it is refused."""
    env = make_env()
    apply_edit(env, SetValue(path=PATH, value=4.0))
    with pytest.raises(ValueError, match="has 1 edits, which are not the first ones"):
        env.load_state_dict(edited.state_dict())


@pytest.mark.parametrize("name", ["sim", "scene", "edits"])
def test_names_of_attached_states_are_unique(edited, name):
    """Attach a state under a name that the environment's state has: it is refused."""
    with pytest.raises(ValueError, match=f"has '{name}': choose another name"):
        edited.attach_state(name, edit_log(edited))
