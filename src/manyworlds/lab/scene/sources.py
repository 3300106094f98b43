"""Sources of items: files, registered entities, MuJoCo Menagerie, specs and configs."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mujoco

from manyworlds.entity import EntityCfg
from manyworlds.lab.model_facts import hash_model
from manyworlds.lab.scene.draft import ItemContent, compile_copy
from manyworlds.lab.verb_error import near
from manyworlds.lab.world import CompileError
from manyworlds.utils.extras import MissingExtraError, require_extra

Source = str | Path | mujoco.MjSpec | EntityCfg
"""Path of an MJCF, URDF or mesh file, registered name, robot of MuJoCo Menagerie, spec, config."""

MENAGERIE = "menagerie:"
"""Beginning of the names of robots of MuJoCo Menagerie; it may be left out."""
MESHES = (".obj", ".stl", ".msh")
MODELS = (".xml", ".mjcf", ".urdf", ".mjz")
SHAPES = ("box", "sphere", "capsule", "cylinder", "ellipsoid")
MAX_BYTES = 200_000_000
"""Size of the largest file that is read as a source [byte]."""

_REGISTERED: dict[str, str] = {
    "quadruped": "manyworlds.asset_zoo.quadruped:get_quadruped_cfg",
    "humanoid": "manyworlds.asset_zoo.humanoid:get_humanoid_cfg",
    "arm": "manyworlds.asset_zoo.arm:get_arm_cfg",
    "cartpole": "manyworlds.asset_zoo.cartpole:cartpole_cfg",
    "go1": "manyworlds.asset_zoo.third_party:get_go1_robot_cfg",
    "g1": "manyworlds.asset_zoo.third_party:get_g1_robot_cfg",
    "yam": "manyworlds.asset_zoo.third_party:get_yam_robot_cfg",
}
_COUNTS = {"box": 3, "sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3}


def registered_names() -> tuple[str, ...]:
    """Return the names of the entities that the package has."""
    return tuple(_REGISTERED)


def menagerie_names() -> tuple[str, ...]:
    """Return the names of the robots of MuJoCo Menagerie; none if the package is not installed."""
    try:
        return tuple(_menagerie().names())
    except MissingExtraError:
        return ()


def load_source(source: Source) -> tuple[ItemContent, str]:
    """Read a source, and check that it compiles alone.

    Args:
        source: the source.

    Returns:
        Its content, and a name for an item of it.

    Raises:
        CompileError: it cannot be read, or does not compile.
        FileNotFoundError: there is no such file.
        ValueError: the source is unknown, or too large.
        MissingExtraError: a robot of MuJoCo Menagerie needs the extra 'robots'.
        OSError: a robot cannot be downloaded.
    """
    if isinstance(source, mujoco.MjSpec):
        name = source.modelname if source.modelname != "MuJoCo Model" else ""
        return _of_spec(source.copy(), name or "item"), _plain_name(name or "item")
    if isinstance(source, EntityCfg):
        return _of_config(source, "entity"), "item"
    text = str(source)
    if text in _REGISTERED:
        module, _, function = _REGISTERED[text].partition(":")
        make: Callable[[], EntityCfg] = getattr(importlib.import_module(module), function)
        return _of_config(make(), text), text
    path = Path(source)
    if path.suffix.lower() in MODELS + MESHES or path.exists():
        return _of_file(path), _plain_name(path.stem)
    name = text.removeprefix(MENAGERIE)
    return _of_spec(_menagerie_spec(name), f"{MENAGERIE}{name}"), _plain_name(name)


def primitive(shape: str, size: Sequence[float], *, mode: str = "dynamic") -> EntityCfg:
    """Configure a prop of one primitive.

    Args:
        shape: box, sphere, capsule, cylinder or ellipsoid.
        size: MuJoCo's sizes of the geom [m].
        mode: `dynamic` with a free joint, or `static`.

    Raises:
        ValueError: the shape is unknown, or the sizes do not fit it.
    """
    if shape not in SHAPES:
        raise ValueError(f"There is no shape '{shape}': choose one of {', '.join(SHAPES)}.")
    if len(size) != _COUNTS[shape] or min(size) <= 0.0:
        raise ValueError(
            f"A {shape} needs {_COUNTS[shape]} positive sizes [m], got {[*size]}: see MuJoCo's "
            "sizes of geoms."
        )
    kind = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.upper()}")
    sizes = [*map(float, size), 0.0, 0.0][:3]

    def spec_fn() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name=shape)
        if mode == "dynamic":
            body.add_freejoint(name="free")
        body.add_geom(name=shape, type=kind, size=sizes, rgba=(0.55, 0.65, 0.8, 1.0))
        return spec

    return EntityCfg(spec_fn=spec_fn)


def _of_config(cfg: EntityCfg, name: str) -> ItemContent:
    try:
        entity = cfg.build()
        model = compile_copy(entity.spec)
    except ValueError as error:
        raise CompileError(f"{name}: {error}") from error
    return ItemContent.of_entity(entity, name, hash_model(model))


def _of_spec(spec: mujoco.MjSpec, name: str) -> ItemContent:
    try:
        model = compile_copy(spec)
    except CompileError as error:
        raise CompileError(f"{name}: {error}") from error
    return ItemContent(
        spec=spec,
        has_actuators=bool(len(spec.actuators)),
        source=name,
        fingerprint=hash_model(model),
        qpos={},
        ctrl={},
    )


def _of_file(path: Path) -> ItemContent:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}'.")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(
            f"'{path}' has {path.stat().st_size / 1e6:.0f} MB: sources have at most "
            f"{MAX_BYTES / 1e6:.0f} MB."
        )
    if path.suffix.lower() in MESHES:
        return _of_config(_mesh_prop(path), path.name)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError as error:
        raise CompileError(f"{path.name}: {' '.join(str(error).split())}") from error
    return dataclasses.replace(_of_spec(spec, path.name), source=str(path))


def _mesh_prop(path: Path) -> EntityCfg:
    """Configure a free body whose shape is a mesh."""

    def spec_fn() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        mesh = spec.add_mesh(name="mesh", file=str(path.resolve()))
        body = spec.worldbody.add_body(name="mesh")
        body.add_freejoint(name="free")
        body.add_geom(name="mesh", type=mujoco.mjtGeom.mjGEOM_MESH, meshname=mesh.name)
        return spec

    return EntityCfg(spec_fn=spec_fn)


def _menagerie() -> Any:
    return require_extra("mujoco_menagerie", "robots")


def _menagerie_spec(name: str) -> mujoco.MjSpec:
    """Return a robot of MuJoCo Menagerie, without its scene; the package downloads it once."""
    try:
        package = _menagerie()
    except MissingExtraError as error:
        raise ValueError(
            f"There is no file and no registered entity '{name}'{near(name, _REGISTERED)}: give a "
            f"path, or one of {', '.join(_REGISTERED)}; robots of MuJoCo Menagerie need "
            f"mujoco-menagerie ({error})"
        ) from error
    known = package.names()
    if name not in known:
        raise ValueError(
            f"There is no file, no registered entity and no robot of MuJoCo Menagerie '{name}'"
            f"{near(name, [*known, *_REGISTERED]) or '.'}"
        )
    robot = package.get(name)
    try:
        path = Path(robot.xml(robot.default_model))
    except Exception as error:  # the package's own errors of downloads, and those of its files
        raise OSError(
            f"MuJoCo Menagerie cannot give '{name}': {' '.join(str(error).split())}"
        ) from error
    try:
        return mujoco.MjSpec.from_file(str(path))
    except ValueError as error:
        raise CompileError(f"{name}: {' '.join(str(error).split())}") from error


def _plain_name(name: str) -> str:
    """Return a name that items may have."""
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in name).strip("_-")
    return plain[:64] or "item"
