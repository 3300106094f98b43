"""The model as URLab's clients know it: their names, and all else equal to the last bit."""

from __future__ import annotations

import functools
import hashlib
import re
import warnings
from collections.abc import Mapping
from pathlib import PurePath
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.verb_methods import LabVerbs
from manyworlds.lab.verbs.fields import PlainDict
from manyworlds.lab.world.model_facts import element_names
from manyworlds.plugins.urlab.names import KINDS, Names, client_names
from manyworlds.spec.references import name_keyframes
from manyworlds.utils.mujoco_messages import MujocoWarnings

_FILE = re.compile(r'file\w*="([^"]+)"')
_HASH_MASK = 2**64 - 1
_ALIGNMENT = 64  # of the arrays of a model in memory
_TRIES = 20


def export_model(verbs: LabVerbs, sources: bool = False) -> PlainDict:
    """Return the reply of the verb `export_model` with the clients' names.

    Args:
        verbs: verbs of the lab.
        sources: whether to include the XML and its files.

    Raises:
        VerbError: a client could not tell the elements apart, MuJoCo cannot write the XML, or its
            binary format is another one than this program knows.
    """
    for _ in range(_TRIES):
        robots = _robots(verbs)
        answer = verbs.export_model(sources=sources)
        if robots == _robots(verbs):  # names do not depend on values, which may change all the time
            break
    else:
        raise VerbError("not_ready", "The world is rebuilt all the time: try again later.")
    try:
        mjb = client_mjb(answer["mjb"], robots)
        if not sources:
            return {**answer, "mjb": mjb}
        mjcf, files = client_mjcf(answer["mjcf"], answer["files"], robots)
    except ValueError as error:
        raise VerbError("bad_value", str(error)) from error
    except RuntimeError as error:
        raise VerbError("not_ready", str(error)) from error
    return {**answer, "mjb": mjb, "mjcf": mjcf, "files": files}


def _robots(verbs: LabVerbs) -> dict[str, str]:
    """Return the prefix of the elements of each robot, by the robot's name."""
    return {name: robot["prefix"] for name, robot in verbs.describe_world()["robots"].items()}


def client_mjb(mjb: bytes, robots: Mapping[str, str]) -> bytes:
    """Return a compiled model with the clients' names.

    Args:
        mjb: the model in MuJoCo's binary format.
        robots: prefix of the elements of each robot, by the robot's name.

    Raises:
        ValueError: a client could not tell its elements apart.
    """
    model = mujoco.MjModel.from_binary_path("lab.mjb", {"lab.mjb": mjb})
    found = client_names(model, robots)
    found.check(model)
    names = found.wire
    texts, addresses = _pack(model, names)
    old = np.concatenate([getattr(model, f"name_{kind}adr").ravel() for kind in KINDS])
    tail = old.tobytes() + model.names + model.names_map.tobytes()
    sizes = model._sizes.astype(np.int64)
    head = _only(mjb, sizes.tobytes())
    place = _only(mjb, tail)
    sizes[_index_of_nnames()] = len(texts)
    sizes[-1] += _aligned(len(texts)) - _aligned(len(model.names))  # of the block in memory
    fresh = np.concatenate(addresses).astype(np.int32).tobytes() + texts + _hash_names(names)
    begin = mjb[:head] + sizes.tobytes() + mjb[head + sizes.nbytes : place]
    renamed = begin + fresh + mjb[place + len(tail) :]
    _check(renamed, names)
    return renamed


def client_mjcf(
    xml: str, files: Mapping[str, bytes], robots: Mapping[str, str]
) -> tuple[str, dict[str, bytes]]:
    """Return the XML of a world and its files with the clients' names; see `scene_mjcf`.

    Raises:
        ValueError: MuJoCo cannot write it.
    """
    files = dict(files)
    for robot, prefix in robots.items():
        if not prefix:
            return _with_prefix(xml, files, f"{robot}_")
        written = quoteattr(prefix)[1:-1]
        fresh = quoteattr(f"{robot}_")[1:-1]
        pattern = rf'(?<=[" ]){re.escape(written)}(?=[^"<>]*")'
        xml = re.sub(pattern, lambda _, fresh=fresh: fresh, xml)
    return xml, files


def _with_prefix(xml: str, files: dict[str, bytes], prefix: str) -> tuple[str, dict[str, bytes]]:
    """Return XML whose elements have names with a prefix, and the files by their new names.

    Raises:
        ValueError: MuJoCo cannot write it.
    """
    xml, files = _without_prefix(xml, files, prefix)
    root = mujoco.MjSpec()
    child = mujoco.MjSpec.from_string(xml, assets=files)
    root.option = child.option
    root.compiler.degree = child.compiler.degree
    root.assets = files
    name_keyframes(child)
    messages: list[str] = []
    try:
        with MujocoWarnings(messages.append), warnings.catch_warnings():
            # The root does not set sizes of memory, which are the child's.
            warnings.filterwarnings("ignore", r"(?s).*keeping parent value")
            root.attach(child, prefix=prefix, frame=root.worldbody.add_frame())
            root.compile()
            fresh = root.to_xml()
    except (ValueError, mujoco.FatalError) as error:
        raise ValueError(" ".join([str(error), *messages])) from error
    # MuJoCo puts the prefix before names of files, too, but not before those of all kinds.
    known = {**files, **{f"{prefix}{name}": content for name, content in files.items()}}
    named = set(_FILE.findall(fresh))
    return fresh, {name: content for name, content in known.items() if name in named}


def _without_prefix(xml: str, files: dict[str, bytes], prefix: str) -> tuple[str, dict[str, bytes]]:
    """Rename files whose names begin with a prefix, so that no two have one name with it."""
    names = {name: name for name in files}
    for name, content in files.items():
        if name.startswith(prefix):  # which has a '_', and so differs from a hash
            names[name] = hashlib.sha256(content).hexdigest()[:16] + PurePath(name).suffix
    renamed = _FILE.sub(lambda found: found[0].replace(found[1], names[found[1]]), xml)
    return renamed, {names[name]: content for name, content in files.items()}


def _pack(model: mujoco.MjModel, names: Names) -> tuple[bytes, list[np.ndarray]]:
    """Return all names one after the other, with the model's first, and their addresses."""
    text = bytearray(model.names[: model.names.index(b"\0") + 1])
    addresses = []
    for kind in KINDS:
        starts = []
        for name in names[kind]:
            starts.append(len(text))
            text += name.encode() + b"\0"
        addresses.append(np.array(starts, np.int32))
    return bytes(text), addresses


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _hash_names(names: Names) -> bytes:
    """Return MuJoCo's hash tables of names, one for each kind, twice as long as the kind."""
    tables = []
    for kind in KINDS:
        size = 2 * len(names[kind])
        table = np.full(size, -1, np.int32)
        for index, name in enumerate(names[kind]):
            if not name:
                continue
            slot = _hash(name.encode()) % size
            while table[slot] != -1:
                slot = (slot + 1) % size
            table[slot] = index
        tables.append(table)
    return np.concatenate(tables).tobytes()


def _hash(text: bytes) -> int:
    value = 5381
    for byte in text:
        if byte >= 128:
            byte -= 256  # C's char has a sign
        value = ((value * 33) & _HASH_MASK) ^ (byte & _HASH_MASK)
    return value


@functools.cache
def _index_of_nnames() -> int:
    """Index of the length of all names among the sizes of a model."""
    xml = "<mujoco model='{}'/>"
    short = mujoco.MjModel.from_xml_string(xml.format("a"))
    long = mujoco.MjModel.from_xml_string(xml.format("abc"))
    return int(np.flatnonzero(short._sizes != long._sizes)[0])


def _only(block: bytes, part: bytes) -> int:
    """Return the place of a part that a block has once."""
    place = block.find(part)
    if place < 0 or block.find(part, place + 1) >= 0:
        raise RuntimeError("MuJoCo's binary format is another one: models cannot be renamed.")
    return place


def _check(block: bytes, names: Names) -> None:
    """Load a renamed model, and compare its names and its tables with what was asked for."""
    try:
        model = mujoco.MjModel.from_binary_path("wire.mjb", {"wire.mjb": block})
    except ValueError as error:
        raise RuntimeError(f"MuJoCo does not read a renamed model: {error}") from error
    same = all(element_names(model, kind) == names[kind] for kind in KINDS)
    if not same or model.names_map.tobytes() != _hash_names(names):
        raise RuntimeError("MuJoCo's binary format is another one: models cannot be renamed.")
