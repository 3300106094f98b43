"""Environment and policy for one world of a running training, built before it is entered."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab.training.visitor import Visitor
from manyworlds.live import env_from_snapshot
from manyworlds.live.fork import restore_snapshot
from manyworlds.live.snapshot import WorldSnapshot
from manyworlds.rl.checkpoint import acting_weights, load_checkpoint, load_networks
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks.run_configs import configs_of_run
from manyworlds.utils.torch_compiler import without_torch_compiler

if TYPE_CHECKING:
    from manyworlds.lab.task.env_policies import EnvironmentPolicy
    from manyworlds.live.training_policy import SentPolicy


class EntryStock:
    """Environment and policy of a run's task for one world, built in advance to be used once.

    Args:
        folder: run folder of the training.

    Raises:
        ValueError: the folder does not name a task that is registered here.
    """

    def __init__(self, folder: Path) -> None:
        self._run = RunFolder(folder)
        task = self._run.task
        if task is None:
            raise ValueError(f"'{folder}' does not name its task: name a run folder.")
        self._task: str = task
        self._env_cfg, self._rl_cfg = configs_of_run(self._run)
        self._ready: tuple[dict[str, int], ManagerBasedRlEnv, Any] | None = None

    def prepare(self, snapshot: WorldSnapshot) -> None:
        """Build for a world like this one, whose state is replaced when the stock is used."""
        self.close()
        env = env_from_snapshot(snapshot, self._env_cfg)
        self._ready = snapshot.variants, env, self._runner(env)

    def prepare_any(self) -> None:
        """Ask the training for its first world, and prepare for it.

        Raises:
            ConnectionError: the training has ended.
        """
        self.prepare(WorldSnapshot.from_bytes(Visitor(self._run.path).enter(0)["snapshot"]))

    def take(
        self, snapshot: WorldSnapshot, shown: SentPolicy | None
    ) -> tuple[ManagerBasedRlEnv, EnvironmentPolicy | None]:
        """Return an environment at a moment, and the policy that the training has sent.

        Raises:
            ValueError: the snapshot is of another model, or the policy of other networks.
        """
        ready, self._ready = self._ready, None
        if ready is not None and ready[0] == snapshot.variants:
            _, env, runner = ready
            restore_snapshot(env, snapshot)
        else:
            if ready is not None:
                ready[1].close()
            env = env_from_snapshot(snapshot, self._env_cfg)
            runner = None
        if shown is None:
            return env, None
        return env, self._policy(runner or self._runner(env), shown)

    def close(self) -> None:
        """Close what was not used."""
        if self._ready is not None:
            self._ready[1].close()
            self._ready = None

    def _runner(self, env: ManagerBasedRlEnv) -> Any:
        from manyworlds.tasks import load_runner_cls

        with without_torch_compiler():
            from manyworlds.rl.runner import OnPolicyRunner
            from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

            make = load_runner_cls(self._task) or OnPolicyRunner
            return make(RslRlVecEnvWrapper(env), asdict(self._rl_cfg), log_dir=None, device="cpu")

    def _policy(self, runner: Any, shown: SentPolicy) -> EnvironmentPolicy:
        weights, critic = shown["actor"], shown["critic"]
        checkpoint = {"actor_state_dict": weights, "student_state_dict": weights}
        try:
            parts = {"actor": True, "critic": bool(critic)}
            load_networks(runner, {**checkpoint, "critic_state_dict": critic}, parts)
        except (KeyError, RuntimeError) as error:
            raise ValueError(
                "The policy of the training does not fit the networks that its run folder "
                f"describes: {str(error).splitlines()[-1].strip()}"
            ) from None
        policy = runner.get_inference_policy()
        policy.clip_actions = self._rl_cfg.clip_actions
        policy.critic = runner.alg.critic if critic else None
        memory = {}
        if shown["hidden"]:
            memory["hidden"] = shown["hidden"]
        policy.load_state_dict(memory)
        return policy


def sent_policy(path: Path) -> SentPolicy:
    """Return the policy of a checkpoint as a training sends it."""
    checkpoint = load_checkpoint(path, "cpu")
    weights = acting_weights(checkpoint)
    return {"iteration": int(checkpoint["iter"]), "actor": weights, "critic": {}, "hidden": []}
