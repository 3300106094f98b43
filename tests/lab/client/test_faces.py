"""The client has the verbs of the lab, and needs few packages."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from manyworlds.entity.data import EntityData
from manyworlds.lab.client import ClientRobot, LabClient, LabError, connect
from manyworlds.lab.client.errors import FAMILIES, error_of
from manyworlds.lab.client.robot_reads import NOT_READ
from manyworlds.lab.face import LabFace
from manyworlds.lab.verb_methods import LabVerbs, declared_verbs, only_reads
from manyworlds.lab.verbs import VERBS, VerbError
from tools import write_entity_reads, write_verbs
from tools.docs.lab_protocol import codes
from tools.write_entity_reads import FILE
from tools.write_verbs import STUB

ROOT = Path(__file__).parents[3]


def test_the_methods_are_written_from_the_registries():
    """Write the methods again: they are the committed ones."""
    assert (ROOT / STUB).read_text() == write_verbs.render(), "run python tools/write_verbs.py"
    reads = (ROOT / FILE).read_text()
    assert reads == write_entity_reads.render(), "run python tools/write_entity_reads.py"
    assert set(declared_verbs()) == set(VERBS)


@pytest.mark.parametrize("name", sorted(VERBS))
def test_each_verb_is_a_method(name):
    """Compare a method with the verb: names, order, defaults, text, and whether it only reads."""
    calls = []
    verbs = LabVerbs(lambda verb, **fields: calls.append((verb, fields)) or {})
    verb, method = VERBS[name], getattr(verbs, name)
    assert name in dir(verbs) and only_reads(name) is verb.reads
    parameters = list(inspect.signature(method).parameters.values())
    assert [p.name for p in parameters] == list(verb.fields)
    required = {p.name for p in parameters if p.default is p.empty}
    assert required == set(verb.fields) - set(verb.defaults)
    for parameter in parameters:
        default = verb.defaults.get(parameter.name)
        plain = isinstance(default, str | bool | int | float)
        assert parameter.default in ((default,) if plain else (None, parameter.empty))
    assert method.__name__ == name
    assert (inspect.getdoc(method) or "").partition("\n")[0] == verb.text
    method(*verb.fields)  # each field gets its own name
    assert calls == [(name, {field: field for field in verb.fields})]


def test_wrong_calls_of_methods():
    """Mistype a verb and a field, give too much and too little: errors as of Python's functions."""
    verbs = LabVerbs(lambda verb, **fields: pytest.fail("nothing is called"))
    with pytest.raises(AttributeError, match="'LabVerbs' object has no attribute 'set_pausd'"):
        verbs.set_pausd  # noqa: B018
    end = r"; fields: paused\.$"
    with pytest.raises(TypeError, match=f"^set_paused: .*keyword argument 'pausd'{end}"):
        verbs.set_paused(True, pausd=True)
    with pytest.raises(TypeError, match=f"^set_paused: missing .* argument: 'paused'{end}"):
        verbs.set_paused()
    with pytest.raises(TypeError, match=f"^set_paused: too many positional arguments{end}"):
        verbs.set_paused(True, False)
    with pytest.raises(TypeError, match=r"^undo: too many positional arguments; fields: none\.$"):
        verbs.undo(1)
    assert not hasattr(verbs, "environment") and not only_reads("of_a_later_version")


def test_verbs_hide_no_attribute_and_no_error_of_the_client():
    """Let a property of the client fail: its own error comes, and no verb has its name."""

    class Failing(LabClient):
        def __init__(self) -> None:
            LabVerbs.__init__(self, self.call)

    assert not set(declared_verbs()) & set(dir(LabClient))
    with pytest.raises(AttributeError, match="no attribute '_copy'"):
        Failing().data  # noqa: B018


def test_a_call_is_that_of_the_verb(client, lab):
    """Carry out the same verbs in the lab and by methods of the client: replies are equal."""
    for name, fields in (
        ("read_robot", {"robot": "go"}),
        ("list_cameras", {}),
        ("read_sim_options", {}),
        ("get_contacts", {"max_contacts": 3}),
        ("set_targets", {"robot": "go2", "targets": {"hip": 1.5}}),
        ("set_qpos", {"target": "box", "qpos": [1, 0, 0.3, 1, 0, 0, 0]}),
        ("capture_state", {"label": "a"}),
        ("list_states", {}),
    ):
        mine = lab.call(name, **fields, **({"owner": "net"} if name == "set_targets" else {}))
        other = getattr(client, name)(**fields)
        for reply in (mine, other):
            for key in ("frame_id", "command_number"):
                reply.pop(key, None)
        assert mine == other, name


def test_the_client_is_a_face(client, lab):
    """Compare everything of the face with the lab's, with the types of Python."""
    assert isinstance(client, LabFace)
    assert client.robots == lab.robots and client.model.nq == lab.model.nq
    assert client.describe_verbs() == lab.describe_verbs()
    assert client.verbs.read_robot("go")["neutral"] == lab.verbs.read_robot("go")["neutral"]
    assert client.facts.robots == lab.facts.robots and client.facts.mode == "direct"
    reply = client.call("step", n_steps=2)
    assert isinstance(reply["frame_id"], int) and reply["frame_id"] <= client.snapshot.frame_id
    assert (client.snapshot.block == lab.snapshot.block).all()
    assert client.snapshot.layout == lab.snapshot.layout


def test_robots_have_the_properties_of_entities():
    """Look for each property of `EntityData`: robots have it, or it is named as left out."""
    properties = dict(inspect.getmembers(EntityData, lambda value: isinstance(value, property)))
    shared = {name for name in properties if isinstance(getattr(ClientRobot, name, None), property)}
    assert shared | NOT_READ == set(properties) and not shared & NOT_READ
    assert {"joint_pos", "root_link_pos_w", "projected_gravity_b"} <= shared


def test_each_code_has_a_class():
    """Look up each code of the protocol: its class is one of the families."""
    known = {code for codes in FAMILIES.values() for code in codes}
    assert codes() <= known
    for code in known:
        error = error_of(code, "text")
        assert type(error) is not LabError and isinstance(error, VerbError) and error.code == code
    assert type(error_of("of_a_later_version", "text")) is LabError


def test_the_client_needs_few_packages():
    """Import it in a fresh process: neither torch nor the lab itself is imported."""
    code = """
import sys
import manyworlds.lab.client.client
heavy = {"torch", "gymnasium", "viser", "rsl_rl", "trimesh", "mcap", "manyworlds.lab.lab"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
sys.modules["zmq"] = None
try:
    manyworlds.lab.client.client.connect()
except ImportError as error:
    assert "manyworlds-rl[net]" in str(error), error
else:
    raise AssertionError("zmq is hidden")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_addresses():
    """Give no address: the error shows one."""
    with pytest.raises(ValueError, match=r"begins with tcp://.*got 'localhost'"):
        connect("localhost")
