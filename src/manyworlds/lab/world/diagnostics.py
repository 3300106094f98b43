"""Explanations of a lab's state, and files and comparisons of its model."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco

from manyworlds.lab.loop.faults import explain_warnings
from manyworlds.lab.loop.steppers import why_still
from manyworlds.lab.world.diff import Difference, diff_models, load_model
from manyworlds.lab.world.options import explain_options
from manyworlds.utils.extras import installed_version, own_version

if TYPE_CHECKING:
    import numpy as np

    from manyworlds.lab.lab_cfg import LabCfg
    from manyworlds.lab.loop.controls import RobotControls
    from manyworlds.lab.loop.physics_loop import PhysicsLoop
    from manyworlds.lab.world.world import World


_EXTRAS = ("mcap", "onnxruntime", "viser")
"""Optional packages whose versions reports of faults need."""


class LabDiagnostics:
    """Methods of `LiveLab` that explain its state, and write and compare its model."""

    world: World
    loop: PhysicsLoop
    controls: RobotControls
    model_options: dict[str, np.ndarray]
    """Options of the compiled model by name, before those of `LabCfg` and later changes."""
    _cfg: LabCfg

    @property
    def errors(self) -> dict[str, str]:
        """Reasons why entities of the scene were left out, by name."""
        return self.world.errors

    def explain_options(self) -> str:
        """Return a table of the options that are not MuJoCo's defaults, and their sources.

        The model's options override MuJoCo's, those of `LabCfg.options` the model's, and later
        changes all of them.
        """
        world = self.world
        return explain_options(
            self.model_options, world.option_sources, self._cfg.options, world.model.opt
        )

    def why_not_moving(self, name: str) -> list[str]:
        """Return the reasons that keep a robot from moving, as text; empty if nothing does.

        Raises:
            KeyError: there is no such robot.
        """
        robot = self.controls[name]
        loop = self.loop
        own = robot.reasons(loop.model, loop.snapshot)
        return [*why_still(loop), *own, *self.explain_warnings()]

    def explain_warnings(self) -> list[str]:
        """Return the number and the meaning of MuJoCo's warnings since the last reset, as text."""
        return explain_warnings(self.loop.snapshot.warnings)

    def dump(self, folder: str | Path) -> Path:
        """Write the compiled model to files; see `World.dump`."""
        return self.world.dump(Path(folder))

    def export(self, path: str | Path) -> Path:
        """Write the scene as one MJCF file with its assets, or a `.zip`; see `World.export`."""
        return self.world.export(path)

    def diff(self, original: str | Path, robot: str = "") -> list[Difference]:
        """Return the differences between this world's model and a file's; see `diff_models`.

        Args:
            original: an MJCF, URDF or MJB file.
            robot: compare only this robot with the file; empty compares all.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it does not compile.
            KeyError: there is no such robot.
        """
        prefix = self.world.elements.prefix(robot) if robot else ""
        return diff_models(load_model(Path(original)), self.world.model, prefix)

    def info(self) -> dict[str, object]:
        """Return versions, empty for extras that are not installed, and sizes of the model."""
        model = self.world.model
        return {
            "manyworlds": own_version(),
            "mujoco": mujoco.mj_versionString(),
            "python": platform.python_version(),
            "extras": {name: installed_version(name) for name in _EXTRAS},
            "robots": list(self.world.robots),
            "nq": model.nq,
            "nv": model.nv,
            "nu": model.nu,
            "timestep": model.opt.timestep,
            "model_hash": self.world.model_hash,
        }
