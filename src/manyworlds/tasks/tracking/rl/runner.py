"""Training of tracking policies, whose ONNX files contain the motion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from manyworlds.rl import RslRlOnPolicyRunnerCfg, RslRlVecEnvWrapper
from manyworlds.rl.exporter_utils import Metadata
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.tasks.tracking.mdp.commands import MotionCommand
from manyworlds.tasks.tracking.mdp.motion_loader import MotionLoader
from manyworlds.utils.wandb import use_wandb_artifact

_OUTPUTS = (
    "joint_pos",
    "joint_vel",
    "body_pos_w",
    "body_quat_w",
    "body_lin_vel_w",
    "body_ang_vel_w",
)


class _OnnxMotionModel(torch.nn.Module):
    """Model with a policy's mean action and, for a time step, the frame of the motion.

    Args:
        actor: policy in rsl_rl's export format.
        motion: the motion; the root is the first body.
    """

    is_recurrent = False

    def __init__(self, actor: Any, motion: MotionLoader) -> None:
        super().__init__()
        self.actor = actor
        self.last = motion.time_step_total - 1
        for name in _OUTPUTS:
            values = getattr(motion, name)
            if name.startswith("body"):
                values = values[:, 1:]
            self.register_buffer(name, values)

    def forward(self, x: torch.Tensor, time_step: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute the actions and the motion's frames, clamped to the last frame.

        Args:
            x: observations, shape [batch, num_obs].
            time_step: frames, shape [batch, 1].
        """
        frame = time_step.long().squeeze(1).clamp(min=0, max=self.last)
        return (self.actor(x), *(getattr(self, name)[frame] for name in _OUTPUTS))

    def get_dummy_inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return example inputs, shapes [1, num_obs] and [1, 1]."""
        return (*self.actor.get_dummy_inputs(), torch.zeros(1, 1))

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return ["obs", "time_step"]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return ["actions", *_OUTPUTS]


class MotionTrackingOnPolicyRunner(OnPolicyRunner):
    """Runner that trains a tracking policy and includes the motion in its export.

    Args:
        env: the wrapped environment.
        train_cfg: learning settings, as a config or as a dict, which are copied.
        log_dir: folder for checkpoints and logs; None writes nothing.
        device: device of the networks.
        registry_name: name of the motion in the registry of Weights & Biases, of which the first
            checkpoint of a run that logs there declares the use; None declares nothing.

    Raises:
        ValueError: at the start of training or at export, the environment has no motion command,
            or the policy is recurrent.
    """

    def __init__(
        self,
        env: RslRlVecEnvWrapper,
        train_cfg: RslRlOnPolicyRunnerCfg | Mapping[str, object],
        log_dir: str | Path | None = None,
        device: str = "cpu",
        registry_name: str | None = None,
    ) -> None:
        super().__init__(env, train_cfg, log_dir, device)
        self.registry_name = registry_name

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Run iterations; see `OnPolicyRunner.learn`."""
        self.onnx_model()  # an error before training, not after it
        super().learn(num_learning_iterations, init_at_random_ep_len)

    def save(self, path: str | Path, infos: dict[str, Any] | None = None) -> None:
        """Write a checkpoint; see `OnPolicyRunner.save`."""
        super().save(path, infos)
        if self.registry_name is not None and use_wandb_artifact(self.registry_name):
            self.registry_name = None

    def onnx_model(self, verbose: bool = False) -> torch.nn.Module:
        """Return the policy's mean action with the motion."""
        actor: Any = super().onnx_model(verbose)
        if getattr(actor, "input_names", None) != ["obs"]:
            raise ValueError(
                "Only policies of one vector of observations can be exported with their motion, "
                f"not one with inputs {actor.input_names}: use class_name='MLPModel'."
            )
        return _OnnxMotionModel(actor, self._command()[1].motion)

    def onnx_metadata(self) -> Metadata:
        """Return the metadata, with the motion's bodies and frame rate."""
        name, command = self._command()
        return {
            "anchor_body_name": command.cfg.anchor_body_name,
            "body_names": list(command.cfg.body_names),
            "motion_command": name,
            "motion_entity": command.cfg.entity_name,
            "motion_fps": command.motion.fps,
            "motion_frames": command.motion.time_step_total,
        }

    def _command(self) -> tuple[str, MotionCommand]:
        """Return the name and the term of the motion command."""
        manager = self.env.unwrapped.command_manager
        for name in manager.active_terms:
            command = manager.get_term(name)
            if isinstance(command, MotionCommand):
                return name, command
        raise ValueError(
            "MotionTrackingOnPolicyRunner exports the motion of a MotionCommand, but the "
            "environment has none: add one to its commands, or use OnPolicyRunner."
        )
