"""Export of policies as ONNX, with a description for use outside of the environment."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.envs.mdp.actions.actions import BaseAction
from manyworlds.managers import ActionTerm
from manyworlds.rl.policy_description import action_entity, describe_policy, gains
from manyworlds.spec.edits import export_spec, set_options
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import atomic_path

if TYPE_CHECKING:
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
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"{value:.{decimals}f}" if number else str(value)

    return delimiter.join(map(text, arr))


def get_base_metadata(env: ManagerBasedRlEnv, run_path: str) -> Metadata:
    """Return metadata with the keys that deployment tools for mjlab read.

    The values describe the entity of the first action, and its joints in model order; the complete
    description is that of `describe_policy`.
    """
    entity = action_entity(env)
    stiffness, damping = gains(entity)
    observations = env.observation_manager
    group = "actor" if "actor" in observations.active_terms else next(iter(env.obs_buf))
    names = observations.active_terms[group]
    terms = [observations.get_term_cfg(group, name) for name in names]
    actions = [env.action_manager.get_term(name) for name in env.action_manager.active_terms]
    commands = getattr(env, "command_manager", None)

    def of_terms(name: str, default: object) -> list[object]:
        values = [getattr(term, name, default) for term in terms]
        return [default if v is None else _as_list(v) for v in values]

    return {
        "run_path": run_path,
        "joint_names": list(entity.joint_names),
        "joint_stiffness": stiffness,
        "joint_damping": damping,
        "default_joint_pos": entity.data.default_joint_pos[0].tolist(),
        "command_names": [] if commands is None else list(commands.active_terms),
        "observation_names": list(names),
        "observation_terms_scale": of_terms("scale", 1.0),
        "observation_terms_clip": of_terms("clip", "None"),
        "observation_terms_history_length": of_terms("history_length", 0),
        "observation_terms_flatten_history_dim": of_terms("flatten_history_dim", True),
        "action_scale": [s for term in actions for s in _as_list(_action_scale(term))],
    }


def _action_scale(term: ActionTerm) -> Any:
    """Return the factors of the first world; an empty list for a term without factors."""
    return term.scale[0] if isinstance(term, BaseAction) else getattr(term, "scale", [])


def attach_metadata_to_onnx(onnx_path: str | Path, metadata: Metadata) -> None:
    """Add entries to an ONNX file's metadata; lists are formatted by `list_to_csv_str`."""
    onnx = require_extra("onnx", "train")
    model = onnx.load(str(onnx_path))
    for key, value in metadata.items():
        entry = model.metadata_props.add()
        entry.key = key
        entry.value = list_to_csv_str(value) if isinstance(value, list) else str(value)
    onnx.save(model, str(onnx_path))


def export_policy(
    runner: OnPolicyRunner, path: Path, *, task: str | None = None, verbose: bool = False
) -> Path:
    """Export the policy's mean action as ONNX: input `obs`, output `actions`.

    Each image group is an additional input; recurrent policies have `h_in` and `h_out`, and `c_in`
    and `c_out` if they are LSTMs. The metadata hold `describe_policy` as JSON under `manyworlds`,
    and the entries of `get_base_metadata`.
    """
    require_extra("onnx", "train")
    require_extra("onnxscript", "train")
    policy = runner.alg.get_policy()
    model: Any = runner.onnx_model(verbose).cpu().eval()
    recurrent = getattr(model, "is_recurrent", False)
    names = [*model.input_names, *model.output_names]
    # The state of a recurrent network has the dimension of layers before the batch dimension.
    axes = {name: {1 if name[1:] in ("_in", "_out") else 0: "batch"} for name in names}
    env = runner.env.unwrapped
    description = describe_policy(env, runner.env.clip_actions, task)
    network: dict[str, object] = {
        "inputs": {"obs": list(policy.obs_groups)}
        | {name: [name] for name in getattr(policy, "obs_groups_2d", [])},
        "recurrent": recurrent,
        **(extra := runner.onnx_metadata()),
    }
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
        base = get_base_metadata(env, str(path.parent)) if env.action_manager.active_terms else {}
        metadata = {**base, **extra, "manyworlds": json.dumps({**description, "policy": network})}
        attach_metadata_to_onnx(temporary, metadata)
    return path


def export_scene(env: ManagerBasedRlEnv, output_dir: Path) -> Path:
    """Export the scene with its simulation options, as `export_spec` does."""
    spec = env.scene.spec.copy()
    set_options(spec, env.sim.mj_model.opt)
    return export_spec(spec, output_dir)


def _as_list(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


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
