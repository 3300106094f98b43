"""Workloads of entities, actuators and sensors."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.measuring import Figures, robots_folder

_DECIMATION = 4
_STANCE = {".*_hip_joint": 0.0, ".*_thigh_joint": 0.9, ".*_calf_joint": -1.8}


def go1_cfg() -> Any:
    """Configure Go1 with ideal PD in three groups, standing; None where its files are not."""
    robots = robots_folder()
    if robots is None:
        return None
    import mujoco

    from manyworlds.actuator import IdealPdActuatorCfg
    from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg

    groups = tuple(
        IdealPdActuatorCfg(
            target_names_expr=(f".*_{part}_joint",), stiffness=stiffness, damping=2.0,
            effort_limit=30.0,
        )
        for part, stiffness in (("hip", 40.0), ("thigh", 40.0), ("calf", 60.0))
    )  # fmt: skip
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_file(str(robots / "unitree_go1" / "go1.xml")),
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 0.3), joint_pos=_STANCE),
        articulation=EntityArticulationInfoCfg(actuators=groups),
    )


def build(num_envs: int, terrain: Any, sensors: tuple[Any, ...] = ()) -> tuple[Any, Any] | None:
    """Put Go1 on a terrain, standing, some steps in; on two threads of the native engine."""
    robot = go1_cfg()
    if robot is None:
        return None
    import torch

    from manyworlds.scene import Scene, SceneCfg
    from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg

    cfg = SceneCfg(num_envs=num_envs, entities={"robot": robot}, terrain=terrain, sensors=sensors)
    scene = Scene(cfg, "cpu")
    sim_cfg = SimulationCfg(engine="native", num_threads=2, mujoco=MujocoCfg(timestep=0.005))
    sim = Simulation(num_envs, sim_cfg, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    entity = scene["robot"]
    state = entity.data.default_root_state.clone()
    state[:, :3] += scene.env_origins
    entity.write_root_state_to_sim(state)
    entity.write_joint_state_to_sim(entity.data.default_joint_pos, entity.data.default_joint_vel)
    noise = 0.1 * torch.randn_like(entity.data.default_joint_pos)
    entity.set_joint_position_target(entity.data.default_joint_pos + noise)
    for _ in range(100):
        scene.write_data_to_sim()
        sim.step()
    return scene, sim


def actuators(seconds: float) -> Figures | None:
    """A control step's physics against that and its actuators and scene update."""
    from manyworlds.terrains import TerrainEntityCfg
    from manyworlds.utils.devices import torch_threads

    built = build(1024, TerrainEntityCfg())
    if built is None:
        return None
    scene, sim = built
    times: list[tuple[float, float]] = []
    end = perf_counter() + seconds
    with torch_threads(1):
        while perf_counter() < end or len(times) < 5:
            physics = other = 0.0
            for _ in range(_DECIMATION):
                start = perf_counter()
                scene.write_data_to_sim()
                written = perf_counter()
                sim.step()
                stepped = perf_counter()
                scene.update(sim.timestep)
                other += written - start + perf_counter() - stepped
                physics += stepped - written
            times.append((physics, other))
    physics, other = (median(part) for part in zip(*times, strict=True))
    return {
        "num_envs": sim.num_envs,
        "actuators_us": 1e6 * other,
        "physics_us": 1e6 * physics,
        "share": other / physics,
        "ratio": physics / (physics + other),
    }


def height_scan(seconds: float) -> Figures | None:
    """A scan of 17 x 11 heights under Go1 on rough ground: `Batch.ray` against the sensor."""
    from manyworlds.sensor import GridPatternCfg, ObjRef, RayCastSensorCfg
    from manyworlds.terrains import TerrainEntityCfg, TerrainGeneratorCfg
    from manyworlds.terrains.config import random_rough

    generator = TerrainGeneratorCfg(
        size=(8.0, 8.0), num_rows=10, num_cols=10, seed=0, sub_terrains={"rough": random_rough()}
    )
    scan_cfg = RayCastSensorCfg(
        name="scan",
        frame=ObjRef(type="body", name="trunk", entity="robot"),
        pattern=GridPatternCfg(size=(1.6, 1.0)),
        ray_alignment="yaw",
        include_geom_groups=(0,),
    )
    terrain = TerrainEntityCfg(terrain_type="generator", terrain_generator=generator)
    built = build(1024, terrain, (scan_cfg,))
    if built is None:
        return None
    scene, sim = built
    sim.set_sensor_context(scene.sensor_context)
    scan = scene["scan"]
    cast = sim._engine.batch.ray
    times: list[tuple[float, float, float]] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        start = perf_counter()
        sim.step(_DECIMATION, refresh=True)
        stepped = perf_counter()
        scan.invalidate()
        assert scan.data.distances.shape == (1024, 187)
        scanned = perf_counter()
        origins, directions = (part.double().numpy() for part in scan._rays(None)[:2])
        before = perf_counter()
        cast(origins, directions, scan._geomgroup, True, scan._bodyexclude.numpy(), None, True)
        times.append((stepped - start, scanned - stepped, perf_counter() - before))
    physics, sensor, direct = (median(part) for part in zip(*times, strict=True))
    return {
        "num_envs": sim.num_envs,
        "num_rays": scan.num_rays,
        "sensor_us": 1e6 * sensor,
        "direct_us": 1e6 * direct,
        "physics_us": 1e6 * physics,
        "ratio": direct / sensor,
    }


def randomized_env(num_envs: int) -> Any:
    """Go1 on a plane, randomized at resets as sim-to-real work does; None without its files."""
    if robots_folder() is None:
        return None
    import torch

    from manyworlds.asset_zoo.third_party import get_go1_robot_cfg
    from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
    from manyworlds.envs.mdp import dr
    from manyworlds.managers import EventTermCfg
    from manyworlds.scene import SceneCfg
    from manyworlds.sim import MujocoCfg, SimulationCfg
    from manyworlds.terrains import TerrainEntityCfg

    randomized = {
        dr.geom_friction: {"ranges": (0.3, 1.2)},
        dr.pseudo_inertia: {
            "alpha_range": (-0.1, 0.1),
            "d_range": (-0.1, 0.1),
            "t_range": (-0.02, 0.02),
        },
        dr.pd_gains: {"kp_range": (0.8, 1.2), "kd_range": (0.8, 1.2)},
        dr.joint_armature: {"ranges": (0.8, 1.2), "operation": "scale"},
        dr.encoder_bias: {"bias_range": (-0.01, 0.01)},
    }
    events: dict[str, EventTermCfg] = {
        func.__name__: EventTermCfg(func=func, mode="reset", params=params)
        for func, params in {mdp.reset_scene_to_default: {}, **randomized}.items()
    }
    robot = mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",), scale=0.2)
    cfg = ManagerBasedRlEnvCfg(
        decimation=_DECIMATION,
        episode_length_s=1e6,
        scene=SceneCfg(
            num_envs=num_envs, entities={"robot": get_go1_robot_cfg()}, terrain=TerrainEntityCfg()
        ),
        sim=SimulationCfg(engine="native", num_threads=2, mujoco=MujocoCfg(timestep=0.005)),
        actions={"robot": robot},
        events=events,
        seed=1,
    )
    env = ManagerBasedRlEnv(cfg, device="cpu")
    for _ in range(25):
        env.step(torch.rand(num_envs, 12) * 2.0 - 1.0)
    return env


def randomized_resets(seconds: float) -> Figures | None:
    """A control step of 4096 randomized Go1 against it and a reset of a tenth of them."""
    import torch

    from manyworlds.utils.devices import torch_threads

    env = randomized_env(4096)
    if env is None:
        return None
    times: list[tuple[float, float]] = []
    end = perf_counter() + seconds
    with torch_threads(1):
        while perf_counter() < end or len(times) < 5:
            few = torch.randperm(env.num_envs)[: env.num_envs // 10]
            action = torch.rand(env.num_envs, 12) * 2.0 - 1.0
            start = perf_counter()
            env.reset(env_ids=few)
            between = perf_counter()
            env.step(action)
            times.append((between - start, perf_counter() - between))
    reset, step = (median(part) for part in zip(*times, strict=True))
    return {
        "num_envs": env.num_envs,
        "reset_us": 1e6 * reset,
        "step_us": 1e6 * step,
        "reset_share": reset / step,
        "ratio": step / (step + reset),
    }
