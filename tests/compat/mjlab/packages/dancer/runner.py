"""The runner."""

import os
from pathlib import Path

import torch
import wandb
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.rl.exporter_utils import attach_metadata_to_onnx, get_base_metadata
from mjlab.rl.runner import MjlabOnPolicyRunner


class _DancePolicy(torch.nn.Module):
    """Policy together with the dance."""

    def __init__(self, actor, clip):
        super().__init__()
        self.actor = actor
        self.register_buffer("joint_pos", clip.joint_pos.to("cpu"))
        self.time_step_total = self.joint_pos.shape[0]

    def forward(self, x, time_step):
        frame = torch.clamp(time_step.long().squeeze(-1), max=self.time_step_total - 1)
        return self.actor(x), self.joint_pos[frame]


class DancerRunner(MjlabOnPolicyRunner):
    """Exports the dance with the policy, logs more, and uploads where that is used."""

    env: RslRlVecEnvWrapper

    def __init__(self, env, train_cfg: dict, log_dir=None, device="cpu", **kwargs):
        super().__init__(env, train_cfg, log_dir, device)
        self.best = -float("inf")
        self.add_git_repo_to_log(__file__)

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        log = self.logger.log

        def log_more(*args, **kwargs):
            result = log(*args, **kwargs)
            if self.logger.writer is not None:
                self.logger.writer.add_scalar(
                    "Dance/best", self.best, self.current_learning_iteration
                )
            if len(self.logger.rewbuffer) > 0:
                self.best = max(self.best, sum(self.logger.rewbuffer) / len(self.logger.rewbuffer))
            return result

        self.logger.log = log_more
        super().learn(num_learning_iterations, init_at_random_ep_len)

    def export_policy_to_onnx(
        self, path: str, filename: str = "policy.onnx", verbose: bool = False
    ) -> None:
        os.makedirs(path, exist_ok=True)
        command = self.env.unwrapped.command_manager.get_term("dance")
        model = _DancePolicy(self.alg.get_policy().as_onnx(verbose=verbose), command.motion)
        model.to("cpu")
        model.eval()
        obs = torch.zeros(1, self.env.get_observations()["actor"].shape[-1])
        torch.onnx.export(
            model,
            (obs, torch.zeros(1, 1)),
            os.path.join(path, filename),
            export_params=True,
            opset_version=18,
            verbose=verbose,
            input_names=["obs", "time_step"],
            output_names=["actions", "joint_pos"],
            dynamo=False,
        )

    def save(self, path: str, infos=None) -> None:
        env_state = {"common_step_counter": self.env.unwrapped.common_step_counter}
        infos = {**(infos or {}), "env_state": env_state, "best": self.best}
        super().save(path, infos)
        policy_dir = Path(path).parent
        filename = f"{policy_dir.name}.onnx"
        try:
            self.export_policy_to_onnx(str(policy_dir), filename)
            run_name: str = (
                wandb.run.name if self.logger.logger_type == "wandb" and wandb.run else "local"
            )
            metadata = get_base_metadata(self.env.unwrapped, run_name)
            metadata.update({"dance": "steps"})
            attach_metadata_to_onnx(str(policy_dir / filename), metadata)
            if self.logger.logger_type in ["wandb"] and self.cfg["upload_model"]:
                wandb.save(str(policy_dir / filename), base_path=str(policy_dir))
        except Exception as e:
            print(f"[WARN] ONNX export failed (training continues): {e}")

    def load(self, path, load_cfg=None, strict=True, map_location=None) -> dict:
        infos = super().load(path, load_cfg, strict, map_location)
        if infos and "best" in infos:
            self.best = infos["best"]
            print(f"[dancer] best so far {self.best:.3f}")
        return infos
