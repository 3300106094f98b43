"""The model as network clients know it: names with `_` after the robot, in place of `/`.

Only names differ: fields, order and ids are those of the live model, to the last bit.
"""

from __future__ import annotations

import functools
import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np

from manyworlds.lab.world.elements import RobotElements
from manyworlds.lab.world.model_facts import (
    binary_model,
    element_names,
    robot_of,
    wire_name,
)
from manyworlds.spec.export import spec_files
from manyworlds.spec.references import name_keyframes
from manyworlds.utils.mujoco_messages import MujocoWarnings

if TYPE_CHECKING:
    from manyworlds.lab.world.world import World

_KINDS = (
    *("body", "jnt", "geom", "site", "cam", "light", "flex", "mesh"),
    *("skin", "hfield", "tex", "mat", "pair", "exclude", "eq", "tendon"),
    *("actuator", "sensor", "numeric", "text", "tuple", "key", "plugin"),
)
"""Kinds of named elements, in the order in which MuJoCo stores their names' addresses."""
_NAMED_FOR_CLIENTS = ("jnt", "actuator", "sensor")
"""Kinds whose elements get a name if they have none, because clients know them by name only."""
_ASSIGNED_BY_CLIENTS = ("body", "jnt", "actuator", "sensor")
"""Kinds whose elements clients assign to robots by the beginning of their names."""
_FILE = re.compile(r'file\w*="([^"]+)"')
_HASH_MASK = 2**64 - 1
_ALIGNMENT = 64  # of the arrays of a model in memory

Names = Mapping[str, Sequence[str]]
"""Name of each element, by kind and id."""


@dataclass(frozen=True, eq=False)
class ClientNames:
    """Names of all elements of a model for clients, by kind and id."""

    robots: Mapping[str, str]
    """Prefix of the elements of each robot, by the robot's name."""
    owners: Mapping[str, Sequence[str | None]]
    """Robot of each element of the kinds that robots have, None for none."""
    live: Names
    """Names in the world; elements that clients know by name only have one in any case."""
    wire: Names
    """Names for clients."""

    def check(self, model: mujoco.MjModel) -> None:
        """Check that a client can tell the robots apart by the beginning of their elements' names.

        Args:
            model: the model that the names are of.

        Raises:
            ValueError: it cannot, or two elements have the same name.
        """
        known = [f"{robot}_" for robot in _articulations(model, self)]
        for kind in _ASSIGNED_BY_CLIENTS:
            rows = zip(self.live[kind], self.wire[kind], self.owners[kind], strict=True)
            for live, wire, owner in rows:
                own = f"{owner}_"
                for begin in known:
                    if begin != own and wire.startswith(begin):
                        raise ValueError(
                            f"Network clients cannot tell '{begin[:-1]}' and '{owner or live}' "
                            f"apart, because '{begin}' begins both: rename one of them."
                        )
        for kind, names in self.wire.items():
            seen: dict[str, str] = {}
            for live, wire in zip(self.live[kind], names, strict=True):
                if wire and seen.setdefault(wire, live) != live:
                    raise ValueError(
                        f"'{seen[wire]}' and '{live}' would have one name for network clients, "
                        f"'{wire}': rename one of them."
                    )


def client_names(model: mujoco.MjModel, robots: Mapping[str, str]) -> ClientNames:
    """Return the names that clients know elements by.

    `/` becomes `_`, but in a robot that has two such elements, which keep the names they have.

    Args:
        model: the live model.
        robots: prefix of the elements of each robot, by the robot's name.
    """
    owners = RobotElements(model, robots).owners
    live: dict[str, list[str]] = {}
    wire: dict[str, list[str]] = {}
    for kind in _KINDS:
        names = element_names(model, kind)
        mine = owners.get(kind) or [robot_of(name, robots) for name in names]
        if kind in _NAMED_FOR_CLIENTS:
            names = _name_all(kind, names, mine, robots)
        live[kind] = names
        wire[kind] = _to_wire(names, mine, robots)
    return ClientNames(robots, owners, live, wire)


def _name_all(
    kind: str, names: list[str], owners: Sequence[str | None], robots: Mapping[str, str]
) -> list[str]:
    """Return names for all elements of a kind; those without a name get one by their id."""
    known = set(names)
    found = []
    for index, (name, owner) in enumerate(zip(names, owners, strict=True)):
        prefix = "" if owner is None else robots[owner]
        fresh = name or f"{prefix}{kind}_{index}"
        while not name and fresh in known:
            fresh += "_"
        found.append(fresh)
    return found


def _to_wire(
    names: list[str], owners: Sequence[str | None], robots: Mapping[str, str]
) -> list[str]:
    own = [
        name if owner is None else name.removeprefix(robots[owner])
        for name, owner in zip(names, owners, strict=True)
    ]
    counts = Counter(zip(owners, map(wire_name, own), strict=True))
    found = []
    for name, short, owner in zip(names, own, owners, strict=True):
        fresh = wire_name(short)
        if counts[owner, fresh] > 1:
            fresh = short
        found.append(f"{owner}_{fresh}" if owner is not None and name else fresh)
    return found


def _articulations(model: mujoco.MjModel, names: ClientNames) -> list[str]:
    """Return the robots that have joints or actuators, without loose bodies."""
    types: dict[str, list[int]] = {robot: [] for robot in names.robots}
    for owner, kind in zip(names.owners["jnt"], model.jnt_type.tolist(), strict=True):
        if owner is not None:
            types[owner].append(kind)
    free = [int(mujoco.mjtJoint.mjJNT_FREE)]
    moved = set(names.owners["actuator"])
    return [robot for robot, kinds in types.items() if robot in moved or kinds not in ([], free)]


def wire_mjb(world: World, model: mujoco.MjModel) -> bytes:
    """Return the compiled model with the clients' names, as MuJoCo's binary format.

    Args:
        world: the world; for its robots.
        model: its present model.

    Raises:
        ValueError: a client could not tell its elements apart.
    """
    found = client_names(model, world.robots)
    found.check(model)
    names = found.wire
    block = binary_model(model)
    texts, addresses = _pack(model, names)
    old = np.concatenate([getattr(model, f"name_{kind}adr").ravel() for kind in _KINDS])
    tail = old.tobytes() + model.names + model.names_map.tobytes()
    sizes = model._sizes.astype(np.int64)
    head, place = _only(block, sizes.tobytes()), _only(block, tail)
    sizes[_index_of_nnames()] = len(texts)
    sizes[-1] += _aligned(len(texts)) - _aligned(len(model.names))  # of the block in memory
    fresh = np.concatenate(addresses).astype(np.int32).tobytes() + texts + _hash_names(names)
    renamed = (block[:head] + sizes.tobytes() + block[head + sizes.nbytes : place] + fresh) + block[
        place + len(tail) :
    ]
    _check(renamed, names)
    return renamed


def scene_mjcf(world: World) -> tuple[str, dict[str, bytes]]:
    """Return the world's XML, and the files that it refers to, by name.

    Numbers have the six digits of MuJoCo's XML; textures that were defined by pixels are omitted.
    """
    files = {name.rpartition("/")[2]: content for name, content in spec_files(world.spec)}
    xml = files.pop("scene.xml").decode().replace('meshdir="assets"', "")
    return xml.replace('texturedir="assets"', ""), files


def wire_mjcf(world: World) -> tuple[str, dict[str, bytes]]:
    """Return what `scene_mjcf` does, with the clients' names."""
    xml, files = scene_mjcf(world)
    for robot, prefix in world.robots.items():
        if not prefix:
            return _with_prefix(xml, files, f"{robot}_")
        written, fresh = (quoteattr(text)[1:-1] for text in (prefix, f"{robot}_"))
        pattern = rf'(?<=[" ]){re.escape(written)}(?=[^"<>]*")'
        xml = re.sub(pattern, lambda _, fresh=fresh: fresh, xml)
    return xml, files


def _with_prefix(xml: str, files: dict[str, bytes], prefix: str) -> tuple[str, dict[str, bytes]]:
    """Return XML whose elements have names with a prefix, and the files by their new names.

    Raises:
        ValueError: MuJoCo cannot write it.
    """
    xml, files = _without_prefix(xml, files, prefix)
    root, child = mujoco.MjSpec(), mujoco.MjSpec.from_string(xml, assets=files)
    root.option, root.compiler.degree = child.option, child.compiler.degree
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
    for kind in _KINDS:
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
    for kind in _KINDS:
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
        signed = byte if byte < 128 else byte - 256  # C's char
        value = ((value * 33) & _HASH_MASK) ^ (signed & _HASH_MASK)
    return value


@functools.cache
def _index_of_nnames() -> int:
    """Index of the length of all names among the sizes of a model."""
    xml = "<mujoco model='{}'/>"
    short, long = (mujoco.MjModel.from_xml_string(xml.format(name)) for name in ("a", "abc"))
    index = int(np.flatnonzero(short._sizes != long._sizes)[0])
    return index


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
    same = all(element_names(model, kind) == names[kind] for kind in _KINDS)
    if not same or model.names_map.tobytes() != _hash_names(names):
        raise RuntimeError("MuJoCo's binary format is another one: models cannot be renamed.")
