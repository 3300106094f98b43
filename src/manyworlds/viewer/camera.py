"""Bodies that a `ViewerConfig` looks at."""

from __future__ import annotations

import mujoco

from manyworlds.utils.viewer_config import ViewerConfig

_Origin = ViewerConfig.OriginType


def tracked_body_id(model: mujoco.MjModel, cfg: ViewerConfig) -> int:
    """Return the body that the camera follows; 0, the world, if it follows none.

    Raises:
        ValueError: the entity or body named is missing, or a name that is needed is not given.
    """
    origin = cfg.origin_type
    if origin is _Origin.AUTO:
        if cfg.body_name is not None:
            origin = _Origin.ASSET_BODY
        elif cfg.entity_name is not None:
            origin = _Origin.ASSET_ROOT
        else:
            origin = _Origin.WORLD
    if origin is _Origin.WORLD:
        return 0
    if origin is _Origin.ASSET_BODY:
        return _named_body(model, cfg)
    return _root_body(model, cfg)


def first_free_body(model: mujoco.MjModel) -> int:
    """Return the first body that floats freely; 0 if there is none."""
    return next(iter(_free_bodies(model)), 0)


def _free_bodies(model: mujoco.MjModel) -> list[int]:
    return model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE].tolist()


def _named_body(model: mujoco.MjModel, cfg: ViewerConfig) -> int:
    """Return the body that a configuration names."""
    if cfg.body_name is None:
        raise ValueError("ViewerConfig: ASSET_BODY needs a body to follow: set body_name.")
    name = cfg.body_name
    if cfg.entity_name:
        name = f"{cfg.entity_name}/{name}"
    names = _body_names(model)
    if name not in names:
        raise ValueError(
            f"ViewerConfig.body_name: the model has no body '{name}': "
            f"use one of {_shown(names[1:])}."
        )
    return names.index(name)


def _root_body(model: mujoco.MjModel, cfg: ViewerConfig) -> int:
    """Return the root of the entity that a configuration names."""
    if cfg.entity_name is None:
        raise ValueError("ViewerConfig: ASSET_ROOT needs an entity to follow: set entity_name.")
    names = _body_names(model)
    own = [i for i, name in enumerate(names) if name.startswith(f"{cfg.entity_name}/")]
    if own:
        # An entity's root floats, or is the first of its bodies, which are numbered parents first.
        return next((i for i in own if i in _free_bodies(model)), own[0])
    entities = sorted({name.split("/")[0] for name in names if "/" in name})
    raise ValueError(
        f"ViewerConfig.entity_name: the model has no entity '{cfg.entity_name}': "
        f"use one of {_shown(entities)}."
    )


def _body_names(model: mujoco.MjModel) -> list[str]:
    return [model.body(i).name for i in range(model.nbody)]


def _shown(names: list[str]) -> str:
    if not names:
        return "(there are none)"
    shown = [repr(name) for name in names[:8]]
    if len(names) > 8:
        shown.append("...")
    return ", ".join(shown)
