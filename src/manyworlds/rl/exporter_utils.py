"""Export of policies as ONNX, with a description for use outside of the environment."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.envs.mdp.actions.actions import BaseAction
from manyworlds.rl.policy_description import action_entity, describe_policy, gains
from manyworlds.spec.edits import export_spec, set_options
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import atomic_path

if TYPE_CHECKING:
    from onnx import ModelProto

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.runner import OnPolicyRunner

Metadata = dict[str, Sequence[object] | str | float]


def list_to_csv_str(
    arr: Sequence[object], *, decimals: int = 3, delimiter: str = ",", sub_delimiter: str = ";"
) -> str:
    """Format a list as one line, with rounded numbers; join nested lists by `sub_delimiter`."""

    def text(value: object) -> str:
        if isinstance(value, list | tuple):
            return sub_delimiter.join(map(text, value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return f"{value:.{decimals}f}"
        return str(value)

    return delimiter.join(map(text, arr))


def get_base_metadata(env: ManagerBasedRlEnv, run_path: str) -> Metadata:
    """Return metadata with the keys that deployment tools for mjlab read.

    The values describe the entity of the first action, and its joints in model order; the complete
    description is that of `describe_policy`.
    """
    entity = action_entity(env)
    stiffness, damping = gains(entity)
    observations = env.observation_manager
    group = next(iter(env.obs_buf))
    if "actor" in observations.active_terms:
        group = "actor"
    names = observations.active_terms[group]
    terms = [observations.get_term_cfg(group, name) for name in names]
    action_scale = []
    for name in env.action_manager.active_terms:
        term = env.action_manager.get_term(name)
        if isinstance(term, BaseAction):
            action_scale += term.scale[0].tolist()
        else:
            action_scale += _as_list(getattr(term, "scale", []))
    return {
        "run_path": run_path,
        "joint_names": list(entity.joint_names),
        "joint_stiffness": stiffness,
        "joint_damping": damping,
        "default_joint_pos": entity.data.default_joint_pos[0].tolist(),
        "command_names": list(env.command_manager.active_terms),
        "observation_names": list(names),
        "observation_terms_scale": [_as_list(term.scale, 1.0) for term in terms],
        "observation_terms_clip": [_as_list(term.clip, "None") for term in terms],
        "observation_terms_history_length": [term.history_length for term in terms],
        "observation_terms_flatten_history_dim": [term.flatten_history_dim for term in terms],
        "action_scale": action_scale,
    }


def _as_list(value: Any, default: object = None) -> Any:
    """Return tensors and tuples as lists, None as the default, and others as they are."""
    if value is None:
        return default
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return value


def attach_metadata_to_onnx(onnx_path: str | Path, metadata: Metadata) -> None:
    """Add entries to an ONNX file's metadata; lists are formatted by `list_to_csv_str`."""
    onnx = require_extra("onnx", "train")
    model = onnx.load(str(onnx_path))
    for key, value in metadata.items():
        entry = model.metadata_props.add()
        entry.key = key
        if isinstance(value, list):
            entry.value = list_to_csv_str(value)
        else:
            entry.value = str(value)
    onnx.save(model, str(onnx_path))


def save_described(model: ModelProto, path: Path, description: Mapping[str, object]) -> None:
    """Write an ONNX model with a description such as that of `describe_policy`."""
    onnx = require_extra("onnx", "train")
    onnx.save(model, str(path))
    attach_metadata_to_onnx(path, {"manyworlds": json.dumps(description)})


def export_policy(
    runner: OnPolicyRunner,
    path: Path,
    *,
    task: str | None = None,
    verbose: bool = False,
    env: ManagerBasedRlEnv | None = None,
) -> Path:
    """Export the policy's mean action as ONNX: input `obs`, output `actions`.

    Each image group, and the group of tokens of joints, is an additional input; recurrent policies
    have `h_in` and `h_out`, and `c_in` and `c_out` if they are LSTMs. The metadata hold
    `describe_policy` as JSON under `manyworlds`, and the entries of `get_base_metadata`.

    Args:
        runner: the runner.
        path: the file.
        task: name of the task.
        verbose: let PyTorch print what it exports.
        env: environment that is described; None for the runner's.
    """
    require_extra("onnx", "train")
    require_extra("onnxscript", "train")
    from rsl_rl.models import CNNModel

    from manyworlds.rl.joint_network import ExportedJointModel

    policy = runner.alg.get_policy()
    model: Any = runner.onnx_model(verbose).cpu().eval()
    axes = {}
    for name in (*model.input_names, *model.output_names):
        axes[name] = {0: "batch"}
        if name[1:] in ("_in", "_out"):  # memory of a recurrent network, whose layers are first
            axes[name] = {1: "batch"}
    inputs = {"obs": list(policy.obs_groups)}
    if isinstance(policy, CNNModel):
        inputs |= {name: [name] for name in policy.obs_groups_2d}
    if isinstance(model, ExportedJointModel):
        inputs[model.joint_group] = [model.joint_group]
        axes[model.joint_group][1] = "joints"
        axes["actions"][1] = "joints"
    extra = runner.onnx_metadata()
    if env is None:
        env = runner.env.unwrapped
    metadata: Metadata = {}
    if env.action_manager.active_terms:
        metadata.update(get_base_metadata(env, str(path.parent)))
    metadata.update(extra)
    description = describe_policy(env, runner.env.clip_actions, task)
    network = {"inputs": inputs, "recurrent": policy.is_recurrent, **extra}
    metadata["manyworlds"] = json.dumps({**description, "policy": network})
    with atomic_path(path) as temporary, contextlib.ExitStack() as stack:
        if not verbose:
            stack.enter_context(_quiet())
        torch.onnx.export(
            model,
            model.get_dummy_inputs(),
            str(temporary),
            opset_version=18,
            dynamo=False,
            input_names=model.input_names,
            output_names=model.output_names,
            dynamic_axes=axes,
        )
        attach_metadata_to_onnx(temporary, metadata)
    return path


def export_scene(env: ManagerBasedRlEnv, output_dir: Path) -> Path:
    """Export the scene with its simulation options, as `export_spec` does."""
    spec = env.scene.spec.copy()
    set_options(spec, env.sim.mj_model.opt)
    return export_spec(spec, output_dir)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
