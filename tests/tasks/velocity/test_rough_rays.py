"""Sensors of the rough tasks: equal with all rays cast by MuJoCo."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.sensor import RayCastSensorCfg
from manyworlds.sim.engines.native_rays import NativeRays, RayRequest
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
from tests.robots import robot_file
from tests.tasks.velocity.test_env_cfgs import FILES, actions

_SENSORS = {
    "terrain_scan": ("distances", "normals_w", "hit_pos_w"),
    "foot_height_scan": ("distances", "heights"),
}
_STEPS = 40


def _rollout(task: str, groups: tuple[int, ...] | None) -> tuple[list[torch.Tensor], int]:
    """Return what the sensors measure and the policy observes, and the number of resets."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed, cfg.episode_length_s = 16, 5, 0.4
    assert cfg.scene.terrain is not None
    generator = cfg.scene.terrain.terrain_generator
    assert generator is not None
    generator.num_rows, generator.seed = 4, 5
    cfg.sim.engine = "native"
    for sensor in cfg.scene.sensors:
        if isinstance(sensor, RayCastSensorCfg):
            sensor.include_geom_groups = groups
    env, measured, resets = ManagerBasedRlEnv(cfg), [], 0
    for action in actions(env, _STEPS):
        obs, reward, *_ = env.step(action)
        resets += int(env.reset_buf.sum())
        values = [value for _, value in sorted(obs.items()) if isinstance(value, torch.Tensor)]
        assert len(values) == len(obs)
        measured += [value.clone() for value in (*values, reward)]
        for name, fields in _SENSORS.items():
            measured += [getattr(env.scene[name].data, field).clone() for field in fields]
    return measured, resets


@pytest.mark.slow
@pytest.mark.parametrize("groups", [(0,), None], ids=["terrain", "all"])
@pytest.mark.parametrize("robot", ["Quadruped", "Humanoid", "Go1"])
def test_rollouts_are_equal_with_all_rays_cast_by_mujoco(
    robot: str, groups: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measure, observe and reward the same over a rollout with resets, in each control step."""
    if robot in FILES:
        robot_file(FILES[robot])
    calls, mujoco_rays = [], NativeRays._mujoco

    def counted(self: NativeRays, request: RayRequest) -> Any:
        calls.append(request.flg_static)
        return mujoco_rays(self, request)

    monkeypatch.setattr(NativeRays, "_mujoco", counted)
    monkeypatch.setattr(NativeRays, "_worthwhile", lambda *args: True)
    measured, resets = _rollout(f"Velocity-Rough-{robot}", groups)
    # MuJoCo casts rays at the robot, if these can hit it, and few at the terrain.
    assert sum(calls) < 10 and (len(calls) > _STEPS) == (groups is None)
    monkeypatch.setattr(NativeRays, "_table", lambda *args: None)
    expected, _ = _rollout(f"Velocity-Rough-{robot}", groups)
    assert resets > 10
    for found, wanted in zip(measured, expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("robot", ["Quadruped", "Humanoid", "Go1"])
def test_heights_over_a_plane_need_no_poses_of_many_worlds(
    robot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Find one plane without MuJoCo, which would compute the pose of each geom in each world."""
    if robot in FILES:
        robot_file(FILES[robot])
    task = f"Velocity-Flat-{robot}"
    cfg = load_env_cfg(task)
    use_cpu_preset(task, cfg, load_rl_cfg(task))
    cfg.scene.num_envs, cfg.seed, cfg.sim.engine, cfg.sim.num_threads = 1024, 5, "native", 2
    env, calls, mujoco_rays = ManagerBasedRlEnv(cfg), [], NativeRays._mujoco

    def counted(self: NativeRays, request: RayRequest) -> Any:
        calls.append(request)
        return mujoco_rays(self, request)

    monkeypatch.setattr(NativeRays, "_mujoco", counted)
    heights = []
    for table in (NativeRays._table, lambda *args: None):
        monkeypatch.setattr(NativeRays, "_table", table)
        env.sim.forward()
        heights.append(env.scene["foot_height_scan"].data.heights.clone())
    assert len(calls) == 1
    torch.testing.assert_close(*heights, atol=1e-6, rtol=1e-6)
