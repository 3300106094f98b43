"""Physics of the settings for few CPU cores, without and with one of its simplifications."""

from __future__ import annotations

import copy
from collections.abc import Callable
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measuring import Figures, robots_folder

if TYPE_CHECKING:
    from manyworlds.cli.plain_rollout import PlainRollout
    from manyworlds.envs import ManagerBasedRlEnvCfg

_WORLDS, _CONTROL_STEPS, _WARM_UP = 64, 20, 50
_ACTION = 0.5
"""Standard deviation of the random actions, with which the robots stand, stumble and fall."""

Undo = Callable[["ManagerBasedRlEnvCfg", "ManagerBasedRlEnvCfg"], None]


def _undo_timestep(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    cfg.decimation, _options(cfg).timestep = own.decimation, _options(own).timestep


def _undo_solver(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    _options(cfg).solver, _options(cfg).iterations = _options(own).solver, _options(own).iterations


def _undo_flags(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    _options(cfg).disableflags = _options(own).disableflags


def _undo_contacts(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    cfg.scene.entities = own.scene.entities


def _undo_sensors(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    cfg.scene.kept_sensors = own.scene.kept_sensors


def _undo_terrain(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    cfg.scene.terrain = own.scene.terrain
    secondaries = {sensor.name: getattr(sensor, "secondary", None) for sensor in own.scene.sensors}
    for sensor in cfg.scene.sensors:
        if hasattr(sensor, "secondary"):
            setattr(sensor, "secondary", secondaries[sensor.name])  # noqa: B010


def _undo_hips(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    for collision in cfg.scene.entities["robot"].collisions:
        collision.conaffinity = 1


def _undo_all(cfg: ManagerBasedRlEnvCfg, own: ManagerBasedRlEnvCfg) -> None:
    for undo in (_undo_timestep, _undo_solver, _undo_flags, _undo_contacts, _undo_sensors):
        undo(cfg, own)


LEVERS: dict[str, tuple[str, Undo]] = {
    "timestep": ("the task's number of physics steps / half of it", _undo_timestep),
    "solver": ("the task's solver / few iterations of PGS", _undo_solver),
    "contacts": ("the task's contacts / those of the settings", _undo_contacts),
    "flags": ("with / without the search for islands, and the midphase", _undo_flags),
    "sensors": ("all sensors / those that terms read", _undo_sensors),
    "hips": ("with / without contacts of the hips", _undo_hips),
    "terrain": ("terrain on its own body / on the world's", _undo_terrain),
    "all": ("the task's physics / that of the settings for few cores", _undo_all),
}


def lever(task: str, undo: Undo, seconds: float) -> Figures | None:
    """Time rollouts of control steps without and with a lever, from the same states, on one core.

    Other levers are as in the settings for few cores. Times are processor time, which depends less
    on other programs than wall time does.
    """
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset

    if robots_folder() is None:
        return None
    own, cheap = load_env_cfg(task), load_env_cfg(task)
    use_cpu_preset(task, cheap, load_rl_cfg(task))
    without = copy.deepcopy(cheap)
    undo(without, copy.deepcopy(own))
    states, controls = _states(cheap)
    programs = [_Program(cfg, states, controls) for cfg in (without, cheap)]
    times: list[list[float]] = []
    while len(times) < 4 or sum(map(sum, times)) < seconds:
        times.append([program.run() for program in programs])
    before, after = np.array(times[1:]).T  # the first round warms up
    scale = 1e6 / (_WORLDS * _CONTROL_STEPS)
    return {
        "num_envs": _WORLDS,
        "without_us": scale * float(np.median(before)),
        "with_us": scale * float(np.median(after)),
        "substep_us": scale * float(np.median(after)) / cheap.decimation,
        "ratio": float(np.median(before / after)),
    }


def _options(cfg: ManagerBasedRlEnvCfg) -> Any:
    assert cfg.sim.mujoco is not None
    return cfg.sim.mujoco


def _states(cfg: ManagerBasedRlEnvCfg) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return parts of states after random actions, and controls [num_envs, control steps, nu]."""
    import torch

    from manyworlds.cli.bench_env import make_env
    from manyworlds.utils.devices import torch_threads

    env = make_env(copy.deepcopy(cfg), _WORLDS)
    controls = []
    with torch_threads(1):
        for step in range(_WARM_UP + _CONTROL_STEPS):
            action = _ACTION * torch.randn(_WORLDS, env.action_manager.total_action_dim)
            if step < _WARM_UP:
                env.step(action)
                continue
            env.action_manager.process_action(action)
            env.action_manager.apply_action()
            env.scene.write_data_to_sim()
            controls.append(env.sim.data.ctrl.numpy().astype(float))
    parts = {name: getattr(env.sim.data, name).numpy().astype(float) for name in ("qpos", "qvel")}
    return parts, np.stack(controls, axis=1)


class _Program:
    """A rollout of one model, whose sensors and timestep may differ from those of another."""

    def __init__(
        self, cfg: ManagerBasedRlEnvCfg, states: dict[str, np.ndarray], controls: np.ndarray
    ) -> None:
        import mujoco

        from manyworlds.cli.plain_rollout import PlainRollout
        from manyworlds.scene import Scene

        cfg = copy.deepcopy(cfg)
        cfg.scene.num_envs = 1
        scene = Scene(cfg.scene)
        scene.keep_substeps(cfg.decimation)
        model = scene.compile()
        _options(cfg).apply(model)
        self.rollout: PlainRollout = PlainRollout(model, 1)
        layout = self.rollout.layout
        self.rows = np.tile(layout.row(mujoco.MjData(model)), (_WORLDS, 1))
        for name, values in states.items():
            self.rows[:, layout.columns[name]] = values
        self.controls = np.repeat(controls, cfg.decimation, axis=1)
        self.rollout.prepare(_WORLDS, self.controls.shape[1])

    def run(self) -> float:
        """Return the processor time of all control steps in all worlds [s]."""
        layout, start = self.rollout.layout, process_time()
        state, warmstart = self.rows[:, layout.physics], self.rows[:, layout.warmstart]
        self.rollout(state, warmstart, self.controls)
        return process_time() - start
