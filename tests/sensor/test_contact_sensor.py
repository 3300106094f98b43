"""Contact sensors against MuJoCo's list of contacts."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sensor import ContactMatch, ContactSensorCfg
from manyworlds.sensor.contact_sensor import FIELDS
from tests.sensor.contact_loop import contacts, matcher, reduced
from tests.sensor.scenes import BALL, build, entity, heap, mj_data

ALL = tuple(FIELDS)
# A box on the trunk, so that the trunk is in contact with several things at once.
CRATE = """
<mujoco><worldbody><body name="crate" pos=".02 0 .235">
  <freejoint/><geom name="crate" type="box" size=".06 .05 .05" condim="3"/>
</body></worldbody></mujoco>
"""


def settled(
    *sensors: ContactSensorCfg,
    num_envs: int = 2,
    steps: int = 25,
    with_crate: bool = True,
    **kwargs,
):
    """Let a robot with a crate on it fall to the floor; worlds move apart by their controls."""
    entities = {"robot": entity(heap(), (0, 0, 0.13))}
    if with_crate:
        entities["crate"] = entity(CRATE, (0.02, 0, 0.235))
    scene, sim = build(entities, *sensors, num_envs=num_envs, **kwargs)
    sim.data.ctrl[:, 0] = torch.linspace(-2, 6, num_envs, device=sim.device)
    for _ in range(steps):
        sim.step()
        scene.update(0.005)
    sim.forward()
    scene.invalidate_sensors()
    return scene, sim


def feet(**kwargs) -> ContactSensorCfg:
    """Watch the bodies of the robot."""
    primary = kwargs.pop("primary", ContactMatch("body", ("foot", "trunk"), "robot"))
    return ContactSensorCfg(name="feet", primary=primary, **kwargs)


PAIRS = [
    (ContactMatch("geom", ("trunk", "toe"), "robot"), None),
    (ContactMatch("body", ("trunk", "foot"), "robot"), ContactMatch("geom", "floor")),
    (ContactMatch("body", ("trunk", "foot"), "robot"), ContactMatch("body", "world")),
    (ContactMatch("subtree", ("thigh",), "robot"), ContactMatch("body", "world")),
    (ContactMatch("subtree", "trunk", "robot"), ContactMatch("subtree", "crate", "crate")),
    (ContactMatch("geom", "floor"), ContactMatch("subtree", "trunk", "robot")),
]


@pytest.mark.parametrize("reduce", ["none", "mindist", "maxforce", "netforce"])
@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_fields_are_those_of_the_list_of_contacts(reduce: str, pair: int):
    """Show every field of every slot as a loop over contacts finds it."""
    primary, secondary = PAIRS[pair]
    cfg = feet(primary=primary, secondary=secondary, fields=ALL, reduce=reduce, num_slots=3)
    scene, sim = settled(cfg)
    sensor = scene["feet"]
    prefix = f"{primary.entity}/" if primary.entity else ""
    other = None
    if secondary is not None:
        start = f"{secondary.entity}/" if secondary.entity else ""
        other = matcher(secondary.mode, f"{start}{secondary.pattern}")
    seen = 0
    for env in range(2):
        data = mj_data(sim, env)
        for i, name in enumerate(sensor.primary_names):
            hits = contacts(sim.mj_model, data, matcher(primary.mode, prefix + name), other)
            seen += len(hits)
            slots = reduced(hits, reduce, 3)
            for slot in range(3):
                row = i * 3 + slot
                shown = {f: getattr(sensor.data, f)[env, row].numpy() for f in ALL}
                if slot >= len(slots):
                    assert all((value == 0).all() for value in shown.values())
                    continue
                assert shown["found"] == len(hits)
                for field, value in slots[slot].items():
                    if field in shown:
                        np.testing.assert_allclose(shown[field], value, rtol=2e-5, atol=1e-6)
    assert seen >= 2


@pytest.mark.usefixtures("engine")
@pytest.mark.slow_on_warp
@pytest.mark.parametrize("reduce", ["none", "maxforce", "netforce"])
def test_one_sensor_shows_what_a_sensor_for_each_field_shows(reduce: str):
    """Equal, bit for bit, MuJoCo's sensors of one field each, compiled by hand."""
    scene, sim = settled(feet(fields=ALL, reduce=reduce, num_slots=2))
    spec = scene.spec.copy()
    kinds = ["none", "mindist", "maxforce", "netforce"]
    for i, field in enumerate(ALL):
        for body in ("trunk", "foot"):
            spec.add_sensor(
                name=f"{field}_{body}",
                type=mujoco.mjtSensor.mjSENS_CONTACT,
                objtype=mujoco.mjtObj.mjOBJ_BODY,
                objname=f"robot/{body}",
                intprm=[1 << i, kinds.index(reduce), 2],
            )
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.ctrl = sim.data.qpos[1], sim.data.qvel[1], sim.data.ctrl[1]
    mujoco.mj_forward(model, data)
    for body in ("trunk", "foot"):
        slots = data.sensor(f"feet_{body}").data.reshape(2, sum(FIELDS.values()))
        assert np.abs(slots).sum() > 0
        start = 0
        for field, width in FIELDS.items():
            alone = data.sensor(f"{field}_{body}").data.reshape(2, width)
            np.testing.assert_array_equal(slots[:, start : start + width], alone)
            start += width


def test_fields_are_copies():
    """Bind nothing before a read, and return values that later steps leave alone."""
    scene, sim = settled(feet(fields=ALL, num_slots=2))
    assert "sensordata" not in sim._engine._derived
    data = scene["feet"].data
    assert data.force.shape == (2, 4, 3)
    read = {field: getattr(data, field).clone() for field in ALL}
    sim.data.sensordata.fill_(7.0)
    for field in ALL:
        assert torch.equal(getattr(data, field), read[field])
    assert data.force_history is None and data.current_air_time is None


def test_global_frame_rotates_forces():
    """Give force and torque in the world's axes, as the loop over contacts does."""
    cfg = feet(fields=ALL, global_frame=True, num_slots=2, reduce="none")
    scene, sim = settled(cfg)
    data = mj_data(sim, 1)
    shown = scene["feet"].data
    for i, name in enumerate(scene["feet"].primary_names):
        hits = contacts(sim.mj_model, data, matcher("body", f"robot/{name}"), None)[:2]
        assert hits
        for slot, hit in enumerate(hits):
            for field in ("force", "torque"):
                row = getattr(shown, field)[1, 2 * i + slot].numpy()
                np.testing.assert_allclose(row, hit[f"{field}_w"], rtol=2e-5, atol=1e-5)


def bouncing(cfg: ContactSensorCfg, steps: int, num_envs: int = 2):
    """Drop balls from different heights; return what each physics step showed, too."""
    scene, sim = build({"ball": entity(BALL, (0, 0, 0.15))}, cfg, num_envs=num_envs)
    sim.data.qpos[:, 2] += torch.arange(num_envs) * 0.3
    # As elastic as a contact gets.
    sim.model.geom_solref[:] = torch.tensor([-4000.0, -5.0])
    sim.forward()
    found, forces = [], []
    for i in range(steps):
        sim.step(refresh=i % 4 == 3)
        scene.update(0.005)
        found.append(sim.data.sensordata[:, 0] > 0)
        forces.append(sim.data.sensordata[:, 1:4].clone())
    return scene, sim, torch.stack(found), torch.stack(forces)


def ball_sensor(**kwargs) -> ContactSensorCfg:
    """Watch a ball."""
    return ContactSensorCfg(name="ball", primary=ContactMatch("geom", "g", "ball"), **kwargs)


def times_by_hand(touching: list[bool], dt: float) -> tuple[float, float, float, float]:
    """Air and contact times of one primary, by counting steps."""
    runs = [[touching[0], 0]]
    for state in touching:
        if state != runs[-1][0]:
            runs.append([state, 0])
        runs[-1][1] += 1
    result = []
    for kind in (False, True):
        mine = [length for state, length in runs[:-1] if state == kind]
        current = runs[-1][1] if runs[-1][0] == kind else 0
        result += [current * dt, (mine[-1] if mine else 0) * dt]
    return tuple(result)


@pytest.mark.usefixtures("engine")
@pytest.mark.slow_on_warp
@pytest.mark.parametrize("fields", [("found", "force"), ("found",)])
def test_air_time_is_that_of_a_loop_over_physics_steps(fields: tuple[str, ...]):
    """Count the steps in the air and in contact, whenever the last one ends."""
    for steps in (7, 40, 61, 150, 237):
        cfg = ball_sensor(fields=fields, reduce="none", track_air_time=True)
        scene, _, found, _ = bouncing(cfg, steps)
        data = scene["ball"].data
        shown = torch.stack(
            [
                data.current_air_time,
                data.last_air_time,
                data.current_contact_time,
                data.last_contact_time,
            ]
        )[:, :, 0]
        for env in range(2):
            expected = times_by_hand(found[:, env].tolist(), 0.005)
            np.testing.assert_allclose(shown[:, env], expected, rtol=1e-6)
    assert found.any(0).all() and (~found).any(0).all()


@pytest.mark.usefixtures("engine")
def test_tracking_sees_the_contacts_of_every_physics_step():
    """Find the contacts of plain MuJoCo C, step by step, also where kinematics run ahead."""
    cfg = ball_sensor(fields=("found",), reduce="none", track_air_time=True)
    _, sim, found, _ = bouncing(cfg, 120)
    data = mujoco.MjData(sim.mj_model)
    sim.mj_model.geom_solref[:] = (-4000.0, -5.0)
    mujoco.mj_resetDataKeyframe(sim.mj_model, data, 0)
    expected = []
    for _ in range(120):
        mujoco.mj_step(sim.mj_model, data)
        expected.append(data.ncon > 0)
    assert found[:, 0].tolist() == expected


@pytest.mark.usefixtures("engine")
def test_first_contact_and_first_air():
    """Tell touch-downs and take-offs of the last moments from older ones."""
    cfg = ball_sensor(track_air_time=True)
    scene, sim, found, _ = bouncing(cfg, 30, num_envs=1)
    touching = found[-1, 0].item()
    seen = set()
    for _ in range(150):
        sim.step()
        scene.update(0.005)
        before, touching = touching, bool(sim.data.sensordata[0, 0] > 0)
        assert scene["ball"].compute_first_contact(0.005).item() == (touching and not before)
        assert scene["ball"].compute_first_air(0.005).item() == (before and not touching)
        seen.add((before, touching))
    assert len(seen) == 4
    with pytest.raises(RuntimeError, match="set track_air_time=True"):
        build({"ball": entity(BALL)}, ball_sensor())[0]["ball"].compute_first_air(0.1)


def test_air_time_is_exact_at_a_large_clock():
    """Add up a million seconds without losing a step of a millisecond."""
    scene, sim = build({"ball": entity(BALL, (0, 0, 2))}, ball_sensor(track_air_time=True))
    sensor = scene["ball"]
    sensor.update(1e6)
    sensor.reset()
    sim.data.time[:] = 1e6
    for _ in range(7):
        sensor.update(0.001)
    assert sensor.data.current_air_time.item() == pytest.approx(0.007, rel=1e-6)


@pytest.mark.usefixtures("engine")
@pytest.mark.slow_on_warp
@pytest.mark.parametrize("length", [1, 3, 5])
def test_history_holds_the_last_physics_steps(length: int):
    """Show the newest first, and zeros where there was nothing yet."""
    cfg = ball_sensor(fields=("found", "force", "dist"), history_length=length)
    for steps in (1, 4, 62, 63):
        scene, _, _, forces = bouncing(cfg, steps)
        data = scene["ball"].data
        expected = torch.zeros(2, 1, length, 3)
        for age in range(min(length, steps)):
            expected[:, 0, age] = forces[steps - 1 - age]
        assert torch.equal(data.force_history, expected)
        assert data.dist_history.shape == (2, 1, length) and data.torque_history is None
    assert data.force_history.abs().sum() > 0


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_one_update_tells_of_all_physics_steps_since_the_last(engine: str):
    """Track, bit for bit, what updates after every physics step track; also after resets."""
    if engine == "warp":
        pytest.importorskip("mujoco_warp")
    primary = ContactMatch("body", ("foot", "trunk"), "robot")
    cfgs = (
        ContactSensorCfg(name="times", primary=primary, track_air_time=True, num_slots=2),
        ContactSensorCfg(
            name="forces",
            primary=primary,
            fields=("force", "torque", "dist", "normal", "tangent"),
            history_length=5,
            global_frame=True,
        ),
    )
    entities = {"robot": entity(heap(), (0, 0, 0.16))}
    shown = []
    for keep in (0, 4):
        scene, sim = build(entities, *cfgs, num_envs=3, engine=engine, keep=keep)
        assert scene.needs_substeps is (keep == 0)
        sim.data.ctrl[:, 0] = torch.tensor([-5.0, 0.0, 6.0])
        seen = []
        for step in range(12):
            if step == 7:
                sim.reset([1])
                sim.data.qpos[1] = torch.from_numpy(sim.mj_model.key_qpos[0]).float()
                scene.reset([1])
                sim.forward([1])
            count = 3 if step % 2 else 4  # fewer than are kept, too
            for _ in range(1 if keep else count):
                sim.step(count if keep else 1)
                scene.update((count if keep else 1) * 0.005)
            for name in ("times", "forces"):
                fields = vars(scene[name].data).values()
                seen += [field.clone() for field in fields if field is not None]
        shown.append(seen)
    assert all(torch.equal(one, other) for one, other in zip(*shown, strict=True))
    assert len({tuple(times.flatten().tolist()) for times in shown[0]}) > 40


@pytest.mark.usefixtures("engine")
def test_reset_forgets_the_worlds_named_only():
    """Clear times and history of some worlds; leave those of the others, bit for bit."""
    cfg = ball_sensor(track_air_time=True, history_length=3)
    scene, _, _, _ = bouncing(cfg, 100, num_envs=4)
    sensor = scene["ball"]
    before = {
        field.name: value.clone()
        for field in dataclasses.fields(sensor.data)
        if (value := getattr(sensor.data, field.name)) is not None
    }
    scene.reset(torch.tensor([1, 3]))
    for name, old in before.items():
        new = getattr(sensor.data, name)
        assert torch.equal(new[[0, 2]], old[[0, 2]])
        if name.endswith(("_time", "_history")):
            assert not new[[1, 3]].any()


@pytest.mark.usefixtures("engine")
def test_state_goes_on_bit_for_bit():
    """Go on from a saved state, in a scene that was never read, as if nothing had happened."""
    cfg = ball_sensor(track_air_time=True, history_length=3)
    scene, sim, _, _ = bouncing(cfg, 61)
    saved, physics = scene.state_dict(), sim.state_dict()
    other, other_sim, _, _ = bouncing(cfg, 2)
    other_sim.load_state_dict(physics)
    other.load_state_dict(saved)
    for _ in range(40):
        for one, simulation in ((scene, sim), (other, other_sim)):
            simulation.step()
            one.update(0.005)
        ours, theirs = scene["ball"].data, other["ball"].data
        for name in ("force", "force_history", "current_air_time", "last_contact_time"):
            assert torch.equal(getattr(ours, name), getattr(theirs, name))


def test_matches_are_chosen_by_pattern_and_exclusion():
    """Select by regular expression in an entity or the scene, less exact or pattern exclusions."""
    entities = {"robot": entity(heap())}
    for match, expected in (
        (ContactMatch("geom", ".*", "robot", exclude=("trunk",)), ["thigh", "foot", "toe"]),
        (ContactMatch("geom", ("t.*",), "robot", exclude=("t[oh].*",)), ["trunk"]),
        (ContactMatch("body", "robot/.*oot"), ["robot/foot"]),
        (ContactMatch("geom", "floor"), ["floor"]),
    ):
        scene, sim = build(entities, feet(primary=match))
        assert scene["feet"].primary_names == expected
        assert sim.mj_model.sensor(f"feet_{expected[0]}").dim[0] == 4


def test_secondary_policy():
    """Take the first of several secondaries, or anything, or raise, as the policy says."""
    several = ContactMatch("geom", ("t.*"), "robot")

    def refname(policy: str) -> str:
        cfg = feet(secondary=several, secondary_policy=policy)
        return build({"robot": entity(heap())}, cfg)[0].spec.sensors[0].refname

    assert refname("first") == "robot/trunk"
    assert refname("any") == ""
    with pytest.raises(ValueError, match=r"secondary matches \['trunk', 'thigh', 'toe'\]"):
        refname("error")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": ("found", "frce")}, r"unknown fields \['frce'\]: choose from \['found'"),
        ({"fields": ()}, "has no fields"),
        ({"reduce": "max"}, "unknown reduce 'max'"),
        ({"num_slots": 0}, "num_slots must be at least 1, got 0"),
        ({"num_slots": 1.5}, "num_slots must be a whole number, got 1.5"),
        ({"history_length": -1}, "history_length must be at least 0, got -1"),
        ({"secondary_policy": "all"}, "unknown secondary_policy 'all': choose from"),
        ({"history_length": 2, "fields": ("found",)}, "has a history without fields"),
        ({"global_frame": True}, "requires 'normal' and 'tangent' in fields"),
        ({"primary": ContactMatch("site", "x", "robot")}, "unknown mode 'site'"),
        ({"primary": ContactMatch("geom", "x", "robt")}, "names the entity 'robt'"),
        (
            {"primary": ContactMatch("geom", "to", "robot")},
            r"in the entity 'robot': .*Did you mean",
        ),
        (
            {"primary": ContactMatch("geom", "toe", "robot", exclude=("t.e",))},
            r"matches \['toe'\], all of which exclude=\('t.e',\) removes",
        ),
    ],
)
def test_errors_name_what_was_tried(options: dict, message: str):
    """Refuse a configuration with one sentence."""
    with pytest.raises(ValueError, match=f"Contact sensor 'feet'.*{message}"):
        build({"robot": entity(heap())}, feet(**options))


def test_debug_draws_contacts_in_the_world():
    """Draw a sphere at each contact and an arrow along its force, in the worlds asked for."""
    scene, _ = settled(feet(fields=ALL, reduce="none", num_slots=8, debug=True))

    class Pen:
        meansize = 0.1
        drawn: list = []
        lengths: list = []

        def get_env_indices(self, num_envs: int) -> range:
            return range(1, num_envs)

        def add_sphere(self, center: np.ndarray, *_: object) -> None:
            self.drawn.append(center)

        def add_arrow(self, start: np.ndarray, end: np.ndarray, *_: object, **__: object) -> None:
            assert np.array_equal(start, self.drawn[-1])
            self.lengths.append(np.linalg.norm(end - start))

    scene["feet"].debug_vis(Pen())
    np.testing.assert_allclose(
        Pen.lengths[0], 1e-3 * scene["feet"].data.force[1, 0].norm(), rtol=1e-3, atol=1e-6
    )
    assert max(Pen.lengths) > 0.01
    assert len(Pen.drawn) == int((scene["feet"].data.found[1] > 0).sum()) > 0


def test_warp_shows_the_same():
    """Give on MuJoCo Warp, up to its precision, what the native engine gives.

    Without the crate, since the engines put contacts between two boxes at other places.
    """
    pytest.importorskip("mujoco_warp")
    cfg = feet(fields=ALL, reduce="mindist", num_slots=2, track_air_time=True, history_length=2)
    pose = settled(with_crate=False)[1].data.qpos.clone()
    pose[:, 4] += 0.005  # a roll, so that no two contacts are equally deep
    shown = []
    for engine in ("native", "warp"):
        scene, sim = settled(cfg, engine=engine, steps=2, with_crate=False)
        sim.data.qpos[:] = pose
        sim.data.qvel[:] = 0.0
        sim.forward()
        scene.invalidate_sensors()
        shown.append(scene["feet"].data)
    native, warp = shown
    assert torch.equal(native.found, warp.found) and native.found.sum() > 0
    for field in ("dist", "pos", "normal", "tangent"):
        a, b = getattr(native, field), getattr(warp, field)
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(native.force, warp.force, rtol=1e-2, atol=1e-2)
    assert native.force_history.shape == warp.force_history.shape
