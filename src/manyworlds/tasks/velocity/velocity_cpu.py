"""Settings of the velocity tasks that learn quickly on a few CPU cores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import (
    event_curriculum,
    is_terminated,
    reward_curriculum,
    termination_curriculum,
)
from manyworlds.managers import CurriculumTermCfg, RewardTermCfg, TerminationTermCfg
from manyworlds.rl.config import SYMMETRIC_MLP, RslRlOnPolicyRunnerCfg
from manyworlds.sensor import TerrainHeightSensorCfg
from manyworlds.tasks.cpu_physics import use_cheap_physics
from manyworlds.tasks.ramps import Points, ramp, scaled
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.mdp import VelocityStage
from manyworlds.tasks.velocity.velocity_env_cfg import generator_of, hold_terrain_level

_Weights = dict[str, tuple[tuple[int, float | None], ...]]
"""Control steps, and the weights of a reward from then on; None is the task's own."""

# With the task's own weights, a policy first learns to stand still, because noise then costs least,
# and does not leave this optimum for a long time. The last cost of the action rate on a plane is
# higher than the task's, so that policies are as calm as after a longer training.
_WEIGHTS: _Weights = {
    "track_linear_velocity": ((0, 4.0),),
    "track_angular_velocity": ((0, 3.0), (1500, 2.5), (3000, None)),
    "air_time": ((0, 1.0), (1500, 0.5), (3000, None)),
    "action_rate_l2": ((0, -0.01), (1500, -0.05), (3000, -0.2)),
    # With a short horizon, a fall costs little: the rewards of about a second. A penalty from the
    # start teaches some policies to stand still.
    "is_terminated": ((0, 0.0), (1500, -100.0), (3000, -200.0)),
}
_ROUGH_WEIGHTS: _Weights = {
    **_WEIGHTS,
    "track_angular_velocity": ((0, 3.0), (3600, 4.0)),  # turning is learned last
    "action_rate_l2": (*_WEIGHTS["action_rate_l2"], (9000, None)),
}
_HIGHEST_LEVEL: Points = ((0, 0.0), (10000, 6.0))
"""Highest level of the terrain, by control step."""
_LEVELS_BELOW = 4  # levels below the current one that are also drawn
_SHARES = {
    "flat": 0.3,
    "random_rough": 0.6,
    "wave_terrain": 0.7,
    "hf_pyramid_slope": 1.2,
    "pyramid_stairs": 1.4,
    "pyramid_stairs_inv": 2.0,
}
"""Relative frequencies of kinds of terrain, late in the training; others have 1. The kinds on which
robots fall are more frequent."""
_SHARES_STEP = 12000
# With little noise, policies stop learning while levels grow, and fall more often afterwards.
_ROUGH_ENTROPY = ((700, 0.004),)
# Iterations of the solver. Flat feet and collisions between legs need more of them.
_SOLVER_ITERATIONS = 5
_BIPED_SOLVER_ITERATIONS = 10
# Most falls follow a change of the command; the task's commands last 3 to 8 s.
_COMMAND_S = (2.0, 6.0)
# A biped that leans forward falls before it has learned to step, so that standing still is an
# optimum that it does not leave. At first, standing therefore ends episodes as a fall does,
# commands are straight ahead, pushes are small, and one foot on the ground is rewarded; without
# that, some seeds of a symmetric policy hop. Points are control steps and values, which change
# linearly between them.
_BIPED_WEIGHTS: dict[str, Points] = {
    "track_linear_velocity": ((9000, 3.0), (13000, 6.0)),
    "command_progress": ((9000, 3.0), (13000, 0.0)),
    "single_stance": ((8000, 2.0), (12000, 0.0)),
    "action_rate_l2": ((4000, -0.01), (14000, -0.1)),
    "is_terminated": ((8000, 0.0), (12000, -100.0)),
}
_BIPED_PUSHES: Points = ((4000, 0.2), (12000, 1.0))
"""Factors of the task's pushes."""
_BIPED_STALL: Points = ((9000, 0.15), (12000, -1.5))
"""Limits of `stalled`, at last never."""
_BIPED_COMMANDS: tuple[VelocityStage, ...] = (
    {"step": 0, "lin_vel_x": (0.3, 0.8), "lin_vel_y": (-0.1, 0.1), "ang_vel_z": (-0.3, 0.3)},
    {"step": 5000, "lin_vel_x": (0.0, 1.0), "lin_vel_y": (-0.3, 0.3), "ang_vel_z": (-0.5, 0.5)},
    {"step": 8000, "lin_vel_x": (-0.5, 1.0), "lin_vel_y": (-0.6, 0.6)},
)
_ALL_COMMANDS_STEP = 10000


def use_cpu_preset(
    env_cfg: ManagerBasedRlEnvCfg,
    rl_cfg: RslRlOnPolicyRunnerCfg,
    noisy_iterations: int = 350,
    hips: str | None = None,
    rough_iterations: int = 1700,
    posture: float | None = 2.0,
) -> None:
    """Simplify physics, and learn from few samples with small symmetric networks.

    Observations, actions, ranges of commands and terminations do not change; commands change more
    often, and on a plane the height of feet is that of one ray. Weights of rewards change during
    the training. Policies are evaluated in the task itself.

    Args:
        env_cfg: the environment; it is modified.
        rl_cfg: the learner; it is modified.
        noisy_iterations: iterations with a large entropy coefficient on a plane.
        hips: pattern of geoms that do not touch rough terrain while learning, because others do so
            before them; None for none.
        rough_iterations: iterations of a training on rough terrain.
        posture: weight of `pose` at first on a plane, against crouched gaits; None for the task's.
    """
    use_cheap_physics(env_cfg, _SOLVER_ITERATIONS)
    rough = _raise_levels(env_cfg)
    ignored = None
    all_weights = _WEIGHTS
    if rough:
        ignored = hips
        all_weights = _ROUGH_WEIGHTS
    _simplify_contacts(env_cfg, self_collisions=False, ignored=ignored)
    env_cfg.rewards["is_terminated"] = RewardTermCfg(func=is_terminated, weight=0.0)
    _make_small(env_cfg, rl_cfg)
    for name, stages in all_weights.items():
        _stage(env_cfg, name, stages)
    if posture is not None and not rough:
        _stage(env_cfg, "pose", ((0, posture), (3000, None)))
    env_cfg.commands["twist"].resampling_time_range = _COMMAND_S
    rl_cfg.num_steps_per_env = 12
    rl_cfg.max_iterations = 750
    # A short horizon reduces the variance of advantages, which few samples require; they also
    # require a policy that changes faster.
    rl_cfg.algorithm.gamma = 0.97
    rl_cfg.algorithm.desired_kl = 0.015
    # Noise finds the gait; afterwards its bonus would only delay turning and a steady gait.
    rl_cfg.algorithm.entropy_coef = 0.012
    rl_cfg.algorithm.entropy_stages = ((noisy_iterations, 0.002),)
    # After 600 iterations, the average falls in fewer episodes than the last policy does.
    rl_cfg.algorithm.averaged_iterations = 50
    if rough:
        rl_cfg.max_iterations = rough_iterations
        rl_cfg.algorithm.averaged_iterations = 100
        rl_cfg.algorithm.entropy_stages = _ROUGH_ENTROPY


def use_biped_cpu_preset(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Change a velocity task of a biped, which learns to step before it learns to follow commands.

    Compared to `use_cpu_preset`, training takes longer, with less noise, because noise alone makes
    the robot fall. Collisions between the legs are kept: without them, policies pass one leg
    through the other. Pushes, and the range of commands, grow to those of the task; until then,
    standing still ends episodes.

    Args:
        env_cfg: the environment; it is modified.
        rl_cfg: the learner; it is modified.
    """
    use_cheap_physics(env_cfg, _BIPED_SOLVER_ITERATIONS)
    _simplify_contacts(env_cfg, self_collisions=True)
    env_cfg.rewards["is_terminated"] = RewardTermCfg(func=is_terminated, weight=0.0)
    env_cfg.rewards["command_progress"] = RewardTermCfg(
        func=mdp.command_progress, weight=0.0, params={"command_name": "twist"}
    )
    env_cfg.rewards["single_stance"] = RewardTermCfg(
        func=mdp.feet_single_stance,
        weight=0.0,
        params={"sensor_name": "feet_ground_contact", "command_name": "twist"},
    )
    _make_small(env_cfg, rl_cfg)
    for name, points in _BIPED_WEIGHTS.items():
        _stage(env_cfg, name, ramp(points))
    _begin_easily(env_cfg)
    # With many joints, the bound on the change of action probabilities allows a small step per
    # update, however many samples it has: make many updates of few samples.
    rl_cfg.num_steps_per_env = 6
    rl_cfg.max_iterations = 6000
    algorithm = rl_cfg.algorithm
    algorithm.num_learning_epochs = 4
    algorithm.gamma = 0.99
    algorithm.entropy_coef = 0.002
    # The adaptive rate swings over more than an order of magnitude from update to update.
    algorithm.schedule = "fixed"
    algorithm.learning_rate = 4e-4
    algorithm.critic_learning_rate = 1e-3
    # A policy that walks needs no bonus for its noise; with less noise, the same change of its
    # parameters changes the probabilities of its actions more.
    algorithm.entropy_stages = ((1200, 0.0003),)
    # With 1e-4 to the end, policies become worse again, with less and less noise.
    stages = (2200, 2.5e-4), (2800, 1.5e-4), (3600, 1e-4), (5000, 5e-5)
    algorithm.learning_rate_stages = stages
    algorithm.averaged_iterations = 300  # from one checkpoint to the next, results differ much
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.3


def _raise_levels(cfg: ManagerBasedRlEnvCfg) -> bool:
    """Draw levels of the terrain that grow with time, instead of the curriculum; see `_SHARES`.

    The curriculum moves robots that fall to lower levels, where most of a short training stays.

    Returns:
        False if the terrain has no levels, or the task no curriculum of them.
    """
    generator = generator_of(cfg)
    if cfg.curriculum.get("terrain_levels") is None or generator is None:
        return False
    hold_terrain_level(cfg, 0)
    cfg.events["randomize_terrain"].params["shares"] = None
    stages: list[dict[str, Any]] = []
    for step, level in ramp(_HIGHEST_LEVEL):
        highest = min(round(level), generator.num_rows - 1)
        levels = max(0, highest - _LEVELS_BELOW), highest
        stages.append({"step": step, "params": {"levels": levels}})
    shares = {kind: share for kind, share in _SHARES.items() if kind in generator.sub_terrains}
    stages.append({"step": _SHARES_STEP, "params": {"shares": shares}})
    cfg.curriculum["terrain_levels"] = CurriculumTermCfg(
        func=event_curriculum, params={"event_name": "randomize_terrain", "stages": stages}
    )
    return True


def _begin_easily(cfg: ManagerBasedRlEnvCfg) -> None:
    """Begin with commands straight ahead and small pushes; end episodes of robots that stand."""
    twist = cfg.commands["twist"]
    assert isinstance(twist, mdp.UniformVelocityCommandCfg)
    commands = cfg.curriculum["command_vel"]
    first, *later = commands.params["velocity_stages"]
    whole = {"lin_vel_y": twist.ranges.lin_vel_y, "rel_standing_envs": twist.rel_standing_envs}
    every = {**whole, **first, "step": _ALL_COMMANDS_STEP}
    twist.rel_standing_envs = 0.0
    commands.params["velocity_stages"] = [*_BIPED_COMMANDS, every, *later]
    limits = [{"step": step, "params": {"limit": limit}} for step, limit in ramp(_BIPED_STALL)]
    cfg.terminations["stalled"] = TerminationTermCfg(
        func=mdp.stalled, params={"limit": _BIPED_STALL[0][1], "command_name": "twist"}
    )
    cfg.curriculum["stalled_limit"] = CurriculumTermCfg(
        func=termination_curriculum, params={"termination_name": "stalled", "stages": limits}
    )
    push = cfg.events.get("push_robot")
    if push is None:
        return
    strength = push.params["velocity_range"]
    pushes = [
        {"step": step, "params": {"velocity_range": scaled(strength, factor)}}
        for step, factor in ramp(_BIPED_PUSHES)
    ]
    cfg.curriculum["push_strength"] = CurriculumTermCfg(
        func=event_curriculum, params={"event_name": "push_robot", "stages": pushes}
    )


def _make_small(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Take few worlds and small networks."""
    terrain = env_cfg.scene.terrain
    if terrain is not None and terrain.terrain_type == "plane":
        # One ray per foot measures its height.
        for sensor in env_cfg.scene.sensors:
            if isinstance(sensor, TerrainHeightSensorCfg):
                pattern: Any = sensor.pattern
                pattern.include_center = False
                pattern.rings[0].num_samples = 1
    # Small batches: more updates per sample are worth more than the time that they take.
    env_cfg.scene.num_envs = 512
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    # With a critic that is also symmetric, policies learn later.
    rl_cfg.actor.class_name = SYMMETRIC_MLP
    # Few samples require a value function that changes fast.
    rl_cfg.algorithm.use_clipped_value_loss = False


def _simplify_contacts(
    cfg: ManagerBasedRlEnvCfg, self_collisions: bool, ignored: str | None = None
) -> None:
    """Limit friction to three dimensions, and optionally the robot's contacts to the ground.

    Geoms whose names match `ignored` have no contacts.
    """
    for collision in cfg.scene.entities["robot"].collisions:
        collision.condim = _at_most_three(collision.condim)
        if not self_collisions:
            collision.contype = 0
            collision.conaffinity = 1
            if ignored is not None:
                collision.conaffinity = {ignored: 0, ".*": 1}


def _at_most_three(condim: Any) -> Any:
    if isinstance(condim, dict):
        return {name: min(value, 3) for name, value in condim.items()}
    if condim is None:
        return None
    return min(condim, 3)


def _stage(
    cfg: ManagerBasedRlEnvCfg, name: str, stages: Iterable[tuple[int, float | None]]
) -> None:
    """Change a reward's weight in stages; see `_Weights`."""
    term = cfg.rewards.get(name)
    if term is None:  # a task of one's own may leave it out
        return
    values = []
    for step, weight in stages:
        if weight is None:
            weight = term.weight
        values.append({"step": step, "weight": weight})
    term.weight = values[0]["weight"]
    cfg.curriculum[f"{name}_weight"] = CurriculumTermCfg(
        func=reward_curriculum, params={"reward_name": name, "stages": values}
    )
