"""Remedies for MuJoCo's errors in model files."""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from manyworlds.spec.model_text import Element, ModelText, mjcf_schema, read_elements, syntax_error
from manyworlds.validation.names import near_names

_LFS_HEADER = b"version https://git-lfs"
_GEOM_SIZES = {
    "plane": "3: half-length x, half-length y (0 for infinite), grid spacing",
    "sphere": "1: the radius",
    "capsule": "2: the radius and the half-length, or 1 with fromto",
    "cylinder": "2: the radius and the half-length, or 1 with fromto",
    "ellipsoid": "3: the radii",
    "box": "3: the half-lengths",
}
_REMOVED = {"composite": "MuJoCo 4 has no composites: use <replicate> or <flexcomp>"}
_KEYWORDS = {
    ("geom", "type"): (*_GEOM_SIZES, "mesh", "hfield", "sdf"),
    ("site", "type"): ("sphere", "capsule", "ellipsoid", "cylinder", "box"),
    ("joint", "type"): ("free", "ball", "slide", "hinge"),
    ("compiler", "angle"): ("radian", "degree"),
    ("option", "integrator"): ("Euler", "RK4", "implicit", "implicitfast"),
    ("option", "solver"): ("PGS", "CG", "Newton"),
    ("option", "cone"): ("pyramidal", "elliptic"),
    ("option", "jacobian"): ("dense", "sparse", "auto"),
    ("texture", "type"): ("2d", "cube", "skybox"),
    ("camera", "mode"): ("fixed", "track", "trackcom", "targetbody", "targetbodycom"),
}


def unreadable(path: Path) -> tuple[str, list[str]] | None:
    """Return the reason why a path is no model file, and remedies; None if it may be one."""
    if path.is_dir():
        files = sorted(file.name for file in path.glob("*.xml"))
        content = "it holds no .xml file either."
        if files:
            content = f"it holds {', '.join(files[:5])}."
        return "this is a folder, not a model file.", [content]
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            return "there is no such file.", [f"the folder '{folder}' does not exist either."]
        near = _near(path.name, (p.name for p in itertools.islice(folder.iterdir(), 5000)))
        if not near:
            return "there is no such file.", []
        return "there is no such file.", [f"did you mean {near}?"]
    problem = no_content(path)
    if problem:
        return problem
    if zipfile.is_zipfile(path):
        return "this is an archive, not a model file.", [
            "unpack it and give the model file, or upload it on the lab's page, which unpacks it."
        ]
    if path.suffix.lower() == ".mjb":
        return "this is a compiled binary model.", ["give the XML from which it was compiled."]
    return None


def no_model(path: Path) -> tuple[str, list[str]] | None:
    """Return the reason why a file with content is no XML, and remedies; None if it may be."""
    if _head(path).lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        return None
    return "this is no model file.", ["MuJoCo reads MJCF and URDF, in .xml and .urdf files."]


def expand(path: Path) -> str:
    """Return the remedy for a file with calls of xacro."""
    name = f"{path.name.split('.')[0]}.urdf"
    if name == path.name:
        name = "expanded.urdf"
    return f"expand it with xacro first: `xacro {path.name} > {name}`."


def no_content(path: Path) -> tuple[str, list[str]] | None:
    """Return the reason why a file has no content of its own, and remedies; None if it has some."""
    try:
        head = _head(path)
    except OSError as error:
        return f"the file cannot be read: {error.strerror}.", []
    if not head.strip():
        return "the file is empty.", []
    if head.startswith(_LFS_HEADER):
        return "this is a Git LFS pointer, not the file itself.", ["run `git lfs pull`."]
    return None


_OF_MEMORY = "before this error, and remain so."
"""End of MuJoCo's sentences about a spec that the compiler has changed."""


def one_line(message: str) -> str:
    """Return a message of MuJoCo as one line; what it says of the spec in memory is left out."""
    lines = [line.strip() for line in message.strip().splitlines()]
    first, *rest = [line for line in lines if line and not line.endswith(_OF_MEMORY)]
    if not rest:
        return first
    detail = " ".join(rest).replace("Element name '',", "an unnamed element,")
    detail = detail.replace(", line 0", "")  # MuJoCo does not know lines of included files
    return f"{first.rstrip(':')} ({detail[0].lower()}{detail[1:]})"


def hints(path: Path, message: str) -> list[str]:
    """Return remedies for a message, one sentence each; empty where the message suffices."""
    text = read_elements(path)
    found = []
    for pattern, rule in _RULES:
        match = re.search(pattern, message)
        if match is None:
            continue
        if isinstance(rule, str):
            hint = rule
        else:
            hint = rule(text, match)
        if hint:
            found.append(hint)
    return found


def _syntax(text: ModelText, match: re.Match[str]) -> str | None:
    files = {text.path, *(element.file for element in text.elements)}
    files |= {
        text.path.parent / element.attributes.get("file", "") for element in text.find("include")
    }
    for file in sorted(files):
        if not file.is_file():
            continue
        problem = syntax_error(file)
        if problem:
            doubt = ""
            if b"<" not in _head(file):
                doubt = "this does not look like XML: "
            return f"{doubt}the XML of {file.name} is broken at {problem}."
    if text.path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "the file is UTF-16: save it as UTF-8."
    return None


def _root(text: ModelText, match: re.Match[str]) -> str:
    tag = match[1].lower()
    if tag == "html":
        return "this is a web page: download the raw file instead of the page that shows it."
    if tag == "sdf":
        return "this is an SDF file: MuJoCo reads MJCF (<mujoco>) and URDF (<robot>); convert it."
    if tag == "mujocoinclude":
        return "this file is meant to be included: validate the file that includes it."
    return "the first element must be <mujoco> (MJCF) or <robot> (URDF)."


def _element(text: ModelText, match: re.Match[str]) -> str | None:
    schema = mjcf_schema()
    tag = match["tag"]
    for element in text.find(tag, int(match["line"])):
        parent = element.parent.tag if element.parent else ""
        allowed = schema.children.get(parent, set())
        if tag in allowed:
            continue
        start = f"<{tag}> ({text.where(element)}) cannot stand at the top"
        if parent:
            start = f"<{tag}> ({text.where(element)}) cannot stand in <{parent}>"
        if tag in _REMOVED:
            return f"{start}: {_REMOVED[tag]}."
        near = _near(tag, allowed)
        if near:
            return f"{start}: did you mean {near}?"
        homes = [home for home in schema.parents(tag) if home != "default"]
        if homes:
            return f"{start}: its place is in {' or '.join(f'<{home}>' for home in homes[:4])}."
        return f"{start}: that takes {', '.join(sorted(allowed)) or 'no elements'}."
    return None


def _attribute(text: ModelText, match: re.Match[str]) -> str | None:
    schema = mjcf_schema()
    tag = match["tag"]
    name = match[1]
    for element in text.find(tag, int(match["line"])):
        parent = element.parent.tag if element.parent else ""
        allowed = schema.attributes.get((parent, tag))
        if not allowed or name not in element.attributes:
            continue
        start = f"<{tag}> ({text.where(element)}) has no '{name}'"
        near = _near(name, allowed)
        if near:
            return f"{start}: did you mean {near}?"
        return f"{start}: it takes {', '.join(sorted(allowed))}."
    return None


def _keyword(text: ModelText, match: re.Match[str]) -> str | None:
    for element in text.find(match["tag"], int(match["line"])):
        for name, value in element.attributes.items():
            if value == match[1] and (known := _KEYWORDS.get((match["tag"], name))):
                where = text.where(element)
                return f"{name}='{value}' ({where}) must be one of {', '.join(known)}."
    return None


def _numbers(text: ModelText, match: re.Match[str]) -> str | None:
    for element in text.find(match["tag"], int(match["line"])):
        value = element.attributes.get(match["name"])
        if value is None:
            continue
        shown = f"{match['name']}='{value}' ({text.where(element)})"
        if "," in value:
            return f"{shown}: separate the numbers by spaces, not commas."
        if re.search(r"\$\{|\$\(", value):
            return f"{shown}: expand the macros first, for instance with xacro."
        return f"{shown} gives {len(value.split())} values."
    return None


def _duplicate(text: ModelText, match: re.Match[str]) -> str | None:
    name = match[1]
    kind = match[2]
    same = [element for element in text.elements if _name(element) == name]
    of_kind = [element for element in same if element.tag == kind]
    if len(of_kind) > 1:
        same = of_kind
    if not same and kind == "key":
        return "an attached model has several keyframes without a name: give each one a name."
    if len(same) < 2:
        return None
    places = ", ".join(f"<{e.tag}> {text.where(e)}" for e in same)
    return f"'{name}' is at {places}: names must be unique among elements of a kind."


def _name(element: Element) -> str | None:
    if element.tag in ("mesh", "texture", "hfield") and "name" not in element.attributes:
        return Path(element.attributes.get("file", "")).stem
    return element.attributes.get("name")


def _file(text: ModelText, match: re.Match[str]) -> str | None:
    asked = match[1]
    if asked.startswith("package:"):
        return (
            "the package was looked for in ROS_PACKAGE_PATH, in AMENT_PREFIX_PATH and in the "
            "folders above the model: put the model and its meshes into a folder of the package's "
            "name."
        )
    folder = text.path.parent
    looked = folder / asked
    start = f"MuJoCo looked for {looked.resolve()}"
    if looked.is_file():
        return f"{start}, which cannot be read: check its permissions."
    same = [p for p in _files_below(folder) if p.name.lower() == looked.name.lower()]
    if same:
        place = same[0].relative_to(folder)
        return (
            f"{start}; there is {place}: correct file= or the meshdir or texturedir of <compiler>."
        )
    if not looked.parent.is_dir():
        return f"{start}; the folder {looked.parent.resolve()} does not exist."
    near = _near(looked.name, (p.name for p in looked.parent.iterdir()))
    if not near:
        return f"{start}; nothing of that name is near."
    return f"{start}; did you mean {near}?"


def _git_lfs(text: ModelText, match: re.Match[str]) -> str | None:
    used = {
        Path(value.split("://")[-1]).name
        for element in text.elements
        for key, value in element.attributes.items()
        if key.startswith("file")
    }
    for path in _files_below(text.path.parent):
        if path.name in used and path.read_bytes().startswith(_LFS_HEADER):
            return f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull`."
    return None


def _files_below(folder: Path) -> Iterator[Path]:
    return (path for path in itertools.islice(folder.rglob("*"), 5000) if path.is_file())


def _reference(text: ModelText, match: re.Match[str]) -> str | None:
    name = next(filter(None, match.groups()))
    kinds = {known: element.tag for element in text.elements if (known := _name(element))}
    kinds |= {e.attributes["class"]: "default class" for e in text.find("default") if _class(e)}
    if name in kinds:
        return f"'{name}' is the name of a {kinds[name]}, which cannot stand here."
    close = near_names(name, kinds)
    if close:
        return "did you mean " + ", ".join(f"'{other}' ({kinds[other]})" for other in close) + "?"
    return f"no element or default class has the name '{name}'."


def _class(element: Element) -> bool:
    return "class" in element.attributes


def _childclass(text: ModelText, match: re.Match[str]) -> str | None:
    known = {e.attributes["class"] for e in text.find("default") if _class(e)}
    for element in text.elements:
        name = element.attributes.get("childclass")
        if name is not None and name not in known:
            near = _near(name, known)
            remedy = "."
            if near:
                remedy = f": did you mean {near}?"
            return f"there is no default class '{name}' ({text.where(element)}){remedy}"
    return None


def _size(text: ModelText, match: re.Match[str]) -> str | None:
    for element in text.find(match["kind"], int(match["line"])):
        kind = element.attributes.get("type", "sphere")
        if kind in _GEOM_SIZES:
            return f"a {kind} needs positive sizes, {_GEOM_SIZES[kind]}."
    return None


def _vertices(text: ModelText, match: re.Match[str]) -> str | None:
    return _git_lfs(text, match) or "a mesh must be a solid: 4 vertices that are not in one plane."


def _near(name: str, names: Iterable[str]) -> str:
    return " or ".join(f"'{known}'" for known in near_names(name, names, most=2))


_AT = r"\s+Element '(?P<tag>[^']*)', line (?P<line>\d+)"
# A pattern of MuJoCo's message, and the remedy or a function that finds it in the file.
_RULES: list[tuple[str, str | Callable[[ModelText, re.Match[str]], str | None]]] = [
    (r"XML parse error", _syntax),
    (r"Unrecognized XML model type: '([^']*)'", _root),
    (r"unrecognized element" + _AT, _element),
    (r"unrecognized attribute: '([^']*)'" + _AT, _attribute),
    (r"invalid keyword: '([^']*)'" + _AT, _keyword),
    (r"(?:bad format in|problem reading) attribute '(?P<name>[^']*)'" + _AT, _numbers),
    (r"attribute '(?P<name>[^']*)' (?:has too much|does not have enough) data" + _AT, _numbers),
    (r"repeated name '([^']*)' in (\w+)", _duplicate),
    (
        r"mass and inertia of moving bodies must be larger",
        "a body with a joint needs mass and inertia: give it a <geom> with mass or an <inertial> "
        "with mass and diaginertia, remove its joint, or set boundmass and boundinertia of "
        "<compiler>.",
    ),
    (
        r"inertia must satisfy A \+ B >= C",
        "no rigid body has such an inertia: check its diaginertia, or let MuJoCo correct it with "
        '<compiler balanceinertia="true"/>, in a URDF inside of <mujoco>.',
    ),
    (
        r"inertia must have positive eigenvalues",
        "no rigid body has such an inertia: set its products of inertia (ixy, ixz, iyz) to 0 if it "
        "is a placeholder, or check their signs.",
    ),
    (r"Error opening file '([^']*)'", _file),
    (r"decoder|decoding", _git_lfs),
    (r"at least 4 vertices required", _vertices),
    (
        r"(?:transmission target|unrecognized name|unknown element|class name) '([^']+)'"
        r"|'([^']+)' not found",
        _reference,
    ),
    (
        r"missing transmission target",
        "an actuator needs one of joint, jointinparent, tendon, site, body to act on.",
    ),
    (r"unknown default childclass", _childclass),
    (r"size \d must be positive in (?P<kind>\w+)(?:.|\n)*line (?P<line>\d+)", _size),
    (
        r"range\[0\] should be smaller than range\[1\]",
        "give range='lower upper' with lower < upper, or limited='false'; angles are in degrees "
        "unless <compiler angle='radian'/>.",
    ),
]


def _head(path: Path) -> bytes:
    """Read the beginning of a file."""
    with path.open("rb") as file:
        return file.read(4096)
