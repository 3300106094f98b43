"""Sensors and exclusions that name the terrain, wherever its geoms are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.scene import Scene, SceneCfg
from manyworlds.sensor import (
    ContactMatch,
    ContactSensorCfg,
    GridPatternCfg,
    ObjRef,
    RayCastSensorCfg,
    SensorCfg,
)
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.terrains import TerrainEntityCfg, TerrainGeneratorCfg
from manyworlds.terrains.config import pyramid_stairs
from tests.sensor.scenes import BALL, entity, heap

TOE = ContactMatch("geom", "toe", "robot")


def terrain(on_world: bool, stairs: bool = False) -> TerrainEntityCfg:
    """Configure a plane or stairs."""
    cfg = TerrainEntityCfg(on_world_body=on_world)
    if stairs:
        cfg.terrain_type = "generator"
        cfg.terrain_generator = TerrainGeneratorCfg(
            size=(8.0, 8.0),
            num_rows=1,
            num_cols=1,
            sub_terrains={"cell": pyramid_stairs()},
            seed=1,
        )
    return cfg


def build(
    ground: TerrainEntityCfg,
    *sensors: SensorCfg,
    name: str = "terrain",
    spec_fn: Callable[[mujoco.MjSpec], None] | None = None,
) -> tuple[Scene, Simulation]:
    """Build two worlds of a robot that falls on a terrain."""
    entities: dict[str, Any] = {"robot": entity(heap()), name: ground}
    scene = Scene(SceneCfg(num_envs=2, entities=entities, sensors=sensors, spec_fn=spec_fn))
    options = SimulationCfg(mujoco=MujocoCfg(timestep=0.005))
    sim = Simulation(2, options, spec=scene.spec)
    scene.initialize(sim.mj_model, sim.model, sim.data)
    if scene.sensor_context is not None:
        sim.set_sensor_context(scene.sensor_context)
    sim.data.qpos[:] = torch.from_numpy(sim.mj_model.key_qpos[0]).float()
    sim.data.qpos[:, :3] = scene.env_origins + torch.tensor([0.0, 0.0, 0.3])
    sim.forward()
    return scene, sim


def contact_time(ground: TerrainEntityCfg, *sensors: ContactSensorCfg, **kwargs: Any) -> list:
    """Return the times in contact of sensors [s], after 0.6 s of falling and lying."""
    scene, sim = build(ground, *sensors, **kwargs)
    for _ in range(120):
        sim.step()
        scene.update(0.005)
    return [scene[sensor.name].data.current_contact_time.flatten().tolist() for sensor in sensors]


SECONDARIES = [
    ContactMatch("body", "terrain"),
    ContactMatch("body", ("terrain",)),
    ContactMatch("body", "^terrain$"),
    ContactMatch("body", "terr.*"),
    ContactMatch("subtree", ("terrain",)),
    ContactMatch("body", "terrain", "terrain"),
    ContactMatch("subtree", ".*", "terrain"),
]


@pytest.mark.slow_on_warp
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("stairs", [False, True], ids=["plane", "stairs"])
def test_patterns_find_the_terrain_on_the_body_of_the_world(stairs):
    """Let the geoms belong to either body: every way to name the terrain measures the same time."""
    sensors = [
        ContactSensorCfg(name=f"c{i}", primary=TOE, secondary=match, track_air_time=True)
        for i, match in enumerate(SECONDARIES)
    ]
    times = [contact_time(terrain(on_world, stairs), *sensors) for on_world in (False, True)]
    reference = times[0][0]
    assert min(reference) > 0.05
    for found in times:
        assert found == [reference] * len(SECONDARIES)


def test_the_terrain_may_be_a_primary():
    """Measure the contacts of the terrain itself: forces are those of the body that it was."""
    found = []
    for on_world in (False, True):
        cfg = ContactSensorCfg(
            name="ground",
            primary=ContactMatch("body", "terrain"),
            secondary=ContactMatch("subtree", "trunk", "robot"),
            reduce="netforce",
        )
        scene, sim = build(terrain(on_world), cfg)
        sim.step(120)
        scene.update(0.6)
        assert scene["ground"].primary_names == ["terrain"]
        found.append(scene["ground"].data.force.clone())
    weight = 9.81 * sim.mj_model.body_subtreemass[sim.mj_model.body("robot/trunk").id]
    assert found[0][0, 0, 2] == pytest.approx(weight, rel=0.05)
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-3)


def test_a_terrain_among_the_entities_is_found_by_its_name():
    """Call the entity otherwise: its elements have no prefix."""
    match = ContactMatch("body", "terrain", "ground")
    cfg = ContactSensorCfg(name="c", primary=TOE, secondary=match, track_air_time=True)
    times = [contact_time(terrain(on_world), cfg, name="ground") for on_world in (False, True)]
    assert times[0] == times[1] and min(times[0][0]) > 0.05


def test_exclusions_of_contacts_move_with_the_geoms():
    """Exclude a body's contacts with the terrain: it falls through, whoever has the geoms."""

    def exclude(spec: mujoco.MjSpec) -> None:
        for body in ("robot/trunk", "robot/thigh", "robot/foot"):
            spec.add_exclude(bodyname1="terrain", bodyname2=body)

    for on_world in (False, True):
        _, sim = build(terrain(on_world), spec_fn=exclude)
        sim.step(120)
        assert (sim.data.qpos[:, 2] < -1.0).all()


def test_rays_pass_through_the_terrain_that_they_start_from():
    """Attach rays to the terrain's body: they miss its geoms, wherever these are."""
    distances = []
    for on_world in (False, True):
        cfg = RayCastSensorCfg(
            name="scan",
            frame=ObjRef("body", "terrain"),
            pattern=GridPatternCfg(size=(0.2, 0.2), offset=(0.0, 0.0, 3.0)),
        )
        scene, _ = build(terrain(on_world), cfg)
        scene["scan"].invalidate()
        distances.append(scene["scan"].data.distances.clone())
    assert (distances[0] == -1.0).any() and torch.equal(*distances)


def test_other_geoms_of_the_world_are_named():
    """Put a post on the world's body: contacts with it would count as those with the terrain."""

    def post(spec: mujoco.MjSpec) -> None:
        spec.worldbody.add_geom(name="post", size=(0.1, 0.0, 0.0), pos=(3.0, 0.0, 0.0))

    cfg = ContactSensorCfg(name="c", primary=TOE, secondary=ContactMatch("body", "terrain"))
    with pytest.warns(UserWarning, match="contacts with its other geoms, such as 'post', count"):
        build(terrain(True), cfg, spec_fn=post)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(terrain(False), cfg, spec_fn=post)
        build(terrain(True), cfg)


GHOST = BALL.replace("<geom ", '<geom contype="0" conaffinity="0" ')


@pytest.mark.parametrize(
    ("primary", "secondary", "role"),
    [
        (ContactMatch("geom", "g", "ghost"), None, "primary that 'g'"),
        (ContactMatch("geom", ("toe", "ghost/g")), None, "primary that 'ghost/g'"),
        (ContactMatch("body", "b", "ghost"), None, "primary that 'b'"),
        (ContactMatch("subtree", "b", "ghost"), TOE, "primary that 'b'"),
        (TOE, ContactMatch("body", "b", "ghost"), "secondary that 'b'"),
    ],
)
def test_elements_that_never_touch_are_named(primary, secondary, role):
    """Select what has no geom that collides: a warning says that it is never in contact."""
    cfg = ContactSensorCfg(name="c", primary=primary, secondary=secondary)
    scene = Scene(
        SceneCfg(entities={"robot": entity(heap()), "ghost": entity(GHOST)}, sensors=(cfg,))
    )
    sim = Simulation(1, SimulationCfg(), spec=scene.spec)
    with pytest.warns(UserWarning, match=f"'c' never finds a contact: no {role} matches"):
        scene.initialize(sim.mj_model, sim.model, sim.data)


def test_pairs_let_geoms_touch_that_do_not_collide():
    """Give two geoms a contact pair: a sensor on them is valid."""

    def pair(spec: mujoco.MjSpec) -> None:
        spec.add_pair(geomname1="ghost/g", geomname2="robot/toe")

    cfg = ContactSensorCfg(name="c", primary=ContactMatch("geom", "g", "ghost"))
    entities = {"robot": entity(heap()), "ghost": entity(GHOST)}
    scene = Scene(SceneCfg(entities=entities, sensors=(cfg,), spec_fn=pair))
    sim = Simulation(1, SimulationCfg(), spec=scene.spec)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scene.initialize(sim.mj_model, sim.model, sim.data)


def test_exclusions_that_name_nothing_are_told():
    """Misspell a name to leave out: a warning has the right one."""
    match = ContactMatch("geom", ".*", "robot", exclude=("tow",))
    with pytest.warns(UserWarning, match=r"excludes 'tow', which is none of .*Did you mean 'toe'"):
        build(terrain(False), ContactSensorCfg(name="c", primary=match))


def test_groups_without_geoms_are_told():
    """Cast rays at groups that no geom is in: a warning says that they never hit."""
    cfg = RayCastSensorCfg(
        name="scan", frame=ObjRef("body", "trunk", "robot"), include_geom_groups=(4, 5)
    )
    with pytest.warns(UserWarning, match=r"no geom is in include_geom_groups=\(4, 5\)"):
        build(terrain(False), cfg)
