"""The runner: it hands a policy on with each checkpoint and goes on from the one that it loads."""

from mjlab.rl import MjlabOnPolicyRunner


class PickerRunner(MjlabOnPolicyRunner):
    """Keeps a count of checkpoints in them."""

    saves = 0

    def save(self, path: str, infos: dict | None = None) -> None:
        """Save a checkpoint with our count."""
        self.saves += 1
        super().save(path, infos={**(infos or {}), "picker": {"saves": self.saves}})
        policy_path = path.split("model")[0]
        filename = policy_path.split("/")[-2] + ".onnx"
        self.export_policy_to_onnx(policy_path, filename)

    def load(
        self,
        path: str,
        load_cfg: dict | None = None,
        strict: bool = True,
        map_location: str | None = None,
    ) -> dict:
        """Load a checkpoint and the count in it."""
        infos = super().load(path, load_cfg, strict, map_location)
        self.saves = infos["picker"]["saves"]
        print(f"[picker] loaded the policy that was saved {self.saves} times")
        return infos
