"""Files that a model file refers to, and limits that hostile or broken ones exceed."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco

from manyworlds.spec.mesh_files import check_mesh_size
from manyworlds.spec.model_text import Element, LimitError, ModelText, read_elements

MAX_ELEMENTS = 1_000_000
"""Largest number of elements of a model after its replications, and of the vertices of a flex."""
MAX_MODELS = 500
"""Largest number of models that a model attaches, directly or through others."""
MAX_PIXELS = 2**28
"""Largest number of pixels of an image, and of cells of a height field."""
MAX_PACKED_PIXELS = 2**26
"""Largest number of pixels of all images of a model that are more than `_PIXELS_PER_BYTE`: MuJoCo
needs about nine bytes for each, and small files can have many."""
_PIXELS_PER_BYTE = 8  # of the images of robots, one at most
_KINDS = ("mesh", "texture", "hfield", "skin")


@dataclass(frozen=True)
class FileReference:
    """Reference of a model to a file."""

    kind: str
    """mesh, texture, hfield or skin."""
    written: str
    """Path as the model gives it, without folders where its compiler strips them."""
    path: Path
    """Place of the file; the place where MuJoCo looks for it if there is none."""
    where: str
    """Place of the reference in the model."""
    prefix: str = ""
    """Beginning of the names that the elements of this model have where it is attached."""
    name: str = ""
    """Name of the asset without the prefix; empty in URDF, whose meshes have none."""
    is_elsewhere: bool = False
    """True if MuJoCo looks for the file at another place."""


def reference_of(mesh: mujoco.MjsMesh, references: Sequence[FileReference]) -> FileReference | None:
    """Return the reference that a mesh comes from: attached models may write the same path."""
    found = None
    for one in references:
        if one.kind == "mesh" and mesh.file in (one.written, str(one.path)):
            if mesh.name == one.prefix + one.name and one.name:
                return one
            longer = found is None or len(one.prefix) > len(found.prefix)
            if mesh.name.startswith(one.prefix) and longer:
                found = one
    return found


def model_files(path: Path) -> tuple[list[FileReference], list[ModelText]]:
    """Return the files that a model file refers to, and the texts of all models.

    The models that it attaches are included.

    Raises:
        LimitError: the model refers to itself, or is larger than the limits.
    """
    texts: list[ModelText] = []
    return _files_of(path, (), texts)[0], texts


def _files_of(
    path: Path, chain: tuple[Path, ...], texts: list[ModelText]
) -> tuple[list[FileReference], int]:
    """Return the files of a model that those of `chain` attach, and its number of elements.

    `texts` collects all models.
    """
    path = path.resolve()
    if path in chain:
        names = " -> ".join(p.name for p in (*chain, path))
        raise LimitError(f"the model attaches itself: {names}.")
    text = read_elements(path)
    texts.append(text)
    if len(texts) > MAX_MODELS:
        raise LimitError(f"the model attaches more than {MAX_MODELS} models.")
    copies = _count_copies(text)
    total = sum(copies.values())
    if text.is_urdf:
        found = list(_urdf_files(text))
    else:
        found = list(_mjcf_files(text))
    for element in text.find("model"):
        file = element.attributes.get("file")
        if file:
            child = path.parent / file
            if child.is_file() and child.suffix.lower() in ("", ".xml", ".mjcf", ".urdf"):
                files, count = _files_of(child, (*chain, path), texts)
                uses = _uses(text, element)
                total += count * sum(copies[id(use)] for use in uses)
                if total > MAX_ELEMENTS:
                    raise LimitError(
                        f"attaching {child.name} ({text.where(element)}) makes more than "
                        f"{MAX_ELEMENTS} elements: attach it less often."
                    )
                prefixes = dict.fromkeys(use.attributes.get("prefix", "") for use in uses)
                for prefix in prefixes or [""]:
                    found += [replace(one, prefix=prefix + one.prefix) for one in files]
    return found, total


def _uses(text: ModelText, model: Element) -> list[Element]:
    """Return the `<attach>` elements of a model, which has the name of its file's root if none."""
    name = model.attributes.get("name")
    names = {one.attributes.get("name") for one in text.find("model")}
    attached = text.find("attach")
    if name is None:
        return [use for use in attached if use.attributes.get("model") not in names]
    return [use for use in attached if use.attributes.get("model") == name]


def check_files(references: list[FileReference]) -> None:
    """Check the sizes of files before anything loads them.

    Raises:
        LimitError: a mesh or an image is larger than the limits.
    """
    packed = 0
    for reference in references:
        if reference.kind in ("texture", "hfield"):  # each of them unpacks its file
            packed += _check_image(reference.path)
            if packed > MAX_PACKED_PIXELS:
                raise LimitError(
                    f"the images up to {reference.path.name} have {packed} pixels beyond "
                    f"{_PIXELS_PER_BYTE} per byte of their files, and {MAX_PACKED_PIXELS} are "
                    "allowed: scale them down, or leave out copies."
                )
    for path in {reference.path for reference in references}:
        if path.suffix.lower() != ".png" and path.is_file():
            check_mesh_size(path)


def _mjcf_files(text: ModelText) -> Iterator[FileReference]:
    folders = _folders(text)
    for element in text.elements:
        for attribute, written in element.attributes.items():
            if element.tag in _KINDS and attribute.startswith("file") and written:
                yield _reference(text, element, written, folders)


def _urdf_files(text: ModelText) -> Iterator[FileReference]:
    folders = _folders(text)
    for element in text.elements:
        if element.tag == "mesh" and (written := element.attributes.get("filename")):
            reference = replace(_reference(text, element, written, folders), name="")
            if "://" in written:
                place = _find_uri(text.path, written)
                reference = replace(reference, written=written, path=place, is_elsewhere=True)
            elif not reference.path.is_file():
                reference = _find_beside(text.path, reference, folders.get("meshdir", ""))
            yield reference


def _find_beside(model: Path, reference: FileReference, meshdir: str) -> FileReference:
    """Find a file whose path repeats the `meshdir`, or is relative to the model in spite of it."""
    parts = Path(reference.written).parts
    places = [model.parent / reference.written, model.parent / meshdir / ".." / reference.written]
    places += [model.parent / meshdir / Path(*parts[i:]) for i in range(1, len(parts))]
    for place in places:
        if place.is_file():
            return replace(reference, path=place.resolve(), is_elsewhere=True)
    return reference


def _reference(
    text: ModelText, element: Element, written: str, folders: dict[str, str]
) -> FileReference:
    kind = element.tag
    name = written
    if folders.get("strippath") == "true":
        name = Path(written).name
    folder = folders.get("texturedir" if kind == "texture" else "meshdir", "")
    return FileReference(
        kind,
        name,
        text.path.parent / folder / name,
        text.where(element),
        name=element.attributes.get("name") or Path(written).stem,
    )


def _folders(text: ModelText) -> dict[str, str]:
    """Return the settings of all `<compiler>`; the last one counts, as in MuJoCo."""
    folders: dict[str, str] = {}
    for compiler in text.find("compiler"):
        both = compiler.attributes.get("assetdir")
        if both:
            folders |= {"meshdir": both, "texturedir": both}
        folders |= compiler.attributes
    return folders


def _find_uri(model: Path, uri: str) -> Path:
    """Return the place of a file of a ROS package, or of a `file://` address.

    Packages are looked for in ROS_PACKAGE_PATH, in the folders `share` of AMENT_PREFIX_PATH, and
    around the model: a folder above it that has the package's name or contains it, or else the same
    path without the name.
    """
    scheme, _, rest = uri.partition("://")
    if scheme == "file":
        return Path(rest)
    package, _, inside = rest.partition("/")
    roots = _folders_of("ROS_PACKAGE_PATH")
    roots += [folder / "share" for folder in _folders_of("AMENT_PREFIX_PATH")]
    places = [root / package / inside for root in roots]
    places += [root / inside for root in roots if root.name == package]
    places += [p / inside for p in model.parents if p.name == package]
    places += [p / package / inside for p in model.parents]
    places += [p / inside for p in model.parents[:4]]
    return next((place for place in places if place.is_file()), model.parent / package / inside)


def _folders_of(variable: str) -> list[Path]:
    """Return the folders that a variable of the environment lists."""
    return [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def _count_copies(text: ModelText) -> dict[int, int]:
    """Return how often each element is made, by its identity in Python.

    Raises:
        LimitError: the model is larger than the limits.
    """
    total = 0
    copies: dict[int, int] = {}
    for element in text.elements:
        count = copies.get(id(element.parent), 1)
        if element.tag in ("replicate", "flexcomp"):
            count *= math.prod(_numbers(element, "count"))
        copies[id(element)] = count
        total += count
        if total > MAX_ELEMENTS:
            raise LimitError(
                f"<{element.tag}> ({text.where(element)}) makes more than {MAX_ELEMENTS} elements: "
                "lower its count."
            )
        for tag, names in (("texture", ("width", "height")), ("hfield", ("nrow", "ncol"))):
            cells = math.prod(math.prod(_numbers(element, name)) for name in names)
            if element.tag == tag and cells > MAX_PIXELS:
                raise LimitError(
                    f"<{tag}> ({text.where(element)}) has {cells} values, and {MAX_PIXELS} are "
                    f"allowed: lower {names[0]} and {names[1]}."
                )
    return copies


def _numbers(element: Element, name: str) -> list[int]:
    """Return the positive whole numbers of an attribute; wrong ones are MuJoCo's to tell."""
    words = element.attributes.get(name, "").split()
    return [int(word) for word in words if word.isdecimal() and int(word) > 0]


def _check_image(path: Path) -> int:
    """Return how many pixels of an image are more than its file usually has.

    Raises:
        LimitError: it is larger than the limits.
    """
    try:
        with path.open("rb") as file:
            head = file.read(24)
        size = path.stat().st_size
    except OSError:
        return 0  # which is reported as missing
    if head.startswith(b"\x89PNG") and len(head) == 24:
        width, height = struct.unpack(">2I", head[16:])
        if width * height > MAX_PIXELS:
            raise LimitError(
                f"{path.name} is an image of {width} x {height} pixels, and {MAX_PIXELS} are "
                "allowed: scale it down."
            )
        return max(0, width * height - _PIXELS_PER_BYTE * size)
    return 0
