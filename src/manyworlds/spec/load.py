"""Import of model and mesh files as specs; the files are only read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np

from manyworlds.spec import model_hints
from manyworlds.spec.mesh_files import (
    MESH_SUFFIXES,
    MeshPart,
    UpAxis,
    check_mesh_size,
    is_native,
    read_mesh,
)
from manyworlds.spec.meshes import has_hull
from manyworlds.spec.model_files import FileReference, check_files, model_files, reference_of
from manyworlds.spec.plausibility import LARGE
from manyworlds.spec.references import check_keyframes, complete_keyframes
from manyworlds.spec.urdf import left_out, unexpanded
from manyworlds.utils.mujoco_messages import MujocoWarnings
from manyworlds.validation.names import free_name

ERRORS = (ValueError, RuntimeError, mujoco.FatalError)
"""Errors that MuJoCo raises for files and specs."""
_STAND_IN_RADIUS = 0.05


class ModelFileError(ValueError):
    """Error of a model file that cannot be read or does not compile, with remedies.

    Args:
        path: the file.
        error: message in one line, of MuJoCo or ours.
        hints: remedies, one sentence each.
    """

    def __init__(self, path: Path, error: str, hints: Iterable[str] = ()) -> None:
        self.path = path
        self.error = error
        self.hints = list(hints)
        if self.hints and not error.endswith((".", "?", ":")):
            error += "."
        hints = "".join(f" Hint: {hint}" for hint in self.hints)
        super().__init__(f"{path}: {error}{hints}")


def load_spec(
    path: str | Path,
    *,
    missing_meshes: Literal["error", "skip"] = "error",
    up_axis: UpAxis = "auto",
) -> tuple[mujoco.MjSpec, list[str]]:
    """Read a model file (MJCF, URDF) or a mesh file as a spec, which is not compiled yet.

    What MuJoCo reads itself compiles to the same model as in MuJoCo, bit for bit. Beyond that:
    URDF may refer to meshes by `package://` and `file://`, and meshes may have formats that trimesh
    reads (GLB, glTF, PLY, OFF, text STL, STL of more than 200000 triangles; DAE with pycollada),
    with their textures and colors where the geom has no material.

    A mesh file becomes a model of one fixed body with a geom for each material, which collide as
    their convex hulls; lengths are meters. The y axis of glTF becomes the z axis; in meshes that a
    model refers to, no axis changes unless `up_axis` is given.

    Args:
        path: path of the file; nothing is written.
        missing_meshes: "error" raises one error that names all missing files. "skip" warns: geoms
            of missing or broken meshes, and of missing height fields, become invisible spheres of
            5 cm that collide with nothing but keep their names; missing textures and skins are
            left out.
        up_axis: axis of meshes in formats that trimesh reads that becomes the z axis.

    Returns:
        The spec, and warnings in plain words.

    Raises:
        ModelFileError: it cannot be read, a file is missing, or a limit is exceeded.
        MissingExtraError: trimesh is needed and not installed.
    """
    path = Path(path)
    if path.suffix.lower() in MESH_SUFFIXES and path.is_file():
        return _spec_of_mesh(path, up_axis)
    problem = model_hints.unreadable(path)
    if problem:
        raise ModelFileError(path, *problem)
    found: list[str] = []
    with MujocoWarnings(lambda message: found.append(" ".join(message.split()))):
        try:
            references, texts = model_files(path)
            for text in texts:
                call = unexpanded(text)
                if call:
                    raise ModelFileError(
                        path,
                        f"{call} is a call of xacro that nobody expanded.",
                        [model_hints.expand(text.path)],
                    )
                found += left_out(text)
            present = [one for one in references if one.path.is_file()]
            check_files(present)
            spec = _parse(path)
            check_keyframes(spec)
        except ERRORS as error:
            raise explained(path, error) from None
        # Addresses such as `package://`, and paths that MuJoCo does not find.
        for mesh in spec.meshes:
            reference = reference_of(mesh, references)
            if reference is not None and reference.is_elsewhere and reference.path.is_file():
                mesh.file = str(reference.path)
        try:
            found += _convert_meshes(spec, present, up_axis, skip=missing_meshes == "skip")
        except ValueError as error:
            raise ModelFileError(path, str(error)) from None
        missing = [one for one in references if one not in present]
        if missing_meshes == "skip":
            found += _leave_out(spec)
        elif missing:
            _raise_for_missing(spec, path, missing)
        try:
            complete_keyframes(spec)
        except ERRORS as error:
            raise explained(path, error) from None
    return spec, list(dict.fromkeys(found))


def _parse(path: Path) -> mujoco.MjSpec:
    """Read a model file with MuJoCo, whose parser of specs asks for the ending of the name."""
    if path.suffix in (".xml", ".urdf"):
        return mujoco.MjSpec.from_file(str(path))
    problem = model_hints.no_model(path)
    if problem:
        raise ModelFileError(path, *problem)
    name = f"{path}.xml"
    return mujoco.MjSpec.from_file(name, include={name: path.read_bytes()})


def compile_spec(spec: mujoco.MjSpec, path: Path) -> mujoco.MjModel:
    """Compile the spec that `load_spec` read from a file.

    Raises:
        ModelFileError: the spec does not compile.
    """
    try:
        return spec.compile()
    except ERRORS as error:
        raise explained(path, error) from None


def explained(path: Path, error: Exception) -> ModelFileError:
    """Return an error of a model file with remedies."""
    message = str(error)
    if isinstance(error, ModelFileError):
        return error
    decoder = re.search("could not find decoder for resource '([^']*)'", message)
    if decoder:
        attached = Path(decoder[1]).name
        hint = "rename it to end in .xml or .urdf, if it is a model in MJCF or URDF."
        return ModelFileError(path, f"MuJoCo does not attach '{attached}' by its ending.", [hint])
    if not message.startswith(("Error", "XML")):  # ours
        return ModelFileError(path, message)
    hints = model_hints.hints(path, message)
    if hints and message.startswith("XML parse error"):
        return ModelFileError(path, "the XML cannot be read.", hints)  # MuJoCo says no more
    return ModelFileError(path, model_hints.one_line(message), hints)


def _raise_for_missing(spec: mujoco.MjSpec, path: Path, missing: list[FileReference]) -> None:
    """Raise an error that names all missing files, if MuJoCo does not find them either."""
    try:
        spec.copy().compile()
    except ERRORS as error:
        message = str(error)
        if "Error opening file" not in message:
            return  # another error, which compiling will tell
        complete = explained(path, error)
        places = {one.written: one.where for one in reversed(missing)}
        if len(places) > 1:
            names = ", ".join(f"{name} ({where})" for name, where in reversed(places.items()))
            complete = ModelFileError(
                path, f"{complete.error}; {len(places)} files are missing: {names}", complete.hints
            )
        raise complete from None


def _convert_meshes(
    spec: mujoco.MjSpec, references: list[FileReference], up_axis: UpAxis, *, skip: bool
) -> list[str]:
    """Convert meshes that MuJoCo does not read; return warnings."""
    warnings: list[str] = []
    axis: UpAxis = "z" if up_axis == "auto" else up_axis  # the model says where its meshes belong
    converter = _Converter(spec, axis)
    for mesh in list(spec.meshes):
        reference = reference_of(mesh, references)
        if reference is None or is_native(reference.path):
            continue
        try:
            warnings += converter.convert(mesh, reference.path)
        except ValueError as error:
            if not skip:
                raise
            warnings.append(str(error))  # MuJoCo cannot read it either: it will be left out
    return warnings


def _leave_out(spec: mujoco.MjSpec) -> list[str]:
    """Leave out files that cannot be read, one after the other; return warnings."""
    warnings: list[str] = []
    while True:
        try:
            spec.copy().compile()
        except ERRORS as error:
            message = str(error)
            warning = _leave_out_one(spec, message)
            if not warning:
                return warnings  # another error, which compiling will tell
            warnings.append(f"{warning}: {model_hints.one_line(message)}")
        else:
            return warnings


def _leave_out_one(spec: mujoco.MjSpec, message: str) -> str:
    """Leave out the asset that MuJoCo's message is about; return what became of it, or nothing."""
    opened = re.search(r"(?:Error opening file|file) '([^']*)'", message)
    named = re.search(r"Element name '([^']*)'", message)

    def is_meant(
        asset: mujoco.MjsMesh | mujoco.MjsHField | mujoco.MjsTexture | mujoco.MjsSkin,
    ) -> bool:
        files = [asset.file, *getattr(asset, "cubefiles", ())]
        ends = [f.replace("://", ":/").removeprefix("./") for f in files if f]
        if opened is not None and any(f"/{opened[1]}".endswith(f"/{end}") for end in ends):
            return True
        return bool(any(files) and named is not None and named[1] and named[1] == asset.name)

    for kind, assets in (("mesh", spec.meshes), ("hfield", spec.hfields)):
        for asset in filter(is_meant, assets):
            name = asset.name or Path(asset.file).stem
            geoms = _stand_in(spec, kind, name)
            spec.delete(asset)
            shapes = f"the shapes of {geoms} geoms"
            if geoms == 1:
                shapes = "the shape of 1 geom"
            return f"{kind} '{name}' is left out, and {shapes}"
    for texture in filter(is_meant, spec.textures):
        name = texture.name or Path(texture.file).stem
        for material in spec.materials:
            for role, used in enumerate(material.textures):
                if used == name:
                    material.textures[role] = ""
        spec.delete(texture)
        return f"texture '{name}' is left out"
    for skin in filter(is_meant, spec.skins):
        spec.delete(skin)
        return f"skin '{skin.name}' is left out"
    return ""


def _stand_in(spec: mujoco.MjSpec, kind: str, name: str) -> int:
    """Replace the geoms of an asset by invisible spheres without contacts; return their number.

    Elements that refer to the geoms by name, and bodies that get their mass from them, still
    compile.
    """
    attribute = f"{kind}name"
    geoms = [geom for geom in spec.geoms if getattr(geom, attribute) == name]
    for geom in geoms:
        setattr(geom, attribute, "")
        geom.type = mujoco.mjtGeom.mjGEOM_SPHERE
        geom.size = (_STAND_IN_RADIUS, 0.0, 0.0)
        geom.fromto = np.full(6, np.nan)
        geom.contype = geom.conaffinity = 0
        geom.rgba = (0.5, 0.5, 0.5, 0.0)
        geom.material = ""
    return len(geoms)


class _Converter:
    """Conversion of mesh files into assets of a spec."""

    def __init__(self, spec: mujoco.MjSpec, up_axis: UpAxis) -> None:
        self._spec = spec
        self._up_axis: UpAxis = up_axis

    def convert(self, mesh: mujoco.MjsMesh, path: Path) -> list[str]:
        """Convert the file of a mesh, and give its look to geoms without one; return warnings."""
        parts = read_mesh(path, self._up_axis)
        mesh.name = mesh.name or Path(mesh.file).stem
        mesh.file = self._add_file(path.stem, "msh", _joined(parts).to_msh())
        mesh.content_type = ""
        material = self.add_material(parts[0])
        for geom in self._spec.geoms:
            if (
                geom.meshname == mesh.name
                and not geom.material
                and np.allclose(geom.rgba, (0.5, 0.5, 0.5, 1))
            ):
                geom.material = material
        looks = {(part.rgba, part.image) for part in parts}
        return [f"{path.name} has {len(looks)} materials, and a mesh shows one: the first."] * (
            len(looks) > 1
        )

    def add_body(self, path: Path, parts: list[MeshPart]) -> None:
        """Add a fixed body with a geom for each part."""
        spec = self._spec
        body = spec.worldbody.add_body(name=_clean(path.stem))
        for part in parts:
            name = free_name(_clean(part.name) or body.name, [mesh.name for mesh in spec.meshes])
            mesh = spec.add_mesh(name=name, file=self._add_file(name, "msh", part.to_msh()))
            # Unlike the volume of a mesh with holes, that of its hull is always known.
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
            geom = body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name)
            geom.material = self.add_material(part)

    def add_material(self, part: MeshPart) -> str:
        """Add the material of a part, once; return its name, or nothing if it has no look."""
        spec = self._spec
        if part.rgba is None:
            return ""
        content = repr(part.rgba).encode() + (part.image or b"")
        name = f"look_{hashlib.sha256(content).hexdigest()[:8]}"
        if spec.material(name) is None:
            material = spec.add_material(name=name, rgba=part.rgba)
            if part.image is not None:
                file = self._add_file(name, "png", part.image)
                spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, file=file)
                material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
        return name

    def _add_file(self, stem: str, suffix: str, content: bytes) -> str:
        """Keep a file in the spec, whose name no file of another content has."""
        name = f"{_clean(stem)}-{hashlib.sha256(content).hexdigest()[:8]}.{suffix}"
        self._spec.assets = {**self._spec.assets, name: content}
        return name


def _joined(parts: list[MeshPart]) -> MeshPart:
    """Return one part; it has texture coordinates if all parts have some."""
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    uvs = [part.uv for part in parts if part.uv is not None]
    uv: np.ndarray | None = None
    if len(uvs) == len(parts):
        uv = np.concatenate(uvs)
    return MeshPart(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]),
        uv,
    )


def _spec_of_mesh(path: Path, up_axis: UpAxis) -> tuple[mujoco.MjSpec, list[str]]:
    """Return a spec of one fixed body with the shape of a mesh file, and warnings."""
    spec = mujoco.MjSpec()
    spec.modelname = path.stem
    problem = model_hints.no_content(path)
    if problem:
        raise ModelFileError(path, *problem)
    try:
        if path.suffix.lower() == ".msh":  # which only MuJoCo reads
            check_mesh_size(path)
            name = _clean(path.stem)
            spec.add_mesh(name=name, file=str(path.resolve()))
            spec.worldbody.add_body(name=name).add_geom(
                name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name
            )
            return spec, []
        parts = read_mesh(path, up_axis)
    except ValueError as error:
        raise ModelFileError(path, str(error).removeprefix(f"{path.name} ")) from None
    solid = [part for part in parts if has_hull(part)]
    if not solid:
        raise ModelFileError(path, "the mesh is flat: give it a thickness.")
    warnings = [
        f"the part '{part.name}' of the mesh is flat, and is left out."
        for part in parts
        if part not in solid
    ]
    _Converter(spec, up_axis).add_body(path, solid)
    vertices = np.concatenate([part.vertices for part in solid])
    size = float(np.ptp(vertices, axis=0).max())
    if size >= LARGE:
        warnings.append(
            f"the mesh is {size:.4g} m large: if its file is in millimeters, scale it by 0.001."
        )
    return spec, warnings


def _clean(name: str) -> str:
    """Return a name without folders and special characters."""
    return re.sub(r"[^\w+-]", "_", name)
