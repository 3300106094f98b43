"""Events of contacts, kinematic bodies that push, and sleep."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.entity import EntityCfg
from manyworlds.lab import LiveLab, world_from_file, world_from_scene, world_from_spec
from manyworlds.lab.play.contact_events import MOST_EVENTS
from manyworlds.lab.verbs import VerbError
from manyworlds.scene import SceneCfg
from manyworlds.terrains import TerrainEntityCfg
from tests.lab.conftest import ARM


def fall(lab: LiveLab, steps: int = 400) -> None:
    """Make some steps."""
    for _ in range(steps):
        lab.loop.iterate_once()


def test_a_touch_is_an_event(lab):
    """Let the ball fall: the callback runs once, with both names; it ends as the ball is lifted."""
    seen, ends, both = [], [], []
    lab.on_contact(seen.append, "ball", "world")
    lab.on_contact(ends.append, "ball", "world", moment="end")
    lab.on_contact(both.append, "", "floor", kind="geom", moment="both")
    fall(lab)
    assert len(seen) == 1 and not ends
    event = seen[0]
    assert (event.event, event.first, event.second, event.kind) == (
        "begin",
        "ball",
        "world",
        "body",
    )
    # It falls 0.25 m.
    assert event.time == pytest.approx(np.sqrt(2 * 0.25 / 9.81), abs=0.01)
    assert [e.second for e in both] == ["floor"]
    lab.call("set_qpos", target="arm", qpos=[0.0, 0.0, 0.5, 0, 2.0, 1, 0, 0, 0], still=True)
    fall(lab, 3)
    assert len(ends) == 1 and ends[0].event == "end" and len(both) == 2
    assert [event.number for event in lab.contacts.log()] == list(range(lab.contacts.count))


def test_callbacks_that_fail_are_reported(lab):
    """Raise in a callback: the world goes on, and the failure is said."""

    def fail(event):
        raise RuntimeError("no brakes")

    watch = lab.on_contact(fail, "ball")
    fall(lab)
    assert "no brakes" in lab.loop.reports.lines[0] and not lab.loop.fault
    watch.remove()
    lab.reset()
    fall(lab)
    assert not lab.loop.reports.lines


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"first": "bal"}, "No body matches 'bal'; did you mean 'ball'"),
        ({"first": "("}, r"'\(' is no regular expression"),
        ({"kind": "site"}, "must be one of body, geom"),
        ({"moment": "start"}, "must be one of begin, end, both"),
    ],
)
def test_wrong_watches_are_refused(lab, fields, sentence):
    """Watch what is not there: an error at once."""
    with pytest.raises(VerbError, match=sentence):
        lab.call("watch_contacts", **fields)
    assert not lab.contacts.watches


def test_bodies_without_geoms_are_not_watched():
    """Watch the terrain's body whose geoms belong to the world: an error has the right body."""
    cfg = SceneCfg(terrain=TerrainEntityCfg(on_world_body=True), entities={})
    lab = LiveLab(world_from_scene(cfg))
    with pytest.raises(VerbError, match=r"\(terrain\), which has no geoms: .* such as 'world'"):
        lab.call("watch_contacts", first="terrain")
    lab.call("watch_contacts", first="world")
    lab.stop()


def test_clients_read_the_log(lab):
    """Watch by a verb, and read what is new; a reset begins again, the log is bounded."""
    number = lab.call("watch_contacts", first="ball")["watch"]
    fall(lab)
    reply = lab.call("read_contact_events")
    assert [event["event"] for event in reply["events"]] == ["begin"]
    assert lab.call("read_contact_events", since=reply["next"])["events"] == []
    lab.reset()
    fall(lab)
    assert len(lab.call("read_contact_events", since=reply["next"])["events"]) == 1
    lab.call("unwatch_contacts", watch=number)
    lab.reset()
    fall(lab)
    assert lab.contacts.count == 2
    with pytest.raises(VerbError, match="no watch 7"):
        lab.call("unwatch_contacts", watch=7)
    assert lab.contacts._log.maxlen == MOST_EVENTS


def test_rebuilds_keep_watches(lab):
    """Rebuild the world: watches find their names again, or end, which is said."""
    seen = []
    lab.on_contact(seen.append, "ball", "world")
    lab.on_contact(seen.append, "post")
    spec = mujoco.MjSpec.from_string(ARM)
    spec.delete(spec.body("post"))
    spec.worldbody.add_geom(size=[0.1, 0.1, 0.1], pos=[5, 5, 5])
    lab.rebuild(world_from_spec(spec))
    fall(lab)
    assert len(seen) == 1 and len(lab.contacts.watches) == 1
    assert any("a watch of contacts ended" in note for note in lab.rebuild_notes)


@pytest.mark.parametrize("name", ["hopper.xml", "ant.xml", "walker2d_v5.xml"])
def test_events_are_those_of_plain_mujoco(name):
    """Step models of gymnasium: events are the changes of the pairs of `mjData.contact`."""
    import gymnasium.envs.mujoco as package

    lab = LiveLab(world_from_file(Path(package.__file__).parent / "assets" / name))
    lab.contacts.watch(kind="geom", moment="both")
    model, data = lab.model, lab.loop.data
    pairs: set[tuple[str, str]] = set()
    for _ in range(200):
        before = lab.contacts.count
        lab.loop.iterate_once()
        for event in lab.contacts.log(before):
            (pairs.add if event.event == "begin" else pairs.remove)(
                tuple(sorted((event.first, event.second)))
            )
        present = {
            tuple(sorted((model.geom(c.geom1).name, model.geom(c.geom2).name)))
            for c in data.contact
            if not c.exclude
        }
        assert present == pairs
    assert lab.contacts.count
    lab.stop()


CUBE = """
<mujoco><worldbody>
  <body name="cube"><freejoint/><geom name="cube" type="box" size=".1 .1 .1" mass="1"/></body>
</worldbody></mujoco>
"""


def test_kinematic_entities_push_and_are_not_pushed():
    """Move a kinematic cube against a free one: only the free one gives way; gravity spares it."""
    cube = lambda: mujoco.MjSpec.from_string(CUBE)  # noqa: E731
    floor = mujoco.MjSpec()
    floor.worldbody.add_body(name="floor").add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1]
    )
    at = EntityCfg.InitialStateCfg
    scene = SceneCfg(
        entities={
            "floor": EntityCfg(spec_fn=lambda: floor),
            "pusher": EntityCfg(spec_fn=cube, init_state=at(pos=(0, 0, 0.11)), kinematic=True),
            "free": EntityCfg(spec_fn=cube, init_state=at(pos=(0.25, 0, 0.1))),
        }
    )
    lab = LiveLab(world_from_scene(scene))
    pose = None
    for i in range(300):
        pose = [0.001 * i, 0.0, 0.11]
        lab.call("set_mocap_pose", body="pusher/mocap_base", pos=pose)
        lab.loop.iterate_once()
    pusher, free = (lab.model.body(f"{name}/cube").id for name in ("pusher", "free"))
    np.testing.assert_allclose(lab.snapshot.xpos[pusher], pose, atol=1e-12)
    assert lab.snapshot.xpos[free][0] > 0.45
    lab.stop()


def test_kinematic_robots_are_refused_actuators():
    """Make a robot kinematic: its base does not fall, and its joints still move."""
    from manyworlds.asset_zoo.quadruped import get_quadruped_cfg

    cfg = get_quadruped_cfg()
    cfg.kinematic = True
    lab = LiveLab(world_from_scene(SceneCfg(entities={"dog": cfg})))
    before = lab.snapshot.xpos[lab.model.body("dog/trunk").id].copy()
    fall(lab, 50)
    np.testing.assert_array_equal(lab.snapshot.xpos[lab.model.body("dog/trunk").id], before)
    assert lab.model.nq == 12 and lab.model.nmocap == 1
    lab.stop()


def test_bodies_sleep_and_wake():
    """Let a box come to rest: it sleeps; wake it, let it sleep again; errors are sentences."""
    spec = mujoco.MjSpec.from_string(CUBE)
    spec.body("cube").pos = 0, 0, 0.1
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    awake = spec.worldbody.add_body(name="awake", pos=[-3, 0, 0.1])
    awake.add_freejoint()
    awake.add_geom(size=[0.1, 0, 0])
    awake.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    spec.worldbody.add_body(name="wall").add_geom(size=[0.1, 0.1, 0.1], pos=[3, 0, 0])
    lab = LiveLab(world_from_spec(spec))
    with pytest.raises(VerbError, match="switch on MuJoCo's flag 'sleep'"):
        lab.call("wake_bodies")
    lab.call("set_sim_flag", flag="sleep", on=True)
    fall(lab, 1000)
    data = lab.loop.data
    assert data.tree_asleep[0] >= 0
    assert lab.call("wake_bodies", body="cube")["trees"] == 1
    lab.loop.iterate_once()
    assert data.tree_asleep[0] < 0
    assert lab.call("wake_bodies")["trees"] == 0
    assert lab.call("put_bodies_to_sleep", body="cube")["trees"] == 1
    fall(lab, 2)
    assert data.tree_asleep[0] >= 0, "it need not wait"
    with pytest.raises(VerbError, match="'wall' has no joint"):
        lab.call("wake_bodies", body="wall")
    with pytest.raises(VerbError, match="'awake' may never sleep"):
        lab.call("put_bodies_to_sleep", body="awake")
    lab.stop()
