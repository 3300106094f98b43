"""Verbs of `manyworlds.lab.verbs.models`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from manyworlds.lab.client.caller import Reply, VerbCaller


class ModelsVerbs(VerbCaller):
    """Verbs of a live world: models."""

    def reload(self) -> Reply:
        """Build the world again from its model file, task or run, and continue by name.

        Returns:
            `kept` (string[], joints that keep their state), `fresh` (string[], joints in the
            initial state), `gone` (string[], joints that the new world does not have), `notes`
            (string[], sentences about what else did not continue), `model_hash` (string, hash of
            the new model), `frame_id`, `time`.
        """
        return self.call("reload")

    def run_policy(
        self,
        path: str | Path,
        robot: str | None = None,
        commands: Mapping[str, object] | None = None,
    ) -> Reply:
        """Control a robot by a trained policy, from the initial state.

        Args:
            path: policy: .onnx, or a checkpoint .pt in its run folder.
            robot: robot; the only one if left out.
            commands: values of command terms, by name; 0 by default.

        Returns:
            `differences` (string[], differences between the world and that of training), `commands`
            (map, values of the policy's commands, by name), `frame_id`, `time`.
        """
        return self.call("run_policy", path=path, robot=robot, commands=commands)
