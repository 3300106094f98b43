"""Model files for the page: as small as they can be, and in MJCF that its MuJoCo reads."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from manyworlds.spec.export import spec_files
from manyworlds.utils.extras import MissingExtraError, require_extra

SCENE = "scene.xml"
_ASSETS = ("material", "texture", "mesh", "hfield")
"""Elements of `<asset>` that others refer to by attributes of these names."""
_LARGEST_TEXTURE = 512  # pixels along a side
_COMPRESSED = (".obj", ".stl", ".msh", ".hf", ".bin")
_CHECKED_STEPS = 20


def page_files(spec: mujoco.MjSpec) -> dict[str, bytes]:
    """Return `scene.xml` and its assets by path, without what is not used.

    Args:
        spec: the world; not modified.

    Raises:
        ValueError: MuJoCo cannot write the spec.
    """
    files = dict(spec_files(spec))
    root = ElementTree.fromstring(files.pop(SCENE))
    for general in root.iter("general"):
        # What MuJoCo 4 writes for position servos and the page's MuJoCo does not read.
        if general.get("input") == "pos":
            del general.attrib["input"]
    _drop_unused(root)
    kept = {SCENE: ElementTree.tostring(root)}
    for element in root.iter():
        for attribute, value in element.attrib.items():
            path = f"assets/{value}"
            if attribute.startswith("file") and path in files:
                kept[path] = _small(path, files[path])
    return kept


def compile_files(files: Mapping[str, bytes]) -> mujoco.MjModel:
    """Compile the files of a world."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return mujoco.MjModel.from_xml_path(str(Path(folder, SCENE)))


def check_same_motion(before: mujoco.MjModel, after: mujoco.MjModel, keyframe: str | None) -> None:
    """Raise an error if two models move differently from the same state.

    Raises:
        ValueError: they do.
    """
    ends = []
    for model in (before, after):
        data = mujoco.MjData(model)
        if keyframe is not None:
            mujoco.mj_resetDataKeyframe(model, data, model.key(keyframe).id)
        data.ctrl[:] += 0.1
        mujoco.mj_step(model, data, _CHECKED_STEPS)
        ends.append(np.concatenate([data.qpos, data.qvel, data.sensordata]))
    if ends[0].shape != ends[1].shape or not np.array_equal(*ends, equal_nan=True):
        raise ValueError(
            "The world moves differently once it is written for the page, which MuJoCo "
            f"{mujoco.mj_versionString()} should not do: report this world."
        )


def compressed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return files with large binary ones compressed, under names that end in `.gz`."""
    result = {}
    for name, content in files.items():
        if Path(name).suffix.lower() in _COMPRESSED:
            result[f"{name}.gz"] = gzip.compress(content, 6, mtime=0)
        else:
            result[name] = content
    return result


def _drop_unused(root: ElementTree.Element) -> None:
    """Remove assets that nothing refers to; materials first, which refer to textures."""
    for kind in _ASSETS:
        used = set()
        for element in root.iter():
            used.add(element.get(kind))
        for asset in root.iterfind("asset"):
            for element in list(asset.iterfind(kind)):
                is_sky = element.get("type") == "skybox"
                if element.get("name") not in used and not is_sky:
                    asset.remove(element)


def _small(path: str, content: bytes) -> bytes:
    """Return a texture with fewer pixels if it is large, and other files as they are."""
    if not path.lower().endswith(".png"):
        return content
    try:
        require_extra("PIL", "share")
    except MissingExtraError:
        return content
    from PIL import Image

    with Image.open(io.BytesIO(content)) as picture:
        if max(picture.size) <= _LARGEST_TEXTURE:
            return content
        picture.thumbnail((_LARGEST_TEXTURE, _LARGEST_TEXTURE))
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
    return buffer.getvalue()
