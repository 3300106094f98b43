"""Policies as ONNX, with what is needed to run them elsewhere."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.utils.config import to_plain
from manyworlds.utils.extras import require_extra
from manyworlds.utils.os import atomic_path

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.runner import OnPolicyRunner


def get_base_metadata(env: ManagerBasedRlEnv) -> dict[str, Any]:
    """Describe inputs, outputs and timing of a policy for an environment."""
    actions = {}
    for name in env.action_manager.active_terms:
        term = env.action_manager.get_term(name)
        actions[name] = {
            "type": type(term).__name__,
            "entity": term.cfg.entity_name,
            "targets": list(getattr(term, "target_names", [])),
            "config": to_plain(term.cfg),
        }
    observations = env.observation_manager
    return {
        "control_period_s": env.step_dt,
        "physics_timestep_s": env.physics_dt,
        "decimation": env.cfg.decimation,
        "observations": {
            group: {
                name: {
                    "shape": list(shape),
                    "config": to_plain(observations.get_term_cfg(group, name)),
                }
                for name, shape in zip(terms, observations.group_obs_term_dim[group], strict=True)
            }
            for group, terms in observations.active_terms.items()
        },
        "actions": actions,
        "joint_names": {name: list(e.joint_names) for name, e in env.scene.entities.items()},
        "default_joint_pos": {
            name: entity.data.default_joint_pos[0].tolist()
            for name, entity in env.scene.entities.items()
        },
    }


def export_policy(runner: OnPolicyRunner, path: Path) -> Path:
    """Write the policy's mean action as ONNX: input `obs`, output `actions`.

    The metadata entry `manyworlds` holds `get_base_metadata` as JSON.
    """
    onnx = require_extra("onnx", "train")
    require_extra("onnxscript", "train")
    import torch

    model: Any = runner.alg.get_policy().as_onnx(verbose=False).cpu().eval()
    quiet = logging.getLogger("torch.onnx")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with atomic_path(path) as temporary:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                torch.onnx.export(
                    model,
                    model.get_dummy_inputs(),
                    str(temporary),
                    opset_version=18,
                    dynamo=False,
                    input_names=model.input_names,
                    output_names=model.output_names,
                    dynamic_axes={name: {0: "batch"} for name in ("obs", "actions")},
                )
            exported = onnx.load(str(temporary))
            entry = exported.metadata_props.add()
            entry.key = "manyworlds"
            entry.value = json.dumps(get_base_metadata(runner.env.unwrapped))
            onnx.save(exported, str(temporary))
    finally:
        quiet.setLevel(level)
    return path
