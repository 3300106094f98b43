"""Export of a spec to a folder or an archive that MuJoCo can load anywhere."""

from __future__ import annotations

import contextlib
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import mujoco

from manyworlds.spec.compiler_settings import spelled_out
from manyworlds.spec.mjcf import fix_spec_xml, mark_bare, write_buffer_textures
from manyworlds.spec.references import copy_spec
from manyworlds.utils.files import atomic_path, check_writable
from manyworlds.utils.mujoco_messages import MujocoWarnings
from manyworlds.validation.names import free_name

_SCENE = "scene.xml"
_ASSETS = "assets"
_AS_WRITTEN = "of an attached model, which differs"
"""Part of MuJoCo's message for parts whose compiler settings one MJCF file cannot express."""


class _Notation(Enum):
    """Notations of a spec in a file, in the order in which they are tried."""

    WRITTEN = auto()
    """As in the spec."""
    SPELLED_OUT = auto()
    """With inertias and limits in place of compiler settings in which parts differ."""
    COMPILED = auto()
    """With the numbers of the compiled model, which have six digits."""


def export_spec(
    spec: mujoco.MjSpec,
    output_dir: Path,
    *,
    zip: bool = False,
    extra: Mapping[str, bytes] | None = None,
) -> Path:
    """Write `scene.xml` and the files that it refers to, which go to `assets/`.

    The export is written atomically and replaces an earlier one. Elements keep the classes and the
    notation in which they are written in the spec, and numbers keep all digits, so that the file
    compiles to the same model, bit for bit. Where attached parts differ in their unit of angles,
    all are written in radians, with quaternions and general actuators. Where they differ in other
    compiler settings, of which a file has one set, all bodies are written with their inertias, and
    joints, tendons and actuators with or without limits. Only a free joint that is aligned with its
    body's inertia by the settings of its part, and has attributes besides, cannot be expressed: the
    numbers of the compiled model are then written, which have six digits, with a warning.

    Args:
        spec: the spec to write; unchanged.
        output_dir: the folder to write, or with `zip` the path of the archive without `.zip`.
        zip: write an archive.
        extra: contents of further files to write beside the scene, by name.

    Returns:
        The path of the folder or archive.

    Raises:
        ValueError: MuJoCo cannot compile or write the spec.
        FileExistsError: the folder contains files that are not from an earlier export.
        OSError: it cannot be written.
    """
    output_dir = Path(output_dir)
    archive = output_dir.with_name(f"{output_dir.name}.zip")
    check_writable(archive if zip else output_dir)
    output_dir.parent.mkdir(parents=True, exist_ok=True)
    extra = extra or {}
    if zip:
        files = {**dict(spec_files(spec)), **extra}
        with atomic_path(archive) as temporary, zipfile.ZipFile(temporary, "w") as target:
            for name, content in files.items():
                target.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        return archive
    _check_replaceable(output_dir, {_SCENE, _ASSETS, *extra})
    with tempfile.TemporaryDirectory(dir=output_dir.parent, prefix=f".{output_dir.name}.") as aside:
        new = Path(aside, "new")
        for name, content in [*spec_files(spec), *extra.items()]:
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(content)
        if output_dir.exists():
            output_dir.rename(Path(aside, "old"))
        new.rename(output_dir)
    return output_dir


def _check_replaceable(output_dir: Path, ours: set[str]) -> None:
    if not output_dir.exists():
        return
    found = {"a file"}
    if output_dir.is_dir():
        found = {path.name for path in output_dir.iterdir()}
    if found and (_SCENE not in found or found - ours):
        raise FileExistsError(
            f"'{output_dir}' is not an earlier export, it contains {', '.join(sorted(found)[:5])}: "
            "choose a new or empty folder."
        )


def spec_files(spec: mujoco.MjSpec) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and contents of the files of an export: `scene.xml`, and its assets."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "scene.mjz")
        bare = _encode(spec, archive)
        with zipfile.ZipFile(archive) as source:
            xml, names = _flatten(source.read("model.xml").decode())
            yield _SCENE, fix_spec_xml(xml, meshdir=_ASSETS, bare=bare).encode()
            members = {str(PurePosixPath(member)): member for member in source.namelist()}
            for path, name in names.items():
                yield f"{_ASSETS}/{name}", source.read(members[path])


def _flatten(xml: str) -> tuple[str, dict[str, str]]:
    """Replace file references in XML by names without folders; return it and the new names by path.

    Asset names are untrusted: the sanitized names cannot refer to other folders.
    """
    root = ElementTree.fromstring(xml)
    compiler = root.find("compiler")
    folders: dict[str, str] = {}
    if compiler is not None:
        folders = compiler.attrib
    names: dict[str, str] = {}
    for element in [*root.iterfind("asset/*"), *root.iterfind("deformable/skin")]:
        folder = folders.get("texturedir" if element.tag == "texture" else "meshdir", "")
        if element.tag in ("mesh", "hfield", "texture") and "file" in element.attrib:
            # Without a name, the name is that of the file, which changes.
            element.attrib.setdefault("name", PurePosixPath(element.attrib["file"]).stem)
        for attribute, value in element.attrib.items():
            if attribute.startswith("file"):
                member = PurePosixPath(folder, value)
                stem, suffix = (
                    re.sub(r"[^\w+-]", "_", s) for s in (member.stem, member.suffix[1:])
                )
                taken = {Path(name).stem for path, name in names.items() if path != str(member)}
                name = free_name(stem, taken)
                if suffix:
                    name += f".{suffix}"
                element.set(attribute, names.setdefault(str(member), name))
    return ElementTree.tostring(root, encoding="unicode"), names


def _encode(spec: mujoco.MjSpec, archive: Path) -> str:
    """Write a spec and its files to an archive; MuJoCo finds the files of all attached parts.

    Returns:
        Name that stands for no material; see `mark_bare`.
    """
    with tempfile.TemporaryDirectory() as folder:
        for attempt in _Notation:
            messages: list[str] = []
            try:
                with MujocoWarnings(messages.append):
                    copy = copy_spec(spec)
                    write_buffer_textures(copy, Path(folder))
                    bare = mark_bare(copy)
                    copy.compile()  # assembles the keyframes of attached parts
                    compiled = attempt is _Notation.COMPILED
                    # Parts may differ in their unit of angles; converting it would cost digits.
                    degree = copy.compiler.degree
                    two_units = any(body.compiler.degree != degree for body in copy.bodies)
                    copy.compiler.savecompiled = compiled
                    copy.compiler.savecanonical = compiled or two_units
                    spelled = attempt is _Notation.SPELLED_OUT
                    with spelled_out(copy) if spelled else contextlib.nullcontext():
                        copy.encode(str(archive))
            except (ValueError, mujoco.FatalError) as error:
                reason = " ".join([str(error), *messages])
                if attempt is _Notation.COMPILED or (
                    attempt is _Notation.WRITTEN and _AS_WRITTEN not in reason
                ):
                    raise ValueError(f"MuJoCo cannot write this spec: {reason}") from error
                if attempt is _Notation.SPELLED_OUT:
                    warnings.warn(
                        "MJCF cannot express the compiler settings of all parts of this spec, so "
                        f"the export has compiled values, with six digits: {reason}",
                        stacklevel=4,
                    )
            else:
                return bare
    raise AssertionError
