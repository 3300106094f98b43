"""Cases: moments that were sent to a run as tests of its policies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.types import VecEnvObs
from manyworlds.live.edits import START_STATES, AddCase, edit_from_plain
from manyworlds.live.user_events import start_from_states
from manyworlds.managers import EventTermCfg
from manyworlds.rl.progress import EditRecord
from manyworlds.utils.devices import torch_threads
from manyworlds.utils.table import render_table


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """Result of a case for one policy."""

    name: str
    policy: str
    """Name of the checkpoint."""
    worlds: int
    """Number of worlds that began in the case's state."""
    successes: int
    """Number of them that have reached the case's time without a failure."""
    ends: dict[str, int]
    """Number of worlds that each termination ended before; several may end one world."""


def cases_of(records: Sequence[EditRecord]) -> list[tuple[int, AddCase]]:
    """Return the cases among the edits of a run, each with the iterations done before it."""
    cases = []
    for record in records:
        edit = edit_from_plain(record.edit)
        if isinstance(edit, AddCase):
            cases.append((record.after, edit))
    return cases


def case_env(
    case: AddCase, cfg: ManagerBasedRlEnvCfg, device: str | None = None
) -> ManagerBasedRlEnv:
    """Build worlds that all begin in the state of a case.

    They differ in what the task randomizes at startup and at resets, in their commands, and in
    noise. Events that happen during episodes are left out, so that the case is the same for all.

    Args:
        case: the case.
        cfg: the task; it is copied.
        device: torch device; None for the default.

    Raises:
        ValueError: the case is of another model.
    """
    cfg = copy.deepcopy(cfg)
    cfg.episode_length_s = case.seconds
    cfg.auto_reset = True
    start = EventTermCfg(
        func=start_from_states,
        mode="reset",
        params={"states": (case.state,), "weights": (1.0,), "share": 1.0},
    )
    kept = {
        name: term
        for name, term in cfg.events.items()
        if term is not None and term.mode not in ("interval", "step")
    }
    cfg.events = {**kept, START_STATES: start}
    return ManagerBasedRlEnv(cfg, device=device)


@torch.inference_mode()
def evaluate_case(
    env: ManagerBasedRlEnv,
    case: AddCase,
    policy: Callable[[VecEnvObs], torch.Tensor],
    name: str = "",
) -> CaseResult:
    """Run a case once in each world.

    Args:
        env: worlds of `case_env`.
        case: the case.
        policy: function from observations to actions, shape [num_envs, total_action_dim].
        name: name of the policy.
    """
    with torch_threads(1):
        obs, _ = env.reset()
        begins = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        for entity, variant in case.state.variants.items():
            begins &= (env.sim.world_to_variant[entity] == variant).to(env.device)
        running = begins.clone()
        failed = torch.zeros_like(begins)
        ends = dict.fromkeys(env.termination_manager.active_terms, 0)
        for step in range(env.max_episode_length):
            if case.push is not None and step in (0, case.push.steps(env)):
                case.push.write(env, running.nonzero().squeeze(-1), float(step == 0))
            obs, *_ = env.step(policy(obs))
            failed |= running & env.reset_terminated
            for end in ends:
                terminated = env.termination_manager.get_term(end) & env.reset_terminated
                ends[end] += int((terminated & running).sum())
            running &= ~env.reset_buf
            if not running.any():
                break
    return CaseResult(
        name=case.name,
        policy=name,
        worlds=int(begins.sum()),
        successes=int((begins & ~failed).sum()),
        ends={end: count for end, count in ends.items() if count},
    )


def case_table(results: Sequence[CaseResult]) -> str:
    """Return results as a table."""
    rows = [
        (
            result.name,
            result.policy,
            f"{result.successes} of {result.worlds}",
            round(100.0 * result.successes / max(1, result.worlds), 1),
            ", ".join(f"{end} {count}" for end, count in result.ends.items()),
        )
        for result in results
    ]
    return render_table("", ("case", "policy", "success", "%", "failures"), rows)
