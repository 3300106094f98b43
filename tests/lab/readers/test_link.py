"""A lab and a reader that is linked to it, here in one process."""

from __future__ import annotations

import gc
import os
import queue
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, VerbError, world_from_spec
from manyworlds.lab.face import LabFace
from manyworlds.lab.facts import LabFacts
from manyworlds.lab.readers.link import LabLink
from manyworlds.lab.readers.remote_lab import RemoteLab
from manyworlds.lab.readers.wire import Wire, pack, unpack
from tests.lab.conftest import ARM
from tests.waiting import PATIENCE_S, until


class Linked:
    """A lab, its link, and the reader's end of it."""

    def __init__(self, **kwargs) -> None:
        self.lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(**kwargs))
        near, far = socket.socketpair()
        self.events: queue.Queue = queue.Queue()
        self.heard: queue.Queue = queue.Queue()
        self.link = LabLink(Wire(near), self.heard.put, lambda: self.heard.put("ended"))
        self.remote = RemoteLab(Wire(far), self.events.put)

    def open(self) -> RemoteLab:
        """Start the lab, and show it to the reader."""
        self.lab.start()
        self.link.show(self.lab)
        assert self.events.get(timeout=PATIENCE_S)["event"] == "lab"
        self.remote.sync_model()
        return self.remote

    def close(self) -> None:
        """End everything."""
        self.remote.close()
        self.link.close()
        self.lab.stop()


@pytest.fixture
def linked():
    """Make a lab with a reader."""
    made = []

    def make(**kwargs) -> Linked:
        made.append(Linked(**{"mode": "direct", **kwargs}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_messages_keep_their_values():
    """Pack plain data, bytes and arrays of several types: all come back, and nothing else goes."""
    message = {
        "text": "ü",
        "none": None,
        "flags": [True, np.bool_(False)],
        "numbers": [1, 2.5, float("inf"), np.float64(0.1), np.int32(7)],
        "bytes": b"\0\xff",
        "arrays": {"a": np.arange(6.0).reshape(2, 3), "b": np.array([], np.int32)},
        "strided": np.arange(10)[::3],
        "scalar": np.array(0.25),
        "tuple": (1, "two"),
    }
    got = unpack(pack(message))
    assert got["text"] == "ü" and got["none"] is None and got["flags"] == [True, False]
    assert got["numbers"] == [1, 2.5, float("inf"), 0.1, 7]
    assert got["bytes"] == b"\0\xff" and got["tuple"] == [1, "two"]
    for name, value in message["arrays"].items():
        np.testing.assert_array_equal(got["arrays"][name], value)
        assert got["arrays"][name].dtype == value.dtype
    assert got["strided"].tolist() == [0, 3, 6, 9] and got["scalar"] == 0.25
    for bad in (object(), lambda: None, np.array([object()]), np.array(["text"]), 2**70):
        with pytest.raises(TypeError, match="cannot contain"):
            pack({"bad": bad})


def test_a_reader_has_the_face_of_the_lab(linked):
    """Read through the link: model, robots, catalogue and snapshots are the lab's."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    assert isinstance(remote, LabFace) and isinstance(lab, LabFace)
    assert remote.robots == lab.robots and remote.describe_verbs() == lab.describe_verbs()
    for name in ("body_mass", "geom_size", "qpos0", "jnt_range"):
        np.testing.assert_array_equal(getattr(remote.model, name), getattr(lab.model, name))
    for _ in range(5):
        lab.step(10)
        assert remote.snapshot.block.tobytes() == lab.snapshot.block.tobytes()
        assert remote.snapshot.frame_id == lab.snapshot.frame_id


def test_verbs_act_and_reply_as_in_the_lab(linked):
    """Call verbs: replies are equal, and the snapshot after a reply is at least as new."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    reply = remote.call("step", n_steps=7)
    assert reply["step"] == 7 == remote.snapshot.step
    assert remote.snapshot.frame_id >= int(str(reply["frame_id"]))
    targets = {"shoulder": 0.25}
    assert remote.call("set_targets", robot="arm", targets=targets)["accepted"] is True
    assert lab["arm"].command.targets[0] == 0.25
    kept = remote.call("capture_state", label="here")["label"]
    content = remote.call("export_state", label=kept)["content"]
    assert content == lab.states.pack("here")
    assert remote.call("import_state", content=content, name="x")["label"]
    ray = {"origin": np.array([0.5, 0, 2.0]), "direction": (0, 0, -1)}
    assert remote.call("pick_body", **ray)["body"] == lab.call("pick_body", **ray)["body"] != ""


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("nothing", {}),
        ("step", {"n_steps": -1}),
        ("set_targets", {"robot": "arm"}),
        ("set_targets", {"robot": "leg", "targets": {}}),
        ("set_targets", {"robot": "arm", "targets": {"knee": 1.0}}),
        ("steer_command", {"term": "twist"}),
        ("restore_state", {"label": "never"}),
    ],
)
def test_errors_of_verbs_arrive(linked, verb, fields):
    """Call verbs that the lab refuses: code and text are those that the lab gives."""
    pair = linked()
    remote = pair.open()
    with pytest.raises(VerbError) as here:
        pair.lab.call(verb, **fields)
    with pytest.raises(VerbError) as there:
        remote.call(verb, **fields)
    assert (there.value.code, str(there.value)) == (here.value.code, str(here.value))


def test_fields_that_cannot_travel_are_refused(linked):
    """Call a verb with an object: the error names it, and the link still works."""
    remote = linked().open()
    with pytest.raises(VerbError, match="cannot contain function"):
        remote.call("step", n_steps=lambda: 1)
    assert remote.call("step")["step"] == 1


def test_changes_of_the_model_arrive(linked):
    """Edit options, a mass and a flag: `sync_model` writes them into the same model."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    model = remote.model
    remote.call("set_sim_options", options={"timestep": 0.004, "gravity": [0, 0, -1.0]})

    def heavier(model, data) -> None:
        model.body_mass[1] = 7.0

    lab.post(heavier).result()
    assert model.opt.timestep == 0.002
    remote.sync_model()
    assert remote.model is model and model.opt.timestep == 0.004
    assert model.opt.gravity.tolist() == [0, 0, -1.0] and model.body_mass[1] == 7.0
    assert remote.snapshot.model_version == lab.snapshot.model_version


def test_threads_bring_the_values_once(linked, monkeypatch):
    """Ask for changed values once, however many threads want them: none writes older values."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    asked, ask = [], remote._ask

    def ask_slowly(request):
        asked.append(request)
        reply = ask(request)
        time.sleep(0.1)
        return reply

    monkeypatch.setattr(remote, "_ask", ask_slowly)

    def heavier(model, data) -> None:
        model.body_mass[1] = 7.0

    lab.post(heavier).result()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: remote.sync_model(), range(4)))
    assert asked == [{"values": True}]
    assert remote.model.body_mass[1] == 7.0


def test_a_rebuilt_world_arrives(linked):
    """Rebuild with another body: the reader gets the new model with `sync_model`."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    before = remote.model
    more = ARM.replace("</worldbody>", '<body name="new"><geom size=".1"/></body></worldbody>')
    assert lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(more)))
    remote.call("step")
    until(lambda: remote.model is not before, "the model does not come", remote.sync_model)
    assert remote.model.nbody == before.nbody + 1
    assert remote.snapshot.xpos.shape == lab.snapshot.xpos.shape
    remote.call("step", n_steps=3)
    assert remote.snapshot.block.tobytes() == lab.snapshot.block.tobytes()


def test_facts_follow_verbs_at_once(linked):
    """Call verbs through the link: the facts after each reply have its effect, in any thread."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    for count in range(10):
        owner = f"client {count}"
        remote.call("take_robot", robot="arm", owner=owner)
        assert remote.facts.robots["arm"].owner == owner == lab.facts.robots["arm"].owner
    with ThreadPoolExecutor(4) as pool:

        def save(label: str) -> bool:
            remote.call("capture_state", label=label)
            return label in remote.facts.states

        assert all(pool.map(save, (f"state {i}" for i in range(20))))
    with pytest.raises(VerbError):
        remote.call("hold_keyframe", robot="arm", keyframe_name="none")
    plain = lab.call("read_status")
    for changing in ("real_time_factor", "behind_s", "timeline"):
        plain[changing] = remote.facts.plain()[changing]
    assert remote.facts == LabFacts.from_plain(plain)


def test_changed_facts_are_pushed(linked, monkeypatch):
    """Change an owner in the lab's process: it arrives, and the reader does not ask again."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    assert remote.facts.robots["arm"].owner == "panel"
    monkeypatch.setattr(remote, "_ask", None)
    lab["arm"].take("script")
    until(lambda: remote.facts.robots["arm"].owner == "script", "the owner does not come")
    lab.pause()
    until(lambda: remote.facts.paused, "the pause does not come")
    before = remote.facts
    time.sleep(0.3)
    assert remote.facts is before, "what does not change is not sent"


def test_facts_of_a_rebuilt_world_arrive(linked):
    """Rebuild without actuators: the facts have no robot any more."""
    pair = linked()
    remote, lab = pair.open(), pair.lab
    assert [*remote.facts.robots] == ["arm"]
    assert lab.rebuild(world_from_spec(mujoco.MjSpec.from_string("<mujoco/>")))
    assert not lab.facts.robots
    until(lambda: not remote.facts.robots, "the facts do not come")


def test_a_call_needs_no_other_thread(linked):
    """Keep both threads that receive events busy: a call has its reply all the same."""
    pair = linked()
    remote, gate, busy = pair.open(), threading.Event(), queue.Queue()

    def hold(message) -> None:
        busy.put(message)
        gate.wait()

    pair.link._heard = pair.remote._heard = hold
    try:
        remote.call("read_status")  # has a socket from now on
        remote.tell("something")
        pair.link.tell("something")
        for _ in range(2):
            busy.get(timeout=PATIENCE_S)
        with ThreadPoolExecutor(1) as caller:
            asked = caller.submit(remote.call, "step")
            try:
                assert asked.result(PATIENCE_S)["step"] == 1
            finally:
                gate.set()
    finally:
        gate.set()


def test_either_end_may_end(linked):
    """Close the lab's end, then the reader's: waiting calls fail with an error, and both know."""
    first, second = linked(), linked()
    remote = first.open()
    first.link.close()
    assert first.events.get(timeout=PATIENCE_S) == {"event": "ended"}
    with pytest.raises(VerbError, match="has ended") as error:
        remote.call("step")
    assert error.value.code == "not_ready"
    assert first.lab.step().step == 1, "the lab goes on"
    second.open().close()
    assert second.heard.get(timeout=PATIENCE_S) == "ended"
    assert second.lab.step().step == 1


def test_descriptors_are_closed():
    """Open and close several linked labs: no file descriptor is left over."""

    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    def once() -> None:
        pair = Linked(mode="direct")
        pair.open().call("step")
        pair.close()

    once()
    gc.collect()
    before = opened()
    for _ in range(3):
        once()
    # Threads of readers may be at their end.
    until(lambda: opened() <= before, "descriptors are left over", gc.collect)
