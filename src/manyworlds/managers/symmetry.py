"""Mirror images of an environment's observations and actions, derived from its terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from manyworlds.entity.mirror import REFLECTION, MirrorTable, mirror_table
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.spec.elements import name_of_element

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

Declared = TypeVar("Declared", bound=Callable[..., Any])
_ALIKE = 1e-4  # largest difference of defaults, scales and frames that are regarded as equal


@dataclass(frozen=True)
class Reflection:
    """Mirror image of a vector: its elements in another order, some with the opposite sign."""

    index: torch.Tensor
    """Element of the vector at each position of the image, shape [n]."""
    sign: torch.Tensor
    """Sign at each position of the image, shape [n]."""

    @classmethod
    def of(cls, index: Iterable[int], sign: Iterable[float]) -> Reflection:
        """Return the reflection with these indices and signs."""
        return cls(torch.tensor([*index]), torch.tensor([*sign], dtype=torch.float32))

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Return the mirror image of each row; `values` has n elements per row, shape [N, ...]."""
        return (values.flatten(1).index_select(1, self.index) * self.sign).view_as(values)

    def __len__(self) -> int:
        """Return the number of elements."""
        return len(self.index)

    @property
    def is_involution(self) -> bool:
        """True if the mirror image of the mirror image is the vector itself."""
        own = torch.arange(len(self), dtype=torch.float32)
        known = bool(((self.index >= 0) & (self.index < len(self))).all())
        return known and torch.equal(self(self(own[None] + 1.0)), own[None] + 1.0)

    def to(self, device: torch.device | str) -> Reflection:
        """Return the reflection on a device."""
        return Reflection(self.index.to(device), self.sign.to(device))

    @staticmethod
    def join(parts: Iterable[Reflection]) -> Reflection:
        """Return the reflection of vectors that are concatenated."""
        index = []
        sign = []
        start = 0
        for part in parts:
            index.append(part.index + start)
            sign.append(part.sign)
            start += len(part)
        return Reflection(torch.cat(index), torch.cat(sign))


MirrorRule = Callable[..., Reflection | None]
"""Function `rule(mirror, **params)` that returns the reflection of a term with these parameters, or
None for values that do not change."""


def symmetry(rule: MirrorRule) -> Callable[[Declared], Declared]:
    """Declare how the values of an observation term mirror: a decorator of its function or class.

    A class may define a method `mirror(self, mirror, **params)` instead. `mirrors` in
    `manyworlds.envs.mdp` has the usual rules.
    """

    def declare(func: Declared) -> Declared:
        declared: Any = func
        declared.mirror = staticmethod(rule)  # not a method, if this is a class
        return func

    return declare


class EnvSymmetry:
    """Mirror images of observation groups and of actions at the robots' sagittal planes.

    Args:
        env: the environment.
        groups: observation groups to mirror.

    Raises:
        ValueError: a robot is not symmetric, or a term does not declare how it mirrors.
    """

    def __init__(self, env: ManagerBasedRlEnv, groups: Iterable[str]) -> None:
        self.env = env
        self._tables: dict[str, MirrorTable] = {}
        actions = [self.action_term(name) for name in env.action_manager.active_terms]
        self.action = Reflection.join(actions).to(env.device)
        """Reflection of the action vector."""
        self.groups = {name: self._group(name).to(env.device) for name in groups}
        """Reflection of each group, flat."""

    def table(self, entity: str) -> MirrorTable:
        """Return the mirror images of an entity's elements.

        Raises:
            ValueError: the entity is not symmetric.
        """
        if entity not in self._tables:
            indexing = self.env.scene.entity(entity).indexing
            root = int(indexing.body_ids[indexing.root_index])
            self._tables[entity] = mirror_table(self.env.sim.mj_model, root)
        return self._tables[entity]

    def elements(self, kind: str, ids: Iterable[int], entity: str) -> list[int]:
        """Return the position in `ids` of each element's mirror image.

        Args:
            kind: `body`, `joint`, `geom`, `site`, `tendon` or `actuator`.
            ids: ids in the scene's model.
            entity: name of the entity.

        Raises:
            ValueError: the mirror image of an element is not among them.
        """
        ids = [int(i) for i in ids]
        images = self.table(entity).images(kind, np.array(ids, dtype=int)).tolist()
        lost = set(images) - set(ids)
        if lost:
            model = self.env.sim.mj_model
            names = [name_of_element(model, kind, i) for i in ids]
            missing = sorted(name_of_element(model, kind, i) for i in lost)
            raise ValueError(
                f"it observes {kind}s {names} without their mirror images {missing}: observe "
                "these, too, in the same term."
            )
        return [ids.index(image) for image in images]

    def joints(self, asset_cfg: SceneEntityCfg, defaults: torch.Tensor | None = None) -> Reflection:
        """Return the reflection of one value per joint of an entity.

        Args:
            asset_cfg: the entity and its joints.
            defaults: values that the joints' values are relative to, shape [num_joints].

        Raises:
            ValueError: the joints or the defaults are not symmetric.
        """
        ids = self.env.scene.entity(asset_cfg.name).indexing.joint_ids[asset_cfg.joint_ids].tolist()
        index = self.elements("joint", ids, asset_cfg.name)
        reflection = Reflection.of(index, self.table(asset_cfg.name).joint_sign[ids])
        if defaults is not None:
            names = [self.env.sim.mj_model.joint(i).name for i in ids]
            check_alike(reflection, defaults[asset_cfg.joint_ids], "defaults", names)
        return reflection

    def vector(self, asset_cfg: SceneEntityCfg, parity: int) -> Reflection:
        """Return the reflection of a vector in the frame of an entity's root.

        Args:
            asset_cfg: the entity.
            parity: 1 for polar vectors such as velocities, -1 for axial ones such as rotations.
        """
        table = self.table(asset_cfg.name)
        return self.of_matrix(parity * table.body_frames[table.body].T)

    def of_matrix(self, matrix: np.ndarray = REFLECTION) -> Reflection:
        """Return the reflection that multiplies vectors by a matrix, shape [3, 3].

        Raises:
            ValueError: it is not a permutation of axes with signs.
        """
        index = np.abs(matrix).argmax(axis=1)
        sign = np.sign(matrix[range(3), index])
        if np.abs(np.eye(3)[index] * sign[:, None] - matrix).max() > _ALIKE:
            raise ValueError(
                "the axes of its frame are oblique to the sagittal plane: observe it in a frame "
                "with axes along or normal to that plane."
            )
        return Reflection.of(index.tolist(), sign.tolist())

    def action_term(self, name: str) -> Reflection:
        """Return the reflection of one term's slice of the action vector.

        Raises:
            ValueError: the term does not declare it, or is not symmetric.
        """
        term = self.env.action_manager.get_term(name)
        return self._of(f"Action term '{name}'", term, {}, term.action_dim)

    def command(self, name: str) -> Reflection:
        """Return the reflection of a command.

        Raises:
            ValueError: the command's term does not declare it.
        """
        term = self.env.command_manager.get_term(name)
        return self._of(f"Command term '{name}'", term, {}, term.command.shape[1:].numel())

    def _of(self, where: str, func: object, params: Mapping[str, object], size: int) -> Reflection:
        rule = getattr(func, "mirror", None)
        if rule is None:
            name = getattr(func, "__qualname__", type(func).__qualname__)
            raise ValueError(
                f"{where} does not declare how it mirrors: decorate '{name}' with "
                "@symmetry(rule), such as symmetry(mirrors.polar), give its class a method "
                "`mirror(self, mirror, **params)`, or train without symmetry."
            )
        try:
            reflection = rule(self, **params)
        except ValueError as error:
            raise ValueError(f"{where} cannot be mirrored: {error}") from None
        if reflection is None:
            reflection = Reflection(torch.arange(size), torch.ones(size))
        if len(reflection) != size or not reflection.is_involution:
            raise ValueError(
                f"{where} has {size} elements, but its rule returns a reflection of "
                f"{len(reflection)} with index {reflection.index.tolist()} and sign "
                f"{reflection.sign.tolist()}: it must have as many, and be its own inverse."
            )
        return reflection

    def _group(self, name: str) -> Reflection:
        """Return the reflection of a group's tensor, flat."""
        manager = self.env.observation_manager
        if not manager.group_obs_concatenate[name]:
            raise ValueError(
                f"Observation group '{name}' is a dict of terms, which has no mirror image: set "
                "concatenate_terms=True."
            )
        parts = []
        places = []
        start = 0
        names = manager.active_terms[name]
        shapes = manager.group_obs_term_dim[name]
        for term, shape in zip(names, shapes, strict=True):
            parts.append(self._observation(name, term, shape))
            # Number the elements, to see where concatenation puts them.
            places.append(torch.arange(start, start + len(parts[-1])).view(shape))
            start += len(parts[-1])
        whole = Reflection.join(parts)
        order = torch.cat(places, dim=manager.group_obs_concatenate_dim[name]).flatten()
        return Reflection(order.argsort()[whole.index[order]], whole.sign[order])

    def _observation(self, group: str, name: str, shape: tuple[int, ...]) -> Reflection:
        """Return the reflection of a term as observed: clipped, scaled, and with its history."""
        cfg = self.env.observation_manager.get_term_cfg(group, name)
        where = f"Observation term '{group}/{name}'"
        steps = max(cfg.history_length, 1)
        size = torch.Size(shape).numel() // steps
        reflection = self._of(where, cfg.func, cfg.params, size)
        if cfg.clip is not None and cfg.clip[0] != -cfg.clip[1] and (reflection.sign < 0).any():
            raise ValueError(
                f"{where} cannot be mirrored: clip={cfg.clip} is not symmetric about 0, but "
                "elements change their sign."
            )
        if isinstance(cfg.scale, tuple | list | torch.Tensor):
            scale = torch.as_tensor(cfg.scale, dtype=torch.float32).cpu()
            if cfg.history_length and cfg.flatten_history_dim:
                scale = scale.flatten().repeat(max(size // scale.numel(), 1))[:size]
            else:
                row = (1, *shape[cfg.history_length > 0 :])
                scale = scale.expand(torch.broadcast_shapes(scale.shape, row))[0].flatten()
            unsigned = Reflection(reflection.index, torch.ones(size))
            columns = [f"column {i}" for i in range(size)]
            check_alike(unsigned, scale, f"scales of {where}", columns)
        return Reflection.join([reflection] * steps)


def check_alike(reflection: Reflection, values: torch.Tensor, what: str, names: list[str]) -> None:
    """Check that values are equal to their mirror image.

    Args:
        reflection: the reflection.
        values: the values, shape [n].
        what: their name in messages.
        names: names of the elements.

    Raises:
        ValueError: they are not.
    """
    values = values.detach().cpu()
    image = reflection(values[None])[0]
    difference = (image - values).abs()
    if not len(difference):
        return
    worst = int(difference.argmax())
    if float(difference[worst]) > _ALIKE:
        partner = names[int(reflection.index[worst])]
        raise ValueError(
            f"the {what} of {names[worst]} and of its mirror image {partner} are "
            f"{float(values[worst]):.4g} and {float(values[reflection.index[worst]]):.4g}, which "
            f"differ by {float(difference[worst]):.2g} after reflection: make them symmetric."
        )
