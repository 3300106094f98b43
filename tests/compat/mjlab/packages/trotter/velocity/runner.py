"""The runner: it uploads policies where an account is used."""

from pathlib import Path

import wandb
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.tasks.velocity.rl import VelocityOnPolicyRunner


class TrotterRunner(VelocityOnPolicyRunner):
    """Keeps the policy of each checkpoint, and uploads it to Weights & Biases."""

    env: RslRlVecEnvWrapper

    def save(self, path: str, infos=None):
        """Save a checkpoint and its policy."""
        super().save(path, infos)
        folder = Path(path).parent
        self.export_policy_to_onnx(str(folder), "trotter.onnx")
        steps = f"{self.logger.tot_timesteps} steps, {len(self.logger.rewbuffer)} episodes"
        (folder / "trotter_notes.txt").write_text(f"{self.logger.logger_type}: {steps}")
        if self.logger.logger_type in ["wandb"]:
            wandb.save(str(folder / "trotter.onnx"), base_path=str(folder))
