"""Checkpoints: what they contain, who writes each part, and who reads it.

A checkpoint is a dict of tensors and plain data. Networks and optimizers have the keys of rsl_rl:
`save` and `load` of the algorithm know them. All else is in `TRAINING_PARTS`, which exist once, and
in `PROCESS_PARTS`, which each process has for its own worlds: those of the first one are in
`infos`, those of others in the list `infos["other_ranks"]`.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils._pytree import tree_map_only

from manyworlds.rl import distributed
from manyworlds.rl.config import NETWORKS
from manyworlds.rl.run_folder import RunFolder
from manyworlds.utils.config import describe_differences, to_plain
from manyworlds.utils.files import write_atomic

if TYPE_CHECKING:
    import rsl_rl.algorithms
    from rsl_rl.models import MLPModel

    from manyworlds.rl.logger import ReturnsState
    from manyworlds.rl.runner import OnPolicyRunner

Checkpoint = dict[str, Any]
"""Content of a checkpoint: tensors and plain data by their keys."""

AVERAGED = "averaged_state_dict"
"""Key of the averaged policy in a checkpoint."""

# Names of networks before rsl_rl 4 (in one state dict), in rsl_rl 4, and in current releases.
_OLD_NAMES = {"std": "distribution.std_param", "log_std": "distribution.log_std_param"}


@dataclass(frozen=True)
class Part:
    """Part of a checkpoint."""

    key: str
    """Its key."""
    write: Callable[[OnPolicyRunner], Any]
    """Returns its content; None leaves it out."""
    read: Callable[[OnPolicyRunner, Any], None]
    """Restores the content, in a training that continues."""


def _read_iteration(runner: OnPolicyRunner, last: int) -> None:
    runner.current_learning_iteration = last + 1


def _write_average(runner: OnPolicyRunner) -> dict[str, torch.Tensor] | None:
    averaged = runner.averaged
    if averaged is None or averaged.n_averaged == 0:
        return None
    return averaged.module.state_dict()


def _read_average(runner: OnPolicyRunner, state: dict[str, torch.Tensor]) -> None:
    averaged = runner.averaged
    if averaged is not None:
        averaged.module.load_state_dict(state)
        averaged.n_averaged.fill_(1)


def write_memory(runner: OnPolicyRunner) -> dict[str, object]:
    """Return hidden states of recurrent networks, and the state of intrinsic rewards.

    They belong to the present episodes, and rsl_rl does not include them in its checkpoints.
    """
    state: dict[str, object] = {}
    for name, network in _networks(runner).items():
        state[name] = network.get_hidden_state()
    rnd = runner.rnd
    if rnd is not None:
        average = None
        if rnd.reward_normalization:
            discounted: Any = rnd.reward_normalizer.disc_avg
            average = discounted.avg
        state["rnd"] = {"steps": rnd.update_counter, "average": average}
    return state


def _read_memory(runner: OnPolicyRunner, state: Mapping[str, Any]) -> None:
    networks = _networks(runner)
    for name, network in networks.items():
        device = next(network.parameters()).device
        hidden = tree_map_only(torch.Tensor, lambda value, to=device: value.to(to), state.get(name))
        network.reset(hidden_state=hidden)
    if "student" in networks:
        alg = cast("rsl_rl.algorithms.Distillation", runner.alg)
        alg.last_hidden_states = alg.student.get_hidden_state(), alg.teacher.get_hidden_state()
    rnd = runner.rnd
    if rnd is not None and "rnd" in state:
        rnd.update_counter = state["rnd"]["steps"]
        average = state["rnd"]["average"]
        if rnd.reward_normalization and average is not None:
            discounted: Any = rnd.reward_normalizer.disc_avg
            discounted.avg = average.to(runner.alg.device)


def _networks(runner: OnPolicyRunner) -> dict[str, MLPModel]:
    """Return the networks of any algorithm, and the copy of the policy that acts elsewhere."""
    networks = {name: net for name, net in vars(runner.alg).items() if name in NETWORKS}
    if runner.collector is not None:
        networks["collector"] = runner.collector.policy
    return networks


def _write_returns(runner: OnPolicyRunner) -> ReturnsState | None:
    if not hasattr(runner.logger, "returns_state"):  # a project's own logger
        return None
    return runner.logger.returns_state()


def _read_returns(runner: OnPolicyRunner, state: ReturnsState) -> None:
    if hasattr(runner.logger, "load_returns_state"):
        runner.logger.load_returns_state(state)


TRAINING_PARTS = (
    Part("iter", lambda runner: runner.current_learning_iteration, _read_iteration),
    Part(AVERAGED, _write_average, _read_average),
)
"""Parts that a training has once, beside those of the algorithm."""

PROCESS_PARTS = (
    Part(
        "env_state",
        lambda runner: runner.env.unwrapped.state_dict(),
        lambda runner, state: runner.env.unwrapped.load_state_dict(state),
    ),
    Part("memory", write_memory, _read_memory),
    Part("returns", _write_returns, _read_returns),
)
"""Parts that each process has."""


def save_checkpoint(
    runner: OnPolicyRunner, path: Path, infos: Mapping[str, object] | None = None
) -> None:
    """Write a checkpoint, completely or not at all.

    All processes of a training call this together; rank 0 writes the file.

    Args:
        runner: the runner.
        path: the file.
        infos: further plain data.
    """
    own = tree_map_only(torch.Tensor, torch.Tensor.cpu, _write(PROCESS_PARTS, runner))
    states = distributed.gather(own)
    if not runner.ranks.is_main:
        return
    checkpoint = {**runner.alg.save(), **_write(TRAINING_PARTS, runner)}
    checkpoint["infos"] = {**(infos or {}), **states[0], "other_ranks": states[1:]}
    buffer = io.BytesIO()
    torch.save(tree_map_only(torch.Tensor, torch.Tensor.cpu, checkpoint), buffer)
    write_atomic(path, buffer.getvalue())


def restore_checkpoint(
    runner: OnPolicyRunner,
    checkpoint: Mapping[str, object],
    path: Path,
    load_cfg: Mapping[str, bool] | None = None,
    strict: bool = True,
) -> dict[str, object]:
    """Restore a runner, and return the `infos` of the checkpoint.

    Args:
        runner: the runner.
        checkpoint: what `load_checkpoint` returned.
        path: the file, for messages.
        load_cfg: parts of the algorithm to load, by rsl_rl's names; None for all, with which the
            training continues.
        strict: whether the networks must match exactly.

    Raises:
        ValueError: the checkpoint is one of other networks.
    """
    try:
        resumes = load_networks(runner, checkpoint, load_cfg, strict)
    except (KeyError, RuntimeError) as error:
        raise ValueError(
            f"The checkpoint '{path}' does not fit these networks, which its run folder or "
            f"--agent.* describe: {str(error).splitlines()[-1].strip()}"
            + _changed_observations(runner, path)
        ) from None
    infos = cast("dict[str, Any]", checkpoint.get("infos") or {})
    if not resumes:
        return infos
    _read(TRAINING_PARTS, runner, checkpoint)
    rank = runner.ranks.rank
    states = [infos, *infos.get("other_ranks", [])]
    own: Checkpoint = {}
    if rank < len(states):
        own.update(states[rank])
    if not {"sim", "buckets"} & set(own.get("env_state", {})):
        own.pop("env_state", None)
        counter = infos.get("env_state", {}).get("common_step_counter", 0)
        runner.env.unwrapped.common_step_counter = int(counter)
        warnings.warn(
            f"The checkpoint '{path}' has no worlds for process {rank}: networks and optimizer "
            "continue from it, and new episodes begin.",
            stacklevel=3,
        )
    _read(PROCESS_PARTS, runner, own)
    return infos


def _changed_observations(runner: OnPolicyRunner, path: Path) -> str:
    """Return a sentence about observations that differ from those of a checkpoint's run."""
    run = RunFolder.of_checkpoint(path)
    if run is None:
        return ""
    here = to_plain(runner.env.unwrapped.cfg.observations)
    try:
        there = run.env_params().get("observations")
    except (OSError, ValueError):  # of an incomplete run folder
        return ""
    lines = list(describe_differences(here, there, ("here", "in the run")))
    if not lines:
        return ""
    return f" The observations differ: {'; '.join(lines[:3])}."


def load_networks(
    runner: OnPolicyRunner,
    checkpoint: Mapping[str, object],
    load_cfg: Mapping[str, bool] | None = None,
    strict: bool = True,
) -> bool:
    """Load networks and optimizer, and return True if training continues from them.

    Args:
        runner: the runner.
        checkpoint: a dict with the keys of the algorithm.
        load_cfg: parts to load; None for all. The part `actor` is the policy, also of a student,
            and its average if there is one: only a training continues from the last parameters.
        strict: whether the networks must match exactly.

    Raises:
        KeyError: a network is missing.
        RuntimeError: a network does not fit.
    """
    if load_cfg is not None:
        policy = "student" if "student_state_dict" in checkpoint else "actor"
        checkpoint = {**checkpoint, f"{policy}_state_dict": acting_weights(checkpoint)}
        load_cfg = {"student": load_cfg.get("actor", False), **load_cfg}
    if runner.averaged is not None:
        runner.averaged.n_averaged.fill_(0)
    return runner.alg.load(cast("dict[str, Any]", checkpoint), load_cfg, strict)


def load_checkpoint(path: Path, map_location: str = "cpu") -> Checkpoint:
    """Read a checkpoint without running code that it contains.

    Checkpoints of older releases of rsl_rl are converted to the current format.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is not a checkpoint.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no checkpoint '{path}': give the path of a .pt file.")
    try:
        checkpoint = _migrate(torch.load(path, weights_only=True, map_location=map_location))
        _ = acting_weights(checkpoint), checkpoint["iter"]
    except Exception:
        raise ValueError(
            f"'{path}' is not a checkpoint of a training run, or it is damaged: choose another."
        ) from None
    return checkpoint


def acting_weights(checkpoint: Mapping[str, object]) -> dict[str, torch.Tensor]:
    """Return the state dict of the policy that playback uses: the average, if there is one.

    Each tensor has the shape of its parameter.
    """
    policy = checkpoint.get(AVERAGED) or checkpoint.get("student_state_dict")
    return cast("dict[str, torch.Tensor]", policy or checkpoint["actor_state_dict"])


def _write(parts: tuple[Part, ...], runner: OnPolicyRunner) -> Checkpoint:
    contents = {}
    for part in parts:
        content = part.write(runner)
        if content is not None:
            contents[part.key] = content
    return contents


def _read(parts: tuple[Part, ...], runner: OnPolicyRunner, contents: Mapping[str, object]) -> None:
    for part in parts:
        if part.key in contents:
            part.read(runner, contents[part.key])


def _migrate(checkpoint: Checkpoint) -> Checkpoint:
    if "model_state_dict" in checkpoint:
        both = checkpoint.pop("model_state_dict")
        for network in ("actor", "critic"):
            state = checkpoint[f"{network}_state_dict"] = {}
            for name, value in both.items():
                if name.startswith(f"{network}."):
                    state[f"mlp.{name.removeprefix(f'{network}.')}"] = value
                elif name.startswith(f"{network}_obs_normalizer."):
                    state[name.removeprefix(f"{network}_")] = value
                elif network == "actor" and name in _OLD_NAMES:
                    state[name] = value
    for network in ("actor_state_dict", "critic_state_dict"):
        state = checkpoint.get(network, {})
        for old in set(state) & set(_OLD_NAMES):
            state[_OLD_NAMES[old]] = state.pop(old)
    return checkpoint
