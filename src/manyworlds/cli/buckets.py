"""Choice of a bucket of a task whose worlds have different topology."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.errors import UsageError

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.run_folder import RunFolder


def one_bucket(cfg: ManagerBasedRlEnvCfg, name: str | None) -> ManagerBasedRlEnvCfg:
    """Return the task of one bucket with all worlds; a task without buckets as it is.

    Args:
        cfg: the task.
        name: the bucket; None for the first, which is told.

    Raises:
        UsageError: a bucket is named, and the task has none.
        ValueError: the task has no such bucket.
    """
    names = list(cfg.scene.buckets)
    if not names:
        if name is not None:
            raise UsageError(f"--bucket {name}: this task has no buckets; leave --bucket out.")
        return cfg
    from manyworlds.envs.buckets import bucket_cfg

    if name is None:
        name = names[0]
        print(f"bucket: {name}; --bucket chooses among {', '.join(names)}", flush=True)
    return bucket_cfg(cfg, name, cfg.scene.num_envs)


def exported_folder(run: RunFolder, name: str | None) -> Path:
    """Return the folder in which training exported policy and scene: that of the run, or a bucket.

    Args:
        run: the run.
        name: the bucket; None for the first.

    Raises:
        UsageError: a bucket is named, and the run has none.
        ValueError: the run has no such bucket.
    """
    names: list[str] = []
    with contextlib.suppress(OSError):  # of a run that has just begun
        names += run.env_params().get("scene", {}).get("buckets", {})
    if not names:
        if name is not None:
            raise UsageError(f"--bucket {name}: '{run.path}' has no buckets; leave --bucket out.")
        return run.path
    if name is None:
        name = names[0]
        print(f"bucket: {name}; --bucket chooses among {', '.join(names)}", flush=True)
    if name not in names:
        raise ValueError(f"'{run.path}' has no bucket '{name}': choose one of {', '.join(names)}.")
    return run.path / "buckets" / name
