"""Gains, limits, encoders and delays: the right actuator of every kind, and what it then does."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from manyworlds.actuator import (
    ActuatorCfg,
    BuiltinMotorActuatorCfg,
    BuiltinMuscleActuatorCfg,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuatorCfg,
    DelayedActuatorCfg,
    IdealPdActuatorCfg,
    LearnedMlpActuatorCfg,
    TransmissionType,
    XmlActuatorCfg,
)
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from tests.actuator.robots import JOINTS, efforts, legs_cfg, shake
from tests.actuator.test_parameters import ALL, FULL, GEAR
from tests.envs.mdp.dr.robot import plain_steps
from tests.envs.mdp.robot import is_uniform

SOME = torch.tensor([1, 3])
GAINS = {"kp_range": (0.5, 1.5), "kd_range": (2.0, 3.0)}
XML = "".join(
    f'<position name="{j}" joint="{j}" kp="20" kv="1" forcerange="-8 8" gear="2"/>' for j in JOINTS
)
KNEES = SceneEntityCfg("robot", actuator_names=(".*_knee.*",))


def make_env(
    *actuators: ActuatorCfg,
    num_envs: int = 4,
    xml: str = "",
    engine: str = "native",
    **events: EventTermCfg,
) -> ManagerBasedRlEnv:
    """Build an environment of the robot that tests of actuators use."""
    scene = SceneCfg(num_envs=num_envs, entities={"robot": legs_cfg(*actuators, xml=xml)})
    sim = SimulationCfg(engine=engine, mujoco=MujocoCfg(timestep=0.002))
    cfg = ManagerBasedRlEnvCfg(decimation=1, scene=scene, sim=sim, seed=3, events=dict(events))
    return ManagerBasedRlEnv(cfg, device="cpu")


def make_kind(kind: str, num_envs: int = 4, delayed: bool = False) -> ManagerBasedRlEnv:
    """Build an environment with actuators of one kind, maybe wrapped by a delay."""
    cfg = FULL[kind]
    if delayed:
        cfg = DelayedActuatorCfg(base_cfg=cfg, delay_min_lag=1, delay_max_lag=3)
    return make_env(cfg, num_envs=num_envs, xml=XML if kind == "xml" else "")


def params(env: ManagerBasedRlEnv) -> dict[str, torch.Tensor]:
    """Copy the parameters of the only actuator."""
    (actuator,) = env.scene["robot"].actuators
    return {n: actuator.get_param(n).clone() for n in ("stiffness", "damping", "force_limit")}


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("kind", FULL)
def test_gains_are_scaled_in_the_worlds_and_targets_named(kind, delayed):
    """Scale both gains of the joints asked for, and of no other joint or world (defect D1)."""
    env = make_kind(kind, delayed=delayed)
    dr.pd_gains(env, SOME, **GAINS, asset_cfg=KNEES)
    now = params(env)
    touched = torch.zeros(4, 4, dtype=torch.bool)
    touched[SOME[:, None], torch.tensor([JOINTS.index("a_knee"), JOINTS.index("b_knee")])] = True
    for name, built, (low, high) in (("stiffness", 20.0, (0.5, 1.5)), ("damping", 1.0, (2.0, 3.0))):
        factor = now[name] / built
        assert (factor[~touched] == 1.0).all()
        assert factor[touched].min() >= low and factor[touched].max() <= high
        assert len(factor[touched].unique()) == 4
    assert (now["force_limit"] == 8.0).all()


@pytest.mark.parametrize("kind", FULL)
def test_limits_count_before_the_gear(kind):
    """Set limits and get as much effort at the joints, times the gear (defect D2)."""
    env = make_kind(kind)
    robot = env.scene["robot"]
    dr.effort_limits(env, SOME, (1.5, 2.5), asset_cfg=KNEES)
    now = params(env)["force_limit"]
    assert (now[[0, 2]] == 8.0).all() and (now[:, [0, 2]] == 8.0).all()
    assert (now[SOME][:, [1, 3]] >= 12.0).all() and (now <= 20.0).all()
    robot.data.joint_pos_target[:] = 100.0
    efforts(robot, env.sim, robot.actuators[0])
    torch.testing.assert_close(robot.data.qfrc_actuator, now * GEAR.get(kind, 1.0))


@pytest.mark.parametrize("kind", FULL)
def test_gains_count_in_the_next_step(kind):
    """Get the efforts that a PD law with the drawn gains has."""
    env = make_kind(kind)
    robot, data, gear = env.scene["robot"], env.scene["robot"].data, GEAR.get(kind, 1.0)
    dr.pd_gains(env, None, **GAINS)
    dr.effort_limits(env, None, (1e3, 2e3), operation="abs")
    shake(robot, env.sim)
    data.joint_vel_target.zero_()
    if kind in ("ideal", "dc"):
        data.joint_effort_target.zero_()
    now = params(env)
    error = gear * (data.joint_pos_target - data.joint_pos)
    expected = gear * (now["stiffness"] * error - now["damping"] * gear * data.joint_vel)
    efforts(robot, env.sim, robot.actuators[0])
    torch.testing.assert_close(data.qfrc_actuator, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", FULL)
def test_draws_never_accumulate(kind):
    """Start from what was built in each of a hundred draws; set it by operation 'abs'."""
    env = make_kind(kind)
    for _ in range(100):
        dr.pd_gains(env, None, (0.9, 1.1), (0.9, 1.1))
        dr.effort_limits(env, None, (0.9, 1.1))
    for name, built in (("stiffness", 20.0), ("damping", 1.0), ("force_limit", 8.0)):
        factor = params(env)[name] / built
        assert factor.min() > 0.9 - 1e-6 and factor.max() < 1.1 + 1e-6
    dr.pd_gains(env, None, (33.0, 33.0), (3.0, 3.0), operation="abs")
    assert (params(env)["stiffness"] == 33.0).all() and (params(env)["damping"] == 3.0).all()


def test_draws_are_uniform_and_each_targets_own():
    """Draw stiffness, damping and limits independently: Kolmogorov-Smirnov at the 0.1 % level."""
    env = make_kind("position", num_envs=1000)
    dr.pd_gains(env, None, **GAINS)
    dr.effort_limits(env, None, (0.2, 0.7))
    now = params(env)
    assert is_uniform(now["stiffness"] / 20.0, 0.5, 1.5)
    assert is_uniform(now["damping"], 2.0, 3.0)
    assert is_uniform(now["force_limit"] / 8.0, 0.2, 0.7)
    together = torch.stack([now["stiffness"][:, 0], now["stiffness"][:, 1], now["damping"][:, 0]])
    assert (torch.corrcoef(together) - torch.eye(3)).abs().max() < 0.15


def test_worlds_step_like_a_model_with_the_drawn_values():
    """Step drawn and undrawn worlds as plain MuJoCo C steps them, bit for bit."""
    events = {
        "gains": EventTermCfg(func=dr.pd_gains, mode="startup", params=dict(GAINS)),
        "limits": EventTermCfg(
            func=dr.effort_limits, mode="startup", params={"effort_limit_range": (0.1, 0.5)}
        ),
    }
    env = make_env(FULL["position"], **events)
    sim, model = env.sim, env.sim.mj_model
    sim.data.ctrl[:] = torch.tensor([0.3, -0.5, 1.5, 0.8])
    states = sim.get_state()["state"].numpy()
    sim.step(40)
    end = sim.get_state()["state"].numpy()
    ends = []
    for world in range(4):
        own = copy.copy(model)
        for field in ("actuator_gainprm", "actuator_biasprm", "actuator_forcerange"):
            getattr(own, field)[:] = getattr(sim.model, field)[world].numpy()
        ends.append(np.concatenate(plain_steps(own, states[world], 40)))
        np.testing.assert_array_equal(end[world, 1 : 1 + model.nq + model.nv], ends[world])
    assert (np.diff(ends, axis=0) != 0.0).any(axis=1).all()


def test_a_delay_and_several_groups_change_nothing_about_indices():
    """Find each target among actuators of several kinds, selected by what they drive, too."""
    tendon = TransmissionType.TENDON
    cfgs = (
        BuiltinVelocityActuatorCfg(target_names_expr=("b_hip",), damping=1.0),
        BuiltinPdActuatorCfg(
            target_names_expr=("a_knee", "b_knee"), stiffness=5.0, damping=2.0, delay_max_lag=2
        ),
        IdealPdActuatorCfg(target_names_expr=("a_hip",), stiffness=7.0, damping=3.0),
        BuiltinPositionActuatorCfg(
            target_names_expr=("both_knees",), stiffness=9.0, damping=4.0, transmission_type=tendon
        ),
    )
    selections = {
        "b_knee": {"actuator_names": ("b_knee_pd_vel",)},
        "a_knee": {"joint_names": ("a_knee",)},
        "both_knees": {"tendon_names": ("both_knees",)},
        "b_hip": {"joint_names": ("b_hip",)},
    }
    for name, selection in selections.items():
        env = make_env(*cfgs)
        doubled = {"kp_range": (2.0, 2.0), "kd_range": (2.0, 2.0)}
        dr.pd_gains(env, SOME, **doubled, asset_cfg=SceneEntityCfg("robot", **selection))
        for actuator in env.scene["robot"].actuators:
            for param in {"stiffness", "damping"} & set(actuator.param_names):
                factor = actuator.get_param(param) / actuator.default_param(param)
                expected = torch.ones_like(factor)
                if name in actuator.target_names:
                    expected[SOME, actuator.target_names.index(name)] = 2.0
                assert torch.equal(factor, expected)


def test_actuators_without_gains_are_left_out_or_refused():
    """Pass over motors and muscles by default, and refuse them where they are asked for."""
    motor = BuiltinMotorActuatorCfg(target_names_expr=("a_hip",), effort_limit=4.0)
    muscle = BuiltinMuscleActuatorCfg(target_names_expr=("b_hip",), length_range=(-1.0, 1.0))
    knees = BuiltinVelocityActuatorCfg(target_names_expr=(".*_knee",), damping=1.0)
    env = make_env(motor, muscle, knees)
    dr.pd_gains(env, None, **GAINS)
    assert (env.scene["robot"].actuators[2].damping >= 2.0).all()
    hip = SceneEntityCfg("robot", joint_names=("a_hip",))
    with pytest.raises(ValueError, match="BuiltinMotorActuator of a_hip has no stiffness or"):
        dr.pd_gains(env, None, **GAINS, asset_cfg=hip)
    dr.effort_limits(env, None, (0.5, 0.5), asset_cfg=hip)
    assert (env.scene["robot"].actuators[0].force_limit == 2.0).all()
    with pytest.raises(ValueError, match="was compiled without"):
        dr.effort_limits(env, None, (0.5, 0.5))
    with pytest.raises(ValueError, match="no actuator with stiffness or damping"):
        dr.pd_gains(make_env(motor), None, **GAINS)


def test_networks_have_limits_but_no_gains(tmp_path):
    """Randomize the motor behind a network, and not the gains that the network has learned."""

    class Network(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 100.0 * x[:, :1]

    file = str(tmp_path / "network.pt")
    torch.jit.script(Network()).save(file)
    scales = {"pos_scale": 1.0, "vel_scale": 1.0, "torque_scale": 1.0}
    curve = {"effort_limit": 8.0, "saturation_effort": 20.0, "velocity_limit": 1e6}
    env = make_env(
        LearnedMlpActuatorCfg(target_names_expr=ALL, network_file=file, **scales, **curve)
    )
    robot = env.scene["robot"]
    dr.effort_limits(env, SOME, (0.5, 0.5))
    robot.data.joint_pos_target[:] = 100.0
    efforts(robot, env.sim, robot.actuators[0])
    assert robot.data.qfrc_actuator[:, 0].tolist() == [8.0, 4.0, 8.0, 4.0]
    with pytest.raises(ValueError, match="no actuator with stiffness"):
        dr.pd_gains(env, None, **GAINS)


def test_gains_are_never_negative():
    """Refuse negative bounds, and cut the tail of a distribution."""
    env = make_kind("position", num_envs=200)
    with pytest.raises(
        ValueError, match=r"range of damping must not be negative, got \(-1.0, 2.0\)"
    ):
        dr.pd_gains(env, None, (0.0, 1.0), (-1.0, 2.0))
    dr.pd_gains(env, None, (1.0, 2.0), (1.0, 2.0), distribution="gaussian")
    now = params(env)
    assert now["stiffness"].min() == 0.0 and now["damping"].min() == 0.0
    with pytest.raises(ValueError, match="cannot be randomized by operation 'add'"):
        dr.effort_limits(env, None, (0.0, 1.0), operation="add")
    with pytest.raises(ValueError, match="Unknown operation 'double'"):
        dr.pd_gains(env, None, **GAINS, operation="double")


@pytest.mark.parametrize(
    ("function", "ranges", "parameter", "built"),
    [
        (dr.pd_gains, {"kp_range": (1.5, 1.5), "kd_range": (1.5, 1.5)}, "stiffness", 20.0),
        (dr.effort_limits, {"effort_limit_range": (1.5, 1.5)}, "force_limit", 8.0),
    ],
)
def test_operations_given_as_objects(function, ranges, parameter, built):
    """Scale what was built and set values, though the manager draws with copies of the objects."""
    for operation, expected in (("scale", 1.5 * built), ("abs", 1.5)):
        given = {**ranges, "operation": dr.resolve_operation(operation)}
        term = EventTermCfg(func=function, mode="startup", params=given)
        env = make_env(FULL["position"], xml="", drives=term)
        assert (params(env)[parameter] == expected).all()


def test_wrong_parameters_are_found_at_build_time():
    """Tell of a wrong selection when the environment is built, not at its first reset."""
    term = EventTermCfg(func=dr.pd_gains, mode="reset", params=dict(GAINS))
    with pytest.raises(ValueError, match="no actuator with stiffness"):
        make_env(gains=term)


def test_encoders_keep_a_uniform_error():
    """Draw an error for each joint, which observations show and position actions make up for."""
    env = make_kind("position", num_envs=1000)
    data = env.scene["robot"].data
    dr.encoder_bias(env, None, (-0.02, 0.04))
    assert is_uniform(data.encoder_bias, -0.02, 0.04)
    assert torch.equal(data.joint_pos_biased, data.joint_pos + data.encoder_bias)
    shown = mdp.joint_pos_rel(env, biased=True) - mdp.joint_pos_rel(env)
    torch.testing.assert_close(shown, data.encoder_bias, rtol=0.0, atol=1e-6)
    before = data.encoder_bias.clone()
    hips = SceneEntityCfg("robot", joint_names=(".*_hip",))
    dr.encoder_bias(env, SOME, (1.0, 1.0), hips)
    before[SOME[:, None], torch.tensor([0, 2])] = 1.0
    assert torch.equal(data.encoder_bias, before)


LATE = {"delay_min_lag": 1, "delay_max_lag": 5, "delay_hold_prob": 1.0}


def late_cfgs(**changes) -> tuple[ActuatorCfg, ...]:
    """Three groups, of which the last two have delays of their own."""
    hip = BuiltinPositionActuatorCfg(target_names_expr=("a_hip",), stiffness=1.0, damping=0.1)
    knees = replace(hip, target_names_expr=("a_knee", "b_knee"), **LATE)
    other = IdealPdActuatorCfg(target_names_expr=("b_hip",), stiffness=1.0, damping=0.1)
    delay = LATE | {"delay_max_lag": 4} | changes
    return hip, knees, DelayedActuatorCfg(base_cfg=other, **delay)


def test_all_delays_of_a_world_become_one():
    """Draw one delay for each world, within what every actuator can have, that is kept."""
    sync = EventTermCfg(func=dr.sync_actuator_delays, mode="reset")
    env = make_env(*late_cfgs(), num_envs=500, sync=sync)
    env.reset()
    late = [actuator.delay_buffer for actuator in env.scene["robot"].actuators[1:]]
    lags = late[0].current_lags
    assert set(lags.tolist()) == {1, 2, 3, 4}
    action = torch.zeros(500, env.action_manager.total_action_dim)
    for _ in range(5):
        env.step(action)
    assert all(torch.equal(buffer.current_lags, lags) for buffer in late)
    dr.sync_actuator_delays(env, SOME, lag_range=(4, 4))
    lags[SOME] = 4
    assert all(torch.equal(buffer.current_lags, lags) for buffer in late)


def test_delays_that_cannot_be_one_are_refused():
    """Refuse delays that an actuator cannot have, and none at all; warn of those soon redrawn."""
    env = make_env(*late_cfgs())
    with pytest.raises(ValueError, match=r"cannot draw from \(0, 2\).* by 1 to 4 physics steps"):
        dr.sync_actuator_delays(env, None, (0, 2))
    with pytest.raises(ValueError, match="no actuator that has a delay: set delay_max_lag"):
        dr.sync_actuator_delays(make_kind("position"), None)
    with pytest.warns(UserWarning, match="set delay_hold_prob=1.0"):
        dr.sync_actuator_delays(make_env(*late_cfgs(delay_hold_prob=0.5)), None)


def test_one_seed_draws_one_set_of_worlds():
    """Draw the same gains from the same seed, whatever the number of threads."""
    draws = []
    for num_threads in (1, 2):
        before = torch.get_num_threads()
        torch.set_num_threads(num_threads)
        env = make_kind("position", num_envs=800)
        torch.manual_seed(11)
        dr.pd_gains(env, None, **GAINS)
        dr.encoder_bias(env, None, (-1.0, 1.0))
        torch.set_num_threads(before)
        draws.append([*params(env).values(), env.scene["robot"].data.encoder_bias])
    assert all(torch.equal(a, b) for a, b in zip(*draws, strict=True))


def test_dampratio_follows_its_compiled_damping():
    """Scale the damping that a ratio was compiled to, which recomputed constants then leave."""
    xml = '<position joint="a_hip" kp="20" dampratio=".7"/>'
    env = make_env(XmlActuatorCfg(target_names_expr=("a_hip",)), xml=xml)
    (actuator,) = env.scene["robot"].actuators
    built = actuator.default_damping.clone()
    assert (built > 0.0).all()
    dr.pd_gains(env, None, (2.0, 2.0), (3.0, 3.0))
    dr.pseudo_inertia(env, None, alpha_range=(0.5, 0.5))
    env.sim.recompute_constants(dr.RecomputeLevel.set_const)
    assert torch.equal(actuator.damping, 3.0 * built)


def test_warp_drives_like_native():
    """Draw the same on the warp engine, in the worlds named, and move the same."""
    pytest.importorskip("mujoco_warp")
    events = {
        "gains": EventTermCfg(func=dr.pd_gains, mode="step", params=dict(GAINS)),
        "limits": EventTermCfg(
            func=dr.effort_limits, mode="step", params={"effort_limit_range": (0.1, 0.5)}
        ),
    }
    hips = BuiltinPdActuatorCfg(
        target_names_expr=(".*_hip",), stiffness=20.0, damping=1.0, effort_limit=8.0
    )
    knees = replace(FULL["ideal"], target_names_expr=(".*_knee",))
    envs = [make_env(hips, knees, engine=engine, **events) for engine in ("native", "warp")]
    for env in envs:
        torch.manual_seed(5)
        env.event_manager.apply("step", SOME, dt=env.step_dt)
        env.scene["robot"].data.joint_pos_target[:] = torch.tensor([0.5, -0.5, 1.0, 0.2])
        env.scene.write_data_to_sim()
        env.sim.step(5)
    pairs = [env.scene["robot"].actuators for env in envs]
    for native, warp in zip(*pairs, strict=True):
        for name in native.param_names:
            torch.testing.assert_close(warp.get_param(name), native.get_param(name))
    native, warp = (env.sim.data.qvel for env in envs)
    torch.testing.assert_close(warp, native, rtol=1e-3, atol=1e-3)
    assert (native[1] - native[0]).abs().max() > 0.1
