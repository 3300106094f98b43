"""Division of a task into buckets: worlds that share one model, each a task of its own."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace

import mujoco
import numpy as np

from manyworlds.entity import EntityCfg, VariantEntityCfg
from manyworlds.entity.variants.assignment import assign_worlds
from manyworlds.entity.variants.compiled import ROOM
from manyworlds.entity.variants.config import MergedEntityCfg, settings_of
from manyworlds.entity.variants.validate import topology_of
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp.padding import AbsentActionCfg, AbsentValues, PresentColumns
from manyworlds.managers import ActionTermCfg, ObservationGroupCfg, ObservationTermCfg
from manyworlds.managers.manager_base import MissingElementsError
from manyworlds.scene import SceneCfg
from manyworlds.scene.scene import world_ids_of
from manyworlds.sim.fields.element_rows import fields_of, kinds
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.validation.names import near_matches

MASK = "present"
"""Name of the term that masks the columns of a group."""

_OF_THE_BATCH = (
    "num_envs",
    "first_world",
    "total_envs",
    "world_ids",
    "buckets",
    "bucket_assignment",
    "merge_buckets",
)
"""Fields of a scene with buckets that are read; those of a bucket itself are not."""
# Assets have other names in each variant.
_OF_ASSETS = ("dataid", "matid", "texid", "meshid")

_Shape = tuple[int, ...]


def assign_buckets(scene: SceneCfg) -> np.ndarray:
    """Return the index of the bucket of each world of the whole batch, int64, shape [total].

    Raises:
        ValueError: there are no buckets, they have buckets of their own, the assignment does not
            fit, or a bucket gets no world.
    """
    _check_buckets(scene)
    names = list(scene.buckets)
    assignment = scene.bucket_assignment
    if isinstance(assignment, Mapping):
        unknown = sorted(set(assignment) - set(names))
        if unknown:
            raise ValueError(
                f"SceneCfg.bucket_assignment names '{unknown[0]}', which is no bucket."
                + near_matches(unknown[0], names)
            )
        assignment = tuple(assignment.get(name, 1.0) for name in names)
    if isinstance(assignment, tuple):
        assignment = _weights(names, assignment)
    elif not callable(assignment) and not isinstance(assignment, np.ndarray):
        raise TypeError(
            f"SceneCfg.bucket_assignment is of type {type(assignment).__name__}: give a tuple of "
            "weights, a dict of weights by name, an array of the index of each world's bucket, or "
            "a function of the number of worlds that returns one."
        )
    total = scene.total_envs or scene.num_envs
    what = "SceneCfg.bucket_assignment"
    every = assign_worlds(assignment, what, len(names), total, kind="bucket")
    missing = sorted({*range(len(names))} - set(every.tolist()))
    if missing:
        raise ValueError(
            f"Bucket '{names[missing[0]]}' gets none of {total} worlds: ask for more worlds, or "
            "leave it out of SceneCfg.buckets."
        )
    return every


def _check_buckets(scene: SceneCfg) -> None:
    """Raise an error unless a scene has buckets, which are scenes, and nothing else."""
    if not scene.buckets:
        raise ValueError("SceneCfg.buckets is empty: give named scenes, or use ManagerBasedRlEnv.")
    if not isinstance(scene.buckets, dict):
        raise TypeError(
            f"SceneCfg.buckets is of type {type(scene.buckets).__name__}: give a dict of scenes by "
            "name."
        )
    for name, bucket in scene.buckets.items():
        if not isinstance(name, str) or not name or "/" in name:
            raise ValueError(
                f"SceneCfg.buckets has a bucket {name!r}: a name is a string that is not empty and "
                "has no slash in it."
            )
        if not isinstance(bucket, SceneCfg):
            raise TypeError(
                f"Bucket '{name}' is of type {type(bucket).__name__}: give a SceneCfg, such as "
                "SceneCfg(entities={...})."
            )
        if bucket.buckets or bucket.merge_buckets:
            raise ValueError(f"Bucket '{name}' has buckets of its own: name all of them in one.")
    usual = SceneCfg()
    for name in (each.name for each in fields(SceneCfg)):
        if name not in _OF_THE_BATCH and getattr(scene, name) != getattr(usual, name):
            raise ValueError(
                f"SceneCfg.{name} has no effect beside SceneCfg.buckets: set it in each bucket."
            )


def _weights(names: list[str], weights: tuple[float, ...]) -> tuple[float, ...]:
    """Return a checked weight for each bucket."""
    if not weights:
        return (1.0,) * len(names)
    if len(weights) != len(names):
        raise ValueError(
            f"SceneCfg.bucket_assignment has {len(weights)} weights, but there are {len(names)} "
            "buckets: give one each."
        )
    for name, weight in zip(names, weights, strict=True):
        if not 0.0 < weight < float("inf"):
            raise ValueError(
                f"Bucket '{name}' has weight {weight}: give a positive number, or leave the bucket "
                "out."
            )
    return weights


def model_cfgs(cfg: ManagerBasedRlEnvCfg) -> dict[tuple[str, ...], ManagerBasedRlEnvCfg]:
    """Return the task of each model that has worlds here, by the names of its buckets.

    Each is a task of its own for `ManagerBasedRlEnv`, whose observations and actions have the same
    shapes in all buckets: terms are padded with zeros at their end to the largest shape, and
    concatenated groups with one dimension get a term "present", which masks their columns. It has
    one part for each pattern of widths, since terms of joints have one pattern, for instance.

    Args:
        cfg: a task with `scene.buckets`. With `scene.merge_buckets`, those of equal topology are
            variants of one model.

    Raises:
        ValueError: the buckets do not fit together; the message names the bucket and the term.
    """
    scene = cfg.scene
    assigned = assign_buckets(scene)
    ids = world_ids_of(scene)
    models = _merged(scene)
    masks = [mask_of(scene, assigned, names) for names in models]
    parts = _padded(cfg, models, [int(mask.sum()) for mask in masks])
    cfgs: dict[tuple[str, ...], ManagerBasedRlEnvCfg] = {}
    for names, everywhere, part in zip(models, masks, parts, strict=True):
        rows = rows_of(scene, everywhere)
        if not len(rows):
            continue  # its worlds are in other processes
        # Indices among the buckets of the model, in the order of all buckets.
        variants = np.unique(assigned[everywhere], return_inverse=True)[1]
        part.scene = replace(
            _merged_scene({name: scene.buckets[name] for name in names}, variants),
            num_envs=len(rows),
            world_ids=tuple(ids[row] for row in rows),
            first_world=int(everywhere[: scene.first_world].sum()),
            total_envs=int(everywhere.sum()),
        )
        part.viewer = replace(cfg.viewer, env_idx=0)
        if cfg.viewer.env_idx in rows:
            part.viewer.env_idx = int(np.searchsorted(rows, cfg.viewer.env_idx))
        cfgs[names] = part
    return cfgs


def bucket_cfgs(cfg: ManagerBasedRlEnvCfg) -> dict[str, ManagerBasedRlEnvCfg]:
    """Return the task of each bucket that has worlds here, by name; see `model_cfgs`.

    Args:
        cfg: a task with `scene.buckets`.

    Raises:
        ValueError: the buckets do not fit together; the message names the bucket and the term.
    """
    cfg = copy.copy(cfg)
    cfg.scene = replace(cfg.scene, merge_buckets=False)
    return {names[0]: part for names, part in model_cfgs(cfg).items()}


def _merged(scene: SceneCfg) -> list[tuple[str, ...]]:
    """Return the names of the buckets of each model, in the order of the first ones."""
    models: list[tuple[dict[str, object] | None, list[str]]] = []
    for name, bucket in scene.buckets.items():
        traits: dict[str, object] | None = None
        if scene.merge_buckets:
            with blame_bucket(name):
                traits = _traits(bucket)
        for others, names in models:
            if traits is not None and _equal(traits, others):
                names.append(name)
                break
        else:
            models.append((traits, [name]))
    return [tuple(names) for _, names in models]


def _traits(scene: SceneCfg) -> dict[str, object] | None:
    """Return what is equal in all scenes of one model; None for a scene that has its own model."""
    terrains = [scene.terrain, *scene.entities.values()]
    if any(isinstance(t, TerrainEntityCfg) and t.terrain_type != "plane" for t in terrains):
        return None  # a world's column depends on the number of worlds of its bucket
    batch = {name: getattr(SceneCfg(), name) for name in _OF_THE_BATCH}
    traits: dict[str, object] = {"scene": replace(scene, entities={}, **batch)}
    for name, cfg in scene.entities.items():
        if isinstance(cfg, VariantEntityCfg):
            return None  # so does a world's variant
        traits[name] = cfg
        if type(cfg) is EntityCfg and cfg.init_state.joint_pos is not None:
            entity = cfg.build()
            try:
                topology = topology_of(name, entity.spec)
            except ValueError:  # it cannot be a variant
                continue
            names = [(geom.name, geom.parent.name) for geom in entity.spec.geoms]
            traits[name] = (topology, settings_of(entity), names, _integers(entity.compile()))
    return traits


def _integers(model: mujoco.MjModel) -> dict[str, list[object]]:
    """Return types, flags and sizes of elements, which terms may read from the compiled model."""
    found: dict[str, list[object]] = {}
    for kind in kinds():
        for field in (*fields_of(kind), *ROOM.get(kind, ())):
            values = getattr(model, field)
            if values.dtype.kind in "iub" and not field.endswith(_OF_ASSETS):
                found[field] = values.tolist()
    return found


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except (ValueError, RuntimeError):  # of arrays and tensors in settings
        return False


def _merged_scene(scenes: dict[str, SceneCfg], variants: np.ndarray) -> SceneCfg:
    """Return a scene whose worlds are those of several buckets.

    Args:
        scenes: scenes of the buckets by name.
        variants: index of each world's bucket among them, shape [total].
    """
    first = next(iter(scenes.values()))
    merged = copy.deepcopy(first)
    for entity, cfg in first.entities.items():
        each = {name: scene.entities[entity] for name, scene in scenes.items()}
        if not all(_equal(other, cfg) for other in each.values()):
            merged.entities[entity] = MergedEntityCfg(
                variants=copy.deepcopy({**each}), assignment=variants
            )
    return merged


def mask_of(scene: SceneCfg, assigned: np.ndarray, names: Collection[str]) -> np.ndarray:
    """Return a mask of the worlds of the whole batch that are in some buckets, shape [total].

    Args:
        scene: a scene with buckets.
        assigned: index of each world's bucket, shape [total].
        names: names of the buckets.
    """
    return np.isin(assigned, [i for i, name in enumerate(scene.buckets) if name in names])


def rows_of(scene: SceneCfg, everywhere: np.ndarray) -> np.ndarray:
    """Return which of a scene's worlds are in a mask of the whole batch, shape [n].

    Args:
        scene: the scene.
        everywhere: mask, shape [total].
    """
    return np.flatnonzero(everywhere[scene.first_world : scene.first_world + scene.num_envs])


def bucket_cfg(cfg: ManagerBasedRlEnvCfg, name: str, num_envs: int) -> ManagerBasedRlEnvCfg:
    """Return the task of one bucket alone, with the padding that it has among the others.

    Args:
        cfg: a task with `scene.buckets`.
        name: the bucket.
        num_envs: number of its worlds.

    Raises:
        ValueError: there is no such bucket.
    """
    if name not in cfg.scene.buckets:
        raise ValueError(
            f"There is no bucket '{name}': choose one of {', '.join(cfg.scene.buckets)}."
            + near_matches(name, cfg.scene.buckets)
        )
    return separate_cfgs(cfg, num_envs)[name]


def separate_cfgs(cfg: ManagerBasedRlEnvCfg, num_envs: int) -> dict[str, ManagerBasedRlEnvCfg]:
    """Return the task of each bucket alone, as `bucket_cfg` does.

    Args:
        cfg: a task with `scene.buckets`.
        num_envs: number of worlds of each.
    """
    _check_buckets(cfg.scene)  # but not the assignment, which belongs to the task's worlds
    models = _merged(cfg.scene)
    padded = _padded(cfg, models, [len(names) for names in models])
    parts: dict[str, ManagerBasedRlEnvCfg] = {}
    for names, shared in zip(models, padded, strict=True):
        for name in names:
            part = copy.deepcopy(shared)
            part.scene = replace(copy.deepcopy(cfg.scene.buckets[name]), num_envs=num_envs)
            parts[name] = part
    return {name: parts[name] for name in cfg.scene.buckets}


def _padded(
    cfg: ManagerBasedRlEnvCfg, models: list[tuple[str, ...]], counts: list[int]
) -> list[ManagerBasedRlEnvCfg]:
    """Return copies of a task for each model, whose terms have the same shapes in all.

    Args:
        cfg: the task.
        models: names of the buckets of each model.
        counts: number of worlds of each model.
    """
    parts: dict[str, ManagerBasedRlEnvCfg] = {}
    for names in models:
        part = copy.copy(cfg)
        part.scene = SceneCfg()
        parts[names[0]] = copy.deepcopy(part)
    seen = _shapes(cfg, parts, counts)
    padded = False
    for term, term_cfg in cfg.actions.items():
        widths = {name: of.actions.get(term) for name, of in seen.items()}
        padded |= _pad_action(term, term_cfg, parts, widths)
    if padded:  # actions are observed with their padding
        seen = _shapes(cfg, parts, counts)
    for group, group_cfg in cfg.observations.items():
        _pad_group(group, group_cfg, parts, {n: of.observations[group] for n, of in seen.items()})
    return list(parts.values())


def _shapes(
    cfg: ManagerBasedRlEnvCfg, parts: dict[str, ManagerBasedRlEnvCfg], counts: list[int]
) -> dict[str, _Shapes]:
    """Return the shapes of all models, from an environment of one world of each first bucket."""
    seen: dict[str, _Shapes] = {}
    for (name, part), count in zip(parts.items(), counts, strict=True):
        with blame_bucket(name):
            seen[name] = _Shapes(_probe(part, cfg.scene.buckets[name], count))
    return seen


def _probe(cfg: ManagerBasedRlEnvCfg, scene: SceneCfg, total_envs: int) -> ManagerBasedRlEnv:
    """Return an environment of one world of a bucket, with what observations and actions need."""
    probe = copy.copy(cfg)
    probe.scene = replace(
        scene, num_envs=1, first_world=0, world_ids=None, total_envs=max(total_envs, 1)
    )
    probe.sim = replace(cfg.sim, num_threads=1, capture="off")
    probe.seed = 0
    probe.events = {}
    probe.rewards = {}
    probe.terminations = {}
    probe.curriculum = {}
    probe.metrics = {}
    probe.recorders = {}
    return ManagerBasedRlEnv(probe, device="cpu")


class _Shapes:
    """Shapes of the observation terms and widths of the action terms of a bucket."""

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self.observations: dict[str, dict[str, _Shape]] = {}
        manager = env.observation_manager
        for group in env.cfg.observations:
            terms = manager.active_terms.get(group, [])
            shapes = manager.group_obs_term_dim.get(group, [])
            self.observations[group] = dict(zip(terms, shapes, strict=True))
        self.actions: dict[str, int] = {}
        for term in env.action_manager.active_terms:
            self.actions[term] = env.action_manager.get_term(term).action_dim


def _pad_group(
    group: str,
    group_cfg: ObservationGroupCfg,
    parts: dict[str, ManagerBasedRlEnvCfg],
    shapes: dict[str, dict[str, _Shape]],
) -> None:
    """Pad the terms of a group in the tasks of all buckets, and mask their columns.

    Args:
        group: name of the group.
        group_cfg: the group.
        parts: tasks by bucket.
        shapes: shapes of the terms by bucket and term; optional terms may be missing.
    """
    patterns: dict[tuple[int, ...], int] = {}
    has_rows = False
    for term, term_cfg in group_cfg.terms.items():
        found = {name: of[term] for name, of in shapes.items() if term in of}
        if term_cfg is None or not found:
            continue
        largest = _largest(f"Observation term '{group}/{term}'", found)
        has_rows |= len(largest) > 1
        widths: list[int] = []
        for name, part in parts.items():
            shape = found.get(name)
            terms = part.observations[group].terms
            if shape is None:
                terms[term] = ObservationTermCfg(func=AbsentValues, params={"shape": largest})
                widths.append(0)
                continue
            widths.append(shape[-1])
            if any(of != largest for of in found.values()):
                terms[term].pad_to = largest
        if any(width != largest[-1] for width in widths):
            patterns[tuple(widths)] = largest[-1]
    if not patterns or has_rows or not group_cfg.concatenate_terms:
        return
    if MASK in group_cfg.terms:
        raise ValueError(
            f"Observation group '{group}' has a term '{MASK}', which is the name of the mask of "
            "columns that buckets lack: rename the term."
        )
    for index, part in enumerate(parts.values()):
        columns = tuple((pattern[index], width) for pattern, width in patterns.items())
        mask = ObservationTermCfg(func=PresentColumns, params={"columns": columns})
        part.observations[group].terms[MASK] = mask


def _pad_action(
    term: str,
    term_cfg: ActionTermCfg,
    parts: dict[str, ManagerBasedRlEnvCfg],
    widths: dict[str, int | None],
) -> bool:
    """Give an action term the largest width in all buckets; return if any of them is padded."""
    present = [width for width in widths.values() if width is not None]
    if term_cfg is None or not present:
        return False
    largest = max(present)
    for name, part in parts.items():
        if widths[name] is None:
            part.actions[term] = AbsentActionCfg(pad_to=largest)
        elif min(present) < largest:
            part.actions[term].pad_to = largest
    return any(width != largest for width in widths.values())


def _largest(where: str, shapes: dict[str, _Shape]) -> _Shape:
    """Return the largest size in each dimension.

    Raises:
        ValueError: the numbers of dimensions differ.
    """
    first, *others = shapes
    for name in others:
        if len(shapes[name]) != len(shapes[first]):
            raise ValueError(
                f"{where} has shape {shapes[first]} in bucket '{first}' and {shapes[name]} in "
                f"bucket '{name}': return the same number of dimensions in all buckets."
            )
    return tuple(max(sizes) for sizes in zip(*shapes.values(), strict=True))


@contextlib.contextmanager
def blame_bucket(name: str) -> Iterator[None]:
    """Prepend the bucket to the message of an error that is raised in this context."""
    try:
        yield
    except Exception as error:
        if len(error.args) == 1 and isinstance(error.args[0], str):
            remedy = ""
            if isinstance(error, MissingElementsError):
                remedy = " Give the term optional=True if this bucket does without it."
            error.args = (f"Bucket '{name}': {error.args[0]}{remedy}",)
        else:
            error.add_note(f"in bucket '{name}'")
        raise
