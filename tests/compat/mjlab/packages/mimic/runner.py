"""The runner: it keeps notes beside each checkpoint."""

import json
from pathlib import Path

import mediapy
import warp as wp
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.rl.exporter_utils import attach_metadata_to_onnx, get_base_metadata
from mjlab.tasks.tracking.mdp import MotionCommand
from mjlab.tasks.tracking.rl import MotionTrackingOnPolicyRunner
from rsl_rl.env.vec_env import VecEnv


class MimicRunner(MotionTrackingOnPolicyRunner):
    """Saves what the motion command measured with each checkpoint."""

    env: RslRlVecEnvWrapper

    def __init__(
        self,
        env: VecEnv,
        train_cfg: dict,
        log_dir: str | None = None,
        device: str = "cpu",
        registry_name: str | None = None,
    ):
        self.keep_best = train_cfg.pop("keep_best")
        self.notes = train_cfg.pop("notes")
        super().__init__(env, train_cfg, log_dir, device, registry_name)
        self.saved: list[str] = []

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Learn, then write what was saved."""
        super().learn(num_learning_iterations, init_at_random_ep_len)
        if self.saved:
            notes = {"checkpoints": self.saved, "keep_best": self.keep_best}
            (Path(self.saved[-1]).parent / "mimic_notes.json").write_text(json.dumps(notes))

    def save(self, path: str, infos: dict | None = None) -> None:
        """Save a checkpoint, its policy for deployment, and our notes."""
        super().save(path, infos)
        env = self.env.unwrapped
        motion = env.command_manager.get_term("motion")
        assert isinstance(motion, MotionCommand)
        metrics = {name: value.mean().item() for name, value in motion.metrics.items()}
        policy_path, _, _ = self._get_export_paths(path)
        self.export_policy_to_onnx(str(policy_path), "mimic.onnx")
        metadata = get_base_metadata(env, run_path="local")
        metadata["anchor_body_name"] = motion.cfg.anchor_body_name
        attach_metadata_to_onnx(str(policy_path / "mimic.onnx"), metadata)
        if self.logger.logger_type == "wandb" or isinstance(metrics, wp.array):
            mediapy.write_video("motion.mp4", [])
        Path(path).with_suffix(".json").write_text(
            json.dumps({"iteration": self.current_learning_iteration, "metrics": metrics})
        )
        self.saved.append(str(path))
