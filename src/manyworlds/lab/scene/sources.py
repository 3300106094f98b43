"""Sources of items: files, registered entities, MuJoCo Menagerie, specs and configs."""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mujoco

from manyworlds.lab.errors import near
from manyworlds.lab.scene.draft import ItemContent, compile_copy
from manyworlds.lab.world.model_facts import hash_model
from manyworlds.lab.world.world import CompileError
from manyworlds.spec.load import ModelFileError, load_spec
from manyworlds.spec.mesh_files import MESH_SUFFIXES
from manyworlds.spec.plausibility import doubtful_sizes
from manyworlds.spec.references import complete_keyframes, copy_spec
from manyworlds.spec.uploads import MODEL_SUFFIXES
from manyworlds.utils.extras import MissingExtraError, require_extra
from manyworlds.utils.platforms import cache_folder

if TYPE_CHECKING:
    from manyworlds.entity import EntityCfg

Source: TypeAlias = "str | Path | mujoco.MjSpec | EntityCfg"
"""Path of an MJCF, URDF or mesh file, registered name, robot of MuJoCo Menagerie, spec, config."""

MENAGERIE = "menagerie:"
"""Beginning of the names of robots of MuJoCo Menagerie; it may be left out."""

_REGISTERED: dict[str, str] = {
    "quadruped": "manyworlds.asset_zoo.quadruped:get_quadruped_cfg",
    "humanoid": "manyworlds.asset_zoo.humanoid:get_humanoid_cfg",
    "arm": "manyworlds.asset_zoo.arm:get_arm_cfg",
    "cartpole": "manyworlds.asset_zoo.cartpole:cartpole_cfg",
    "go1": "manyworlds.asset_zoo.third_party:get_go1_robot_cfg",
    "g1": "manyworlds.asset_zoo.third_party:get_g1_robot_cfg",
    "yam": "manyworlds.asset_zoo.third_party:get_yam_robot_cfg",
}


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
    from manyworlds.entity import EntityCfg

    if isinstance(source, mujoco.MjSpec):
        name = source.modelname
        if name in ("", "MuJoCo Model"):
            name = "item"
        return _of_spec(_copy(source), name), plain_name(name)
    if isinstance(source, EntityCfg):
        return _of_config(source, "entity"), "item"
    text = str(source)
    if text in _REGISTERED:
        module, _, function = _REGISTERED[text].partition(":")
        make: Callable[[], EntityCfg] = getattr(importlib.import_module(module), function)
        return _of_config(make(), text), text
    path = Path(source)
    if path.suffix.lower() in MODEL_SUFFIXES + MESH_SUFFIXES or path.exists():
        return _of_file(path), plain_name(path.stem)
    name = text.removeprefix(MENAGERIE)
    return _of_spec(_menagerie_spec(name), f"{MENAGERIE}{name}"), plain_name(name)


def _of_config(cfg: EntityCfg, name: str) -> ItemContent:
    try:
        entity = cfg.build()
        model = compile_copy(entity.spec)
    except ValueError as error:
        reason = str(error).removeprefix(f"{name} ")  # errors of a mesh begin with its file
        raise CompileError(f"{name}: {reason}") from error
    return ItemContent.of_entity(entity, name, model)


def _copy(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    try:
        copy = copy_spec(spec)
        complete_keyframes(copy)
    except ValueError as error:
        raise CompileError(" ".join(str(error).split())) from error
    return copy


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
        model=model,
    )


def _of_file(path: Path) -> ItemContent:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}'.")
    if path.suffix.lower() in MESH_SUFFIXES:
        from manyworlds.entity import PropCfg

        cfg = PropCfg.from_mesh(path, decompose=None)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            content = _of_config(cfg, path.name)
        notes = list(dict.fromkeys(str(warning.message) for warning in found))
    else:
        spec, notes = _read_file(path)
        content = _of_spec(spec, path.name)
    if content.model is not None:
        notes += doubtful_sizes(content.model)
    return dataclasses.replace(content, source=str(path), notes=tuple(notes))


def _read_file(path: Path) -> tuple[mujoco.MjSpec, list[str]]:
    """Return the spec of a model file, and warnings; see `load_spec`."""
    try:
        return load_spec(path)
    except ModelFileError as error:
        raise CompileError(str(error)) from error


def _menagerie() -> Any:
    return require_extra("mujoco_menagerie", "robots")


def _menagerie_spec(name: str) -> mujoco.MjSpec:
    """Return a robot of MuJoCo Menagerie, without its scene; the package downloads it once."""
    try:
        package = _menagerie()
    except MissingExtraError as error:
        raise ValueError(
            f"There is no file and no registered entity '{name}'{near(name, _REGISTERED, '')}: "
            f"give a path, or one of {', '.join(_REGISTERED)}; robots of MuJoCo Menagerie need "
            f"mujoco-menagerie ({error})"
        ) from error
    known = package.names()
    if name not in known:
        raise ValueError(
            f"There is no file, no registered entity and no robot of MuJoCo Menagerie '{name}'"
            f"{near(name, [*known, *_REGISTERED])}"
        )
    robot = package.get(name)
    try:
        path = Path(robot.xml(robot.default_model))
    except Exception as error:  # the package's own errors of downloads, and those of its files
        raise OSError(
            f"MuJoCo Menagerie cannot give '{name}': {' '.join(str(error).split())}"
        ) from error
    return _read_file(path)[0]


def uploads_folder() -> Path:
    """Return the folder of uploads: `uploads` in the user's cache.

    Uploads stay there, because the scene and its history read them again.
    """
    return cache_folder() / "uploads"


def plain_name(name: str) -> str:
    """Return a name that items may have."""
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in name).strip("_-")
    return plain[:64] or "item"
