"""Content of the page that `manyworlds report` writes."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.errors import EXPECTED, one_line
from manyworlds.rl.code_state import read_code_state
from manyworlds.rl.curves import mean_shares, plot_learning_curve, plot_shares, plot_values
from manyworlds.rl.progress import (
    IterationRecord,
    control_steps,
    curve_keys,
    read_edits,
    training_minutes,
)
from manyworlds.rl.run_folder import RunFolder
from manyworlds.utils.config import Plain, flatten, to_plain

if TYPE_CHECKING:
    from manyworlds.rl.evaluation import Evaluation
    from manyworlds.utils.page import Page

_TITLES = {
    "Episode_Reward": "Weighted reward terms of ended episodes, per second of the maximum length",
    "Train": "Episodes that ended",
    "Episode_Termination": "Terminations: episodes that each ends, in steps that end episodes",
    "Loss": "Losses and learning rate",
    "Policy": "Exploration noise",
}
"""Titles of groups of logged values; others have the name of the group."""
_NOT_SHOWN = ("Perf", "share")
_ABSENT = "(absent)"
_EDITS = "--edits"


@dataclass
class Results:
    """Parts of a page that need the policy, and the reasons why there are none."""

    evaluation: Evaluation | None = None
    no_evaluation: str = ""
    pictures: list[Path] | None = field(default=None)
    no_pictures: str = ""
    shared: Path | None = None
    """Folder of `manyworlds share` beside the page."""
    no_shared: str = ""
    settings: str = "the settings of the training"
    """Settings of the worlds in which the policy was evaluated."""


def fill_page(
    page: Page,
    run: RunFolder,
    checkpoint: Path | None,
    records: Sequence[IterationRecord],
    results: Results,
    scratch: Path,
) -> None:
    """Add all sections to a page.

    Args:
        page: the page.
        run: the run.
        checkpoint: checkpoint whose policy is evaluated and filmed; None if there is none.
        records: iterations of the run, at least one.
        results: evaluation and film.
        scratch: folder for pictures.
    """
    page.table(("", ""), _summary(run, checkpoint, records))
    if results.pictures or results.no_pictures:
        page.heading("Film")
        for path in results.pictures or ():
            page.media(path, f"The policy in one world: {path.stem}")
        if results.no_pictures:
            page.text(f"There is no film: {results.no_pictures}")
    if results.shared is not None:
        page.heading("In the browser")
        page.link("The policy, simulated in the browser", f"{results.shared.name}/index.html")
        page.text(
            "Browsers load it from a web server only, such as `python -m http.server` in the "
            "folder of this page."
        )
    elif results.no_shared:
        page.heading("In the browser")
        page.text(f"There is no page of the policy: {results.no_shared}")
    if results.evaluation or results.no_evaluation:
        _add_evaluation(page, results)
    _add_curves(page, records, scratch)
    _add_reproduction(page, run)
    _add_settings(page, run)


def _summary(
    run: RunFolder, checkpoint: Path | None, records: Sequence[IterationRecord]
) -> Iterator[tuple[str, str]]:
    """Yield the rows of the first table."""
    last = records[-1]
    minutes = training_minutes(records)[-1]
    steps = control_steps(records)[-1]
    yield "task", str(run.task)
    yield "run", run.path.name
    if checkpoint is None:
        yield "checkpoint", "none"
    else:
        yield "checkpoint", checkpoint.name
    yield "iterations", f"{last.iteration:,} of {last.total:,}"
    if minutes >= 1.0:
        yield "training time", f"{minutes:.1f} min"
    else:
        yield "training time", f"{60.0 * minutes:.1f} s"
    yield "control steps", f"{steps:,} ({steps / (60.0 * minutes):,.0f} per second)"
    if last.mean_return is not None:
        yield "mean return", f"{last.mean_return:.2f} (last 100 episodes of training)"
    shares = mean_shares(records)
    if shares:
        yield "time", ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())


def _add_evaluation(page: Page, results: Results) -> None:
    page.heading("Evaluation")
    found = results.evaluation
    if found is None:
        page.text(f"There is no evaluation: {results.no_evaluation}")
        return
    page.text(
        f"{found.episodes} episodes of at most {found.episode_length_s:g} s in new worlds with "
        f"{results.settings}, without exploration noise: mean length "
        f"{found.mean_length_s:.2f} s, mean return {found.mean_return:.2f}. The mean of a "
        "reward term is taken before weighting and over the maximum length of an episode, "
        "so that time after a failure counts as zero."
    )
    page.table(
        ("reward term", "mean", "weight", "weighted"),
        [
            (name, _rounded(mean), found.weights[name], _rounded(mean * found.weights[name]))
            for name, mean in found.terms.items()
        ],
    )
    ends = [(k, n, round(100.0 * n / found.episodes, 1)) for k, n in found.ends.items()]
    page.table(("termination", "episodes", "%"), ends)


def _rounded(value: float) -> float:
    return round(value, 4) + 0.0  # which makes -0.0 zero


def _add_curves(page: Page, records: Sequence[IterationRecord], scratch: Path) -> None:
    page.heading("Curves")
    page.media(plot_learning_curve(records, scratch / "return.png"), "Mean return and speed")
    page.heading("Time per control step", 3)
    if any(record.shares for record in records):
        page.media(
            plot_shares(records, scratch / "time.png"), "Time of physics, managers and learner"
        )
        page.text(
            "Physics: the simulation's steps, actuators included. Managers: the rest of the "
            "environment, with resets. Learner: the actions of the policy and its updates."
        )
    groups: dict[str, list[str]] = {}
    for key in curve_keys(records):
        group, slash, _ = key.partition("/")
        if slash and group not in _NOT_SHOWN:
            groups.setdefault(group, []).append(key)
    if not groups:
        page.text("The version of manyworlds that trained this run recorded no further curves.")
    order = [*(name for name in _TITLES if name in groups), *sorted(set(groups) - set(_TITLES))]
    for i, group in enumerate(order):
        title = _TITLES.get(group, group)
        page.heading(title, 3)
        page.media(plot_values(records, groups[group], scratch / f"curves_{i}.png"), title)


def _add_reproduction(page: Page, run: RunFolder) -> None:
    page.heading("Reproduce")
    origin = run.origin()
    edits = []
    no_edits = ""
    try:
        edits = read_edits(run.path)
    except EXPECTED as error:
        no_edits = one_line(error)
    command = origin.get("command")
    if command:
        if edits and _EDITS not in command:
            command += f" {_EDITS} {shlex.quote(str(run.path))}"
        page.code(command)
    else:
        page.text(
            "The run folder records no command: the run was started from Python, or by an older "
            "version. Its settings are below."
        )
    seed = None
    with contextlib.suppress(OSError, ValueError):  # the settings are not known
        agent = run.agent_params()
        if isinstance(agent, dict):
            seed = agent.get("seed")
    facts: dict[str, object] = {
        "seed": seed,
        "started": origin.get("started"),
        "device": origin.get("device"),
    }
    for name, commit in read_code_state(run.path / "git").items():
        if commit.endswith("-dirty"):
            commit += f" (the changes are in git/{name}.diff of the run folder)"
        facts[f"commit of {name}"] = commit
    for part in (origin.get("machine"), origin.get("versions")):
        if isinstance(part, dict):
            facts |= {name: value for name, value in part.items() if name != "load"}
    page.table(("", ""), [(k, str(v)) for k, v in facts.items() if v not in (None, "")])
    if no_edits:
        page.text(f"The edits of the training are not known: {no_edits}")
    if edits:
        page.text(f"The training was edited while it ran; {_EDITS} repeats this:")
        page.table(("after iteration", "edit"), [(str(e.after), e.text) for e in edits])
    page.text("The same seed gives the same result on one machine with the same versions.")


def _add_settings(page: Page, run: RunFolder) -> None:
    page.heading("Settings")
    try:
        rows = list(_changes(run))
    except EXPECTED as error:
        page.text(f"The differences from the task are not known: {one_line(error)}")
    else:
        if rows:
            page.text("Differences from the settings of the task as registered:")
            page.table(("setting", "this run", "task"), rows)
        else:
            page.text("All settings are those of the task as registered.")
    for name in ("env", "agent"):
        path = run.path / "params" / f"{name}.yaml"
        if path.is_file():
            page.code(path.read_text(errors="replace").rstrip(), f"All settings: {name}")


def _named(plain: Plain) -> Plain:
    """Return settings in which items of lists of settings have their names, or numbers, as keys."""
    if isinstance(plain, dict):
        return {key: _named(value) for key, value in plain.items()}
    if not isinstance(plain, list) or not plain:
        return plain
    named: dict[str, Plain] = {}
    for i, item in enumerate(plain):
        if not isinstance(item, dict):
            return plain
        named[str(item.get("name", i))] = _named(item)
    return named


def _changes(run: RunFolder) -> Iterator[tuple[str, str, str]]:
    """Yield the settings in which a run differs from its task as registered."""
    from manyworlds.tasks import load_env_cfg, load_rl_cfg

    task = str(run.task)
    for name, params, cfg in (
        ("env", run.env_params(), load_env_cfg(task)),
        ("agent", run.agent_params(), load_rl_cfg(task)),
    ):
        here = flatten(_named(params), name)
        there = flatten(_named(to_plain(cfg)), name)
        for key in dict.fromkeys((*here, *there)):
            values = here.get(key, _ABSENT), there.get(key, _ABSENT)
            if values[0] != values[1]:
                yield key, str(values[0]), str(values[1])
