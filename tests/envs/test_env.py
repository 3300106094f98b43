"""The environment: order of a step, resets, seeds and saved state."""

import random
import warnings
from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    CurriculumTermCfg,
    EventTermCfg,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RecorderTerm,
    RecorderTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.validation.host_reads import gpu_paths
from manyworlds.validation.worlds import takes_worlds
from tests.host_reads import host_reads


@dataclass(kw_only=True)
class HookCommandCfg(CommandTermCfg):
    """Tells when it is called."""

    calls: list

    def __deepcopy__(self, memo):
        return self

    def build(self, env):
        return HookCommand(self, env)


class HookCommand(CommandTerm):
    """Tells when it is called."""

    command = torch.zeros(4, 1)

    def _resample_command(self, env_ids):
        self.cfg.calls.append("resample")

    def _update_command(self, env_ids):
        ids = None if env_ids is None else env_ids.tolist()
        self.cfg.calls.append(f"update {ids}")

    def _update_metrics(self):
        pass


def state_rows(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Copy the whole state of each world, laid out as by `mj_getState`."""
    return env.sim._engine.state_rows().clone()


def random_actions(steps: int, num_envs: int = 4) -> torch.Tensor:
    """Return actions from a generator of their own."""
    generator = torch.Generator().manual_seed(3)
    return 2.0 * torch.rand(steps, num_envs, 1, generator=generator) - 1.0


def cart_position(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Read where the cart's body is along its rail."""
    robot = env.scene["cartpole"]
    ids, _ = robot.find_bodies("cart")
    return (robot.data.body_link_pos_w[:, ids[0]] - robot.data.root_link_pos_w)[:, 0]


def test_shapes_and_spaces_agree(env):
    """Return what the spaces promise."""
    obs, reward, terminated, truncated, extras = env.step(torch.zeros(4, 1))
    assert env.observation_space["actor"].shape == obs["actor"].shape == (4, 5)
    assert env.action_space.shape == (4, 1)
    assert reward.shape == terminated.shape == truncated.shape == (4,)
    assert terminated.dtype == truncated.dtype == torch.bool
    assert env.step_dt == pytest.approx(0.05) and env.max_episode_length == 200
    assert set(extras) == {"log"}


def trace_calls(env: ManagerBasedRlEnv, calls: list[str], monkeypatch) -> None:
    """Note when the step goes to the simulation and to actions."""
    for owner, method in (
        (env.action_manager, "process_action"),
        (env.action_manager, "apply_action"),
        (env.scene, "write_data_to_sim"),
        (env.sim, "step"),
        (env.sim, "forward"),
    ):
        original = getattr(owner, method)

        def traced(*args, _original=original, _method=method, **kwargs):
            calls.append(_method)
            return _original(*args, **kwargs)

        monkeypatch.setattr(owner, method, traced)


def hook_everything(env_cfg, calls: list[str]) -> None:
    """Let every kind of term note when it is called."""

    def hook(name: str, value=None):
        def call(env, *args):
            calls.append(name)
            return value(env) if value else None

        return call

    def column(env) -> torch.Tensor:
        return torch.zeros(env.num_envs, 1)

    env_cfg.observations = {
        "actor": ObservationGroupCfg(
            terms={"o": ObservationTermCfg(func=hook("observation", column))}
        )
    }
    env_cfg.rewards = {
        "r": RewardTermCfg(func=hook("reward", lambda e: torch.zeros(4)), weight=1.0)
    }
    env_cfg.terminations = {
        "t": TerminationTermCfg(func=hook("termination", lambda e: e.episode_length_buf >= 2))
    }
    env_cfg.events = {
        "reset": EventTermCfg(func=hook("reset"), mode="reset"),
        "step": EventTermCfg(func=hook("step"), mode="step"),
        "interval": EventTermCfg(
            func=hook("interval"), mode="interval", interval_range_s=(0.0, 0.0)
        ),
        "startup": EventTermCfg(func=hook("startup"), mode="startup"),
    }
    env_cfg.metrics = {"m": MetricsTermCfg(func=hook("metric", lambda e: torch.zeros(4)))}
    env_cfg.curriculum = {"c": CurriculumTermCfg(func=hook("curriculum"))}
    recorders = {
        name: lambda self, *args, _name=name: calls.append(_name)
        for name in ("record_pre_reset", "record_post_reset", "record_post_step", "close")
    }
    env_cfg.recorders = {"r": RecorderTermCfg(func=type("Recorder", (RecorderTerm,), recorders))}
    env_cfg.commands = {"c": HookCommandCfg(resampling_time_range=(9.0, 9.0), calls=calls)}


def test_hooks_run_in_the_documented_order(env_cfg, monkeypatch):
    """Pin the order of a step: physics, terms, events, final observation, reset, observation."""
    calls: list[str] = []
    hook_everything(env_cfg, calls)
    env = ManagerBasedRlEnv(env_cfg)
    begin = ["curriculum", "reset", "resample"]
    update = ["update [0, 1, 2, 3]", "observation", "record_post_reset"]
    assert calls[-7:] == ["startup", *begin, *update]
    assert "record_pre_reset" not in calls
    trace_calls(env, calls, monkeypatch)
    physics = ["process_action", "apply_action", "write_data_to_sim", "step"]
    after = ["termination", "reward", "metric", "step", "interval", "forward"]
    calls.clear()
    env.step(torch.zeros(4, 1))
    assert calls == [*physics, *after, "update None", "observation", "record_post_step"]
    calls.clear()
    env.step(torch.zeros(4, 1))
    final = ["update None", "observation", "record_pre_reset"]
    reset = [*begin, "write_data_to_sim", "forward", "update [0, 1, 2, 3]", "observation"]
    assert calls == [
        *(*physics, *after, *final, *reset),
        *("record_post_reset", "record_post_step"),
    ]
    calls.clear()
    env.reset(env_ids=[2])  # has not stepped since
    reset = [*begin, "write_data_to_sim", "forward"]
    assert calls == [*reset, "update [2]", "observation", "record_post_reset"]
    env.step(torch.zeros(4, 1))
    calls.clear()
    env.reset(env_ids=[2])
    assert calls[:2] == ["record_pre_reset", "curriculum"]
    calls.clear()
    env.close()
    assert calls == ["close"]


def test_terms_are_first_called_after_startup_and_reset(env_cfg):
    """Call no reward, termination or metric while the environment is built."""
    calls: list[str] = []
    hook_everything(env_cfg, calls)
    env = ManagerBasedRlEnv(env_cfg)
    assert not {"reward", "termination", "metric"} & {*calls}
    env.step(torch.zeros(4, 1))
    assert [calls.count(name) for name in ("reward", "termination", "metric")] == [1, 1, 1]


def test_a_control_step_is_one_call_or_one_a_substep(env_cfg, monkeypatch):
    """Call the engine once, unless a term needs Python between substeps; move alike both ways."""
    actions = random_actions(20)
    states, calls = [], []
    for needs_substeps in (False, True):
        monkeypatch.setattr(mdp.JointEffortAction, "needs_substeps", needs_substeps)
        env = ManagerBasedRlEnv(env_cfg)
        step, count = env.sim.step, []

        def counted(*args, _step=step, _count=count, **kwargs):
            _count.append(1)
            _step(*args, **kwargs)

        monkeypatch.setattr(env.sim, "step", counted)
        for action in actions:
            env.step(action)
        states.append(state_rows(env))
        calls.append(len(count))
    assert calls == [20, 20 * env_cfg.decimation]
    assert torch.equal(states[0], states[1])


def test_rewards_and_observations_see_the_new_state(env):
    """Refresh kinematics at the end of a step: poses fit the joint positions."""
    for action in random_actions(10):
        obs = env.step(action)[0]["actor"]
    cart = env.scene["cartpole"].data
    assert torch.allclose(cart_position(env), cart.joint_pos[:, 0], atol=1e-6)
    assert torch.equal(obs[:, 0], cart.joint_pos[:, 0])
    assert torch.allclose(obs[:, 1], cart.joint_pos[:, 1].cos())


def test_physics_is_that_of_plain_mujoco(env, engine):
    """Follow mj_step under a sequence of actions: on native bit for bit, on Warp in float32."""
    model = env.sim.mj_model
    rows = state_rows(env).double().numpy()
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    actions = random_actions(30)
    for action in actions:
        env.step(action)
    final = state_rows(env).numpy()
    for world in range(env.num_envs):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, rows[world], spec)
        for action in actions:
            data.ctrl[:] = (action[world] * 10.0).numpy()
            mujoco.mj_step(model, data, env.cfg.decimation)
        expected = np.empty_like(rows[world])
        mujoco.mj_getState(model, data, expected, spec)
        if engine == "native":
            assert np.array_equal(final[world], expected)
        else:
            np.testing.assert_allclose(final[world], expected, rtol=1e-5, atol=1e-4)


def test_finished_worlds_begin_anew(env):
    """Reset only worlds whose time ran out, and report them as truncated."""
    env.episode_length_buf[:] = torch.tensor([0, 199, 0, 199])
    _, _, terminated, truncated, extras = env.step(torch.ones(4, 1))
    assert truncated.tolist() == [False, True, False, True]
    assert not terminated.any()
    assert env.episode_length_buf.tolist() == [1, 0, 1, 0]
    assert int(extras["log"]["Episode_Termination/time_out"]) == 2
    assert "Episode_Reward/smooth_reward" in extras["log"]
    velocity = env.scene["cartpole"].data.joint_vel[:, 0].abs()
    assert (velocity[[1, 3]] <= 0.01).all() and (velocity[[0, 2]] > 0.1).all()
    # The reset worlds' kinematics are current, too.
    data = env.scene["cartpole"].data
    assert torch.allclose(cart_position(env), data.joint_pos[:, 0], atol=1e-6)


def test_final_observations_are_those_before_the_reset(env_cfg):
    """Keep what a finished world's policy would have seen: as without auto_reset, bit for bit."""
    env_cfg.events.pop("reset_cart"), env_cfg.events.pop("reset_hinge")  # no draws
    env = ManagerBasedRlEnv(env_cfg)
    env_cfg.auto_reset = False
    manual = ManagerBasedRlEnv(env_cfg)
    lengths = torch.tensor([0, 195, 0, 195])
    env.episode_length_buf[:], manual.episode_length_buf[:] = lengths, lengths
    for action in random_actions(5):
        assert "final_obs" not in env.extras
        obs, *_, extras = env.step(action)
        expected = manual.step(action)[0]["actor"]
    final = extras["final_obs"]["actor"]
    assert torch.equal(final[[1, 3]], expected[[1, 3]])
    assert not torch.allclose(obs["actor"][[1, 3]], expected[[1, 3]], atol=1e-2)
    assert torch.equal(obs["actor"][[0, 2]], expected[[0, 2]])
    assert "final_obs" not in env.step(torch.zeros(4, 1))[-1]


def test_final_observations_move_no_history_but_have_their_own(env_cfg):
    """Give the last states of the old episode, then only the first of the new; others go on."""
    env_cfg.events.pop("reset_cart"), env_cfg.events.pop("reset_hinge")  # no draws
    env_cfg.observations["actor"].history_length = 3
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[1] = 195
    seen = [env.step(action)[0]["actor"] for action in random_actions(4)]
    obs, *_, extras = env.step(torch.ones(4, 1))
    carts = [rows[:, 2] for rows in (*seen[-2:], obs["actor"])]  # newest cart position
    carts[-1] = torch.where(torch.arange(4) == 1, extras["final_obs"]["actor"][:, 2], carts[-1])
    assert torch.equal(extras["final_obs"]["actor"][1, :3], torch.stack(carts, 1)[1])
    assert torch.equal(obs["actor"][[0, 2, 3], :3], torch.stack(carts, 1)[[0, 2, 3]])
    assert len(obs["actor"][1, :3].unique()) == 1


@pytest.mark.parametrize("per_term", [True, False])
@pytest.mark.parametrize("policy", ["error", "warn"])
def test_final_observations_of_a_diverged_world_are_zero_and_raise_nothing(
    env_cfg, policy, per_term
):
    """End the episode of a diverged world in peace; raise for one whose episode goes on."""
    group = env_cfg.observations["actor"]
    group.nan_policy, group.nan_check_per_term = policy, per_term
    env_cfg.terminations["diverged"] = TerminationTermCfg(func=mdp.bad_world)
    env = ManagerBasedRlEnv(env_cfg)
    env.sim.data.qvel[1] = torch.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        obs, _, terminated, _, extras = env.step(torch.zeros(4, 1))
    assert terminated.tolist() == [False, True, False, False]
    assert obs["actor"].isfinite().all() and extras["final_obs"]["actor"].isfinite().all()
    env_cfg.terminations = {}
    env = ManagerBasedRlEnv(env_cfg)
    env.sim.data.qvel[1] = torch.nan
    expected = pytest.raises(ValueError) if policy == "error" else pytest.warns(UserWarning)
    with expected as caught:
        env.step(torch.zeros(4, 1))
    messages = [caught.value] if policy == "error" else [item.message for item in caught]
    assert any("is not finite in worlds [1]" in str(message) for message in messages)


def test_final_observations_see_events_of_the_last_step(env_cfg):
    """Compute kinematics after events and before the reset."""

    def move(env, env_ids) -> None:
        env.scene["cartpole"].write_joint_position_to_sim(torch.full((4, 1), 1.0), [0])

    def cart(env) -> torch.Tensor:
        return cart_position(env)[:, None]

    env_cfg.events = {**env_cfg.events, "move": EventTermCfg(func=move, mode="step")}
    env_cfg.observations["actor"].terms["cart_pos"] = ObservationTermCfg(func=cart)
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[2] = 199
    obs, *_, extras = env.step(torch.zeros(4, 1))
    assert torch.allclose(extras["final_obs"]["actor"][:, 0], torch.ones(4))
    assert obs["actor"][2, 0].abs() < 0.2


def test_pictures_come_from_an_injected_renderer(env_cfg):
    """Draw nothing without a mode, and return what the renderer draws that was set."""
    assert ManagerBasedRlEnv(env_cfg).render() is None
    with pytest.raises(ValueError, match="render_mode must be None or 'rgb_array', got 'ascii'"):
        ManagerBasedRlEnv(env_cfg, render_mode="ascii")
    env = ManagerBasedRlEnv(env_cfg, render_mode="rgb_array")
    env.renderer = lambda: np.zeros((2, 2, 3), np.uint8)
    assert env.render().shape == (2, 2, 3)


def test_visualizers_reach_sensors_and_commands(env_cfg):
    """Let everything with a `debug_vis` draw, commands only where their config asks."""
    drawn = []
    env_cfg.commands = {"c": HookCommandCfg(resampling_time_range=(9.0, 9.0), calls=[])}
    env = ManagerBasedRlEnv(env_cfg)
    command = env.command_manager.get_term("c")
    command._debug_vis_impl = drawn.append
    env.update_visualizers("pen")
    assert drawn == []
    command.cfg.debug_vis = True
    env.update_visualizers("pen")
    assert drawn == ["pen"]


def test_a_diverged_world_ends_its_episode(env):
    """Terminate and reset a world whose state is not finite; leave the others alone."""
    env.sim.data.qvel[2, 1] = torch.inf
    _, reward, terminated, _, _ = env.step(torch.zeros(4, 1))
    assert terminated.tolist() == [False, False, True, False]
    assert torch.isfinite(reward).all()
    assert torch.isfinite(env.get_observations()["actor"]).all()


def test_partial_reset_leaves_other_worlds_alone(env):
    """Begin new episodes only in the worlds named."""
    for action in random_actions(5):
        env.step(action)
    before = state_rows(env)
    env.reset(env_ids=[1])
    after = state_rows(env)
    assert torch.equal(before[[0, 2, 3]], after[[0, 2, 3]])
    assert not torch.equal(before[1], after[1])
    assert env.episode_length_buf.tolist() == [5, 0, 5, 5]
    with pytest.raises(ValueError, match="World id 4 is out of range"):
        env.reset(env_ids=[4])


def test_without_auto_reset_finished_worlds_must_be_reset(env_cfg):
    """Return terminal observations, and refuse to go on until the world is reset."""
    env_cfg.auto_reset = False
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[2] = 199
    obs, _, _, truncated, _ = env.step(torch.ones(4, 1))
    assert truncated.tolist() == [False, False, True, False]
    assert obs["actor"][2, 3].abs() > 0.1
    with pytest.raises(RuntimeError, match=r"\[2\] must be reset via reset\(env_ids=\.\.\.\)"):
        env.step(torch.zeros(4, 1))
    env.reset(env_ids=torch.tensor([2]))
    env.step(torch.zeros(4, 1))


class MaskedCommand(HookCommand):
    """Takes any form of worlds, also masks."""

    @takes_worlds
    def _resample_command(self, env_ids):
        self.cfg.calls.append(env_ids.num_rows)

    @takes_worlds
    def _update_command(self, env_ids=None):
        pass


@pytest.mark.parametrize("auto_reset", [True, False])
def test_the_host_reads_from_the_device_once_a_step(env_cfg, monkeypatch, auto_reset):
    """Wait for a GPU in one place, whether events and commands are due or not."""
    monkeypatch.setattr(HookCommandCfg, "build", lambda self, env: MaskedCommand(self, env))
    env_cfg.auto_reset = auto_reset
    env_cfg.commands = {"c": HookCommandCfg(resampling_time_range=(0.0, 0.3), calls=[])}
    pushes = {
        f"push_{i}": EventTermCfg(
            func=mdp.reset_joints_by_offset,
            mode="interval",
            interval_range_s=(0.05, 0.2),
            params={
                "position_range": (0.0, 0.1),
                "velocity_range": (0.0, 0.1),
                "asset_cfg": SceneEntityCfg("cartpole"),
            },
        )
        for i in range(2)
    }
    env_cfg.events = {**env_cfg.events, **pushes}
    env = ManagerBasedRlEnv(env_cfg)
    env.step(torch.zeros(4, 1))
    for action in random_actions(12):
        with gpu_paths(), host_reads(monkeypatch) as places:
            env.step(action)
        assert places == ["envs/manager_based_rl_env.py:_tell"]


def test_a_reset_reads_nothing_more(env_cfg, monkeypatch):
    """Reset finished worlds from what the one read of the step told."""
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[1:3] = 199
    with gpu_paths(), host_reads(monkeypatch) as places:
        *_, truncated, _ = env.step(torch.zeros(4, 1))
    assert truncated.sum() == 2
    assert places == ["envs/manager_based_rl_env.py:_tell"]


def test_the_same_seed_gives_the_same_result_on_any_number_of_threads(env_cfg):
    """Repeat a run bit for bit with one and two threads, and differ with another seed."""
    results = []
    for seed, threads in ((7, 1), (7, 2), (8, 1)):
        env_cfg.seed, env_cfg.sim.num_threads = seed, threads
        env = ManagerBasedRlEnv(env_cfg)
        env.episode_length_buf[:] = torch.tensor([190, 0, 195, 0])
        for action in random_actions(20):
            obs = env.step(action)[0]["actor"]
        results.append((state_rows(env), obs))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert not torch.equal(results[0][0], results[2][0])


def test_a_saved_environment_goes_on_bit_for_bit(env_cfg):
    """Continue in a fresh environment as if nothing had happened, resets included."""
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[:] = torch.tensor([170, 0, 180, 0])
    actions = random_actions(40)
    for action in actions[:15]:
        env.step(action)
    saved = env.state_dict()
    expected = [env.step(action) for action in actions[15:]]
    env_cfg.seed = 99
    fresh = ManagerBasedRlEnv(env_cfg)
    fresh.load_state_dict(saved)
    for action, (obs, reward, _, truncated, extras) in zip(actions[15:], expected, strict=True):
        new_obs, new_reward, _, new_truncated, new_extras = fresh.step(action)
        assert torch.equal(obs["actor"], new_obs["actor"])
        assert torch.equal(reward, new_reward) and torch.equal(truncated, new_truncated)
        assert repr(extras) == repr(new_extras)
    assert any(result[3].any() for result in expected)


def test_a_state_is_loaded_after_a_rollout(env_cfg):
    """Go back to a state that was saved before steps in inference mode, and go on outside of it."""
    env = ManagerBasedRlEnv(env_cfg)
    actions = random_actions(10)
    saved = env.state_dict()
    with torch.inference_mode():
        expected = [env.step(action)[0]["actor"] for action in actions]
    env.load_state_dict(saved)
    for action, obs in zip(actions, expected, strict=True):
        assert torch.equal(env.step(action)[0]["actor"], obs)


def test_mistakes_are_named(env_cfg):
    """Refuse no worlds and no physics steps."""
    env_cfg.scene.num_envs = 0
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        ManagerBasedRlEnv(env_cfg)
    env_cfg.scene.num_envs, env_cfg.decimation = 1, 0
    with pytest.raises(ValueError, match="decimation must be at least 1, got 0"):
        ManagerBasedRlEnv(env_cfg)


def test_events_between_resets_show_in_derived_observations(env_cfg):
    """Recompute kinematics after a step event has moved joints."""

    def move(env, env_ids) -> None:
        env.scene["cartpole"].write_joint_position_to_sim(torch.full((4, 1), 1.0), [0])

    env_cfg.events["move"] = EventTermCfg(func=move, mode="step")
    env = ManagerBasedRlEnv(env_cfg)
    cart_position(env)  # bound before the step
    obs = env.step(torch.zeros(4, 1))[0]["actor"]
    assert (obs[:, 0] == 1.0).all()
    assert torch.allclose(cart_position(env), obs[:, 0])


def test_actions_may_carry_gradients_or_be_arrays(env):
    """Take a network's output, or anything that becomes a tensor."""
    env.step(torch.zeros(4, 1, requires_grad=True))
    env.step(np.zeros((4, 1)))
    assert env.action_manager.action.dtype == torch.float32


def test_random_draws_of_every_generator_repeat_after_loading(env):
    """Restore Python's and NumPy's generators beside torch's; leave held observations alone."""
    held = env.get_observations()["actor"]
    saved = env.state_dict()
    env.step(torch.ones(4, 1))
    now = env.get_observations()["actor"]
    kept = now.clone()
    env.load_state_dict(saved)
    drawn = (random.random(), np.random.rand(), torch.rand(1).item())
    env.load_state_dict(saved)
    assert drawn == (random.random(), np.random.rand(), torch.rand(1).item())
    assert torch.equal(now, kept) and torch.equal(env.get_observations()["actor"], held)


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("poison", ["qpos", "mass", "ctrl"])
def test_a_poisoned_world_is_reset_and_the_others_go_on_alike(env_cfg, poison):
    """Poison one world of 64: it ends, is counted, and goes on finite; 63 see no difference."""
    env_cfg.scene.num_envs, bad = 64, 9
    # Start states do not depend on how many worlds are reset, so that runs can be compared.
    env_cfg.events = {
        "reset": EventTermCfg(func=mdp.reset_scene_to_default, mode="reset"),
        "mass": EventTermCfg(func=_restore_mass, mode="reset"),
    }
    env, healthy = ManagerBasedRlEnv(env_cfg), ManagerBasedRlEnv(env_cfg)
    others = torch.arange(64) != bad
    logs = []
    for step, action in enumerate(random_actions(100, 64)):
        if step == 10 and poison == "qpos":
            env.sim.data.qpos[bad, 0] = torch.nan
        if step == 10 and poison == "mass":
            env.sim.model.body_mass[bad] = 3e38
        if step == 10 and poison == "ctrl":
            env.sim.data.qfrc_applied[bad] = torch.nan
        obs, reward, terminated, _, extras = env.step(action)
        expected = healthy.step(action)
        assert torch.equal(obs["actor"][others], expected[0]["actor"][others])
        assert torch.equal(reward[others], expected[1][others])
        assert torch.isfinite(obs["actor"]).all()
        assert terminated.nonzero().flatten().tolist() == ([bad] if step == 10 else [])
        logs.append({k: v for k, v in extras["log"].items() if k.startswith("Status/")})
    assert logs[10]["Status/nan"] == 1
    assert not any(logs[:10]) and not any(logs[11:])
    assert torch.equal(env.sim.data.qpos[others], healthy.sim.data.qpos[others])


def _restore_mass(env, env_ids) -> None:
    ids = slice(None) if env_ids is None else env_ids
    masses = torch.from_numpy(env.sim.mj_model.body_mass).float()
    if bool((env.sim.model.body_mass[ids] != masses).any()):
        env.sim.model.body_mass[ids] = masses


def test_an_event_in_one_world_changes_no_other(env_cfg, monkeypatch):
    """Compute kinematics again after an interval event, and leave the state of other worlds."""

    def push(env, env_ids):
        env.sim.data.qvel[env_ids] += 1.0

    env_cfg.events["push"] = EventTermCfg(func=push, mode="interval", interval_range_s=(9.0, 9.0))
    env, quiet = ManagerBasedRlEnv(env_cfg), ManagerBasedRlEnv(env_cfg)
    quiet.load_state_dict(env.state_dict())
    env.event_manager._time_left[0, [1, 3]] = 0.0
    forwarded = []
    forward = env.sim.forward
    monkeypatch.setattr(env.sim, "forward", lambda ids: (forwarded.append(ids), forward(ids)))
    action = torch.full((4, 1), 0.5)
    env.step(action)
    quiet.step(action)
    assert [worlds.host_ids.tolist() for worlds in forwarded] == [[1, 3]]
    one, other = (state_rows(e) for e in (env, quiet))
    assert (one != other).any(dim=1).tolist() == [False, True, False, True]


def test_more_worlds_than_memory_are_refused_before_the_scene_is_built(env_cfg, monkeypatch):
    """Ask for 10^11 worlds: the error names the memory, and a number that fits."""
    monkeypatch.setattr("manyworlds.envs.manager_based_rl_env.Scene", None)
    env_cfg.scene.num_envs = 10**11
    with pytest.raises(ValueError, match=r"worlds of an environment need more than .*at most \d+"):
        ManagerBasedRlEnv(env_cfg, device="cpu")
