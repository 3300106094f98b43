"""A model file as text: its elements with their lines, and MuJoCo's schema to compare with."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

import mujoco

MAX_MODEL_BYTES = 64 * 2**20
"""Largest size of an XML file [bytes]."""


class LimitError(ValueError):
    """Error of a file that is larger than any useful one, or that refers to itself."""


@dataclass
class Element:
    """XML element and its place."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None
    file: Path
    line: int


@dataclass
class ModelText:
    """Elements of a model file and of the files that it includes."""

    path: Path
    elements: list[Element]

    @property
    def is_urdf(self) -> bool:
        """True if the first element is that of URDF."""
        return bool(self.elements) and self.elements[0].tag == "robot"

    def find(self, tag: str, line: int | None = None) -> list[Element]:
        """Return the elements with a tag, on a line of the main file if one is given."""
        found = [element for element in self.elements if element.tag == tag]
        here = [e for e in found if e.line == line and e.file == self.path]
        return here or found

    def where(self, element: Element) -> str:
        """Return the place of an element."""
        if element.file == self.path:
            return f"line {element.line}"
        return f"line {element.line} of {element.file.name}"


def read_elements(path: Path) -> ModelText:
    """Read a model file and the files that it includes, as far as they are well-formed.

    Raises:
        LimitError: a file is too large, or declares entities.
    """
    text = ModelText(path, [])
    _read(path, path.parent, None, text.elements, set())
    return text


def syntax_error(path: Path) -> str | None:
    """Return the place and kind of the first XML error, or None for a well-formed file."""
    parser = expat.ParserCreate()
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        return f"line {error.lineno}, column {error.offset + 1}: {expat.ErrorString(error.code)}"
    return None


def _read(
    path: Path, folder: Path, parent: Element | None, elements: list[Element], seen: set[Path]
) -> None:
    seen.add(path)
    size = path.stat().st_size
    if size > MAX_MODEL_BYTES:
        raise LimitError(
            f"{path.name} has {size / 2**20:.0f} MiB, and a model file may have "
            f"{MAX_MODEL_BYTES // 2**20}: put meshes and height fields into files of their own."
        )
    parser = expat.ParserCreate()
    stack = [parent]

    def entity(name: str, *_: object) -> None:
        raise LimitError(
            f"{path.name} declares the XML entity '{name}', which MuJoCo does not know and which "
            "can expand without end: write out its text."
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, stack[-1], path, parser.CurrentLineNumber)
        if parent is not None and len(stack) == 1:  # MuJoCo drops the root of an included file
            stack.append(parent)
            return
        elements.append(element)
        stack.append(element)
        included = folder / attributes.get("file", "")
        if tag == "include" and included.is_file() and included not in seen:
            _read(included, folder, element.parent, elements, seen)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(path.read_bytes(), True)
    except (expat.ExpatError, OSError):
        return


@dataclass
class Schema:
    """Elements and attributes that MJCF allows, by place."""

    children: dict[str, set[str]]
    """Tags that an element may contain, by its tag."""
    attributes: dict[tuple[str, str], set[str]]
    """Attributes, by the tag of the parent and the tag."""

    def parents(self, tag: str) -> list[str]:
        """Return the tags of the elements that may contain an element."""
        return sorted(parent for parent, children in self.children.items() if tag in children)


@functools.cache
def mjcf_schema() -> Schema:
    """Parse the schema that MuJoCo prints: a line per element, indented by depth."""
    schema = Schema({}, {})
    stack: list[str] = []
    attributes: set[str] = set()
    for line in mujoco.mj_printSchema(False, False).splitlines():
        match = re.match(r"( *)(\S+) \(.\) *(.*)", line)
        if match:
            indent, tag, rest = match.groups()
            if tag == "(world)body":
                tag = "worldbody"
            above = stack[: len(indent) // 3]
            stack = [*above, tag]
            parent = ""
            if above:
                parent = above[-1]
            schema.children.setdefault(parent, set()).add(tag)
            attributes = schema.attributes.setdefault((parent, tag), set())
        else:
            rest = line
        attributes.update(rest.split())
    _add_recursion(schema)
    return schema


def _add_recursion(schema: Schema) -> None:
    body = schema.children["worldbody"] | {"body", "frame", "replicate"}
    schema.attributes["worldbody", "body"] = schema.attributes["mujoco", "worldbody"]
    schema.attributes["mujoco", "worldbody"] = set()
    schema.children["default"].add("default")
    schema.attributes["default", "default"] = schema.attributes["mujoco", "default"]
    containers = ("worldbody", "body", "frame", "replicate")
    for tag in containers:
        schema.children[tag] = body
        for child in body:
            known = [schema.attributes.get((other, child)) for other in containers]
            schema.attributes[tag, child] = set().union(*filter(None, known))
