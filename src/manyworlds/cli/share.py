"""`manyworlds share TARGET`: write policies and worlds as a page that a browser runs by itself."""

from __future__ import annotations

import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manyworlds.cli.errors import EXPECTED, UsageError, one_line
from manyworlds.cli.options import RUNS, Device, FromFile, Load, LogRoot, MissingMeshes, parse

if TYPE_CHECKING:
    from manyworlds.cli.lab import LabOptions, Target
    from manyworlds.rl.evaluation import Evaluation
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.share import PageCard, PagePolicy, PageWorld

_EVALUATED_WORLDS = 256


@dataclass(kw_only=True)
class ShareOptions:
    """Write a folder that simulates a policy in any browser, without a server of ours.

    TARGET is a run (its folder, a checkpoint in it, or its name), a task, which then moves by zero
    actions, a model file, or a world of the gallery. Several runs share one page, which offers
    their policies; a task with variants offers its variants as worlds. The programs that the page
    needs are downloaded once by npm.
    """

    targets: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="TARGET [TARGET ...]", help_behavior_hint=""),
    ] = ()
    """Runs, tasks, model files, or worlds of the gallery."""
    output: Path
    """Folder to write; only an earlier page is replaced."""
    title: str = ""
    """Title of the page; empty for the names of the targets."""
    policy: Path | None = None
    """ONNX file or checkpoint of a policy that controls the robot of a model file or of a world of
    the gallery."""
    recording: Path | None = None
    """Recording of the lab (MCAP, CSV or JSON) that the page plays in the world of the target."""
    variants: str = ""
    """Variants to show, such as box,T; empty for all."""
    embed: bool = False
    """Begin without panels, for an iframe; otherwise `?embed` in the address does so."""
    evaluate: bool = True
    """Run one episode in each of 256 new worlds for each run, and show the result on the card."""
    missing_meshes: MissingMeshes = "error"
    log_root: LogRoot = RUNS
    device: Device = None
    load: Load = ()
    from_file: FromFile = False


def main(argv: list[str]) -> int:
    """Run `manyworlds share`."""
    options = parse(ShareOptions, argv, "share")
    if not options.targets:
        raise UsageError("Name what to share: manyworlds share RUN --output FOLDER.")
    command = f"manyworlds share {shlex.join(argv)}"
    evaluations: dict[Path, Evaluation] = {}
    write_page(options, command, evaluations)
    return 0


def write_page(options: ShareOptions, command: str, evaluations: dict[Path, Evaluation]) -> Path:
    """Write the page, and print where it is.

    Args:
        options: the options.
        command: command line that writes the page again.
        evaluations: results that are known, by run folder.

    Returns:
        The folder.
    """
    from manyworlds.cli.lab import LabOptions, find_target
    from manyworlds.share.folder import LIMIT_MB, check_replaceable, folder_size, write_folder
    from manyworlds.share.sources import recorded_motion
    from manyworlds.share.vendor import vendor_files
    from manyworlds.utils.files import check_writable

    check_replaceable(options.output)
    check_writable(options.output)
    targets = []
    for name in options.targets:
        lab = LabOptions(
            target=name,
            policy=options.policy,
            missing_meshes=options.missing_meshes,
            validate=False,
            log_root=options.log_root,
        )
        targets.append((find_target(lab), lab))
    vendor_files()  # what is missing is said before long work
    worlds: list[PageWorld] = []
    policies: list[PagePolicy] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, (target, lab) in enumerate(targets):
            folder = Path(scratch, str(number))
            folder.mkdir()
            _add_target(target, lab, options, folder, worlds, policies)
    if options.recording is not None:
        for world in worlds:
            world.motion = recorded_motion(options.recording, world.model)
    found = [target for target, _ in targets]
    card = _card(options, found, command)
    card.evaluation = _evaluation(found, options, evaluations)
    path = write_folder(options.output, worlds, policies, card, embed=options.embed)
    size = folder_size(path)
    print(f"page: {path} ({size:.1f} MB); to see it: python -m http.server -d {path}")
    if size > LIMIT_MB:
        print(f"warning: the page has {size:.0f} MB, more than {LIMIT_MB} MB", file=sys.stderr)
    return path


def _add_target(
    target: Target,
    lab: LabOptions,
    options: ShareOptions,
    folder: Path,
    worlds: list[PageWorld],
    policies: list[PagePolicy],
) -> None:
    """Add the worlds and policies of a target; files of policies go to a folder."""
    from manyworlds.cli.lab import world_of
    from manyworlds.lab.world.gallery import GALLERY
    from manyworlds.share.sources import (
        driven_world,
        page_world,
        run_page,
        task_worlds,
        zero_policy,
    )
    from manyworlds.tasks import load_env_cfg
    from manyworlds.tasks.run_configs import play_env_cfg

    if options.policy is not None and (target.run is not None or target.task):
        raise UsageError(
            "--policy is for model files and worlds of the gallery: runs have their own."
        )
    shown = tuple(filter(None, options.variants.split(",")))
    if target.run is not None:
        assert target.policy is not None
        try:
            cfg = play_env_cfg(target.task, target.run, from_file=options.from_file)
        except KeyError as error:  # `find_target` has said why its task is not registered
            print(f"warning: no ranges of the task: {one_line(error)}", file=sys.stderr)
            cfg = None
        name = target.task
        if len(options.targets) > 1:
            name = target.run.path.name
        for policy in run_page(target.run, target.policy, cfg, name, shown):
            worlds.append(policy.world)
            policies.append(policy)
    elif target.task:
        cfg = load_env_cfg(target.task, play=True)
        for world, env in task_worlds(cfg, target.task, shown):
            worlds.append(world)
            still = zero_policy(env, world, folder)
            if still is not None:
                policies.append(still)
    else:
        name = target.gallery
        policy_file = target.policy
        robot = ""
        if target.file is not None:
            name = target.file.stem
        elif policy_file is None:
            policy_file = GALLERY[name].policy
            robot = GALLERY[name].robot
        world = world_of(target, lab)
        if policy_file is None:
            worlds.append(page_world(world, name))
        else:
            policy = driven_world(world, name, policy_file, robot)
            worlds.append(policy.world)
            policies.append(policy)


def _card(options: ShareOptions, targets: list[Target], command: str) -> PageCard:
    """Return facts about the targets for the card of the page."""
    from manyworlds.rl.progress import read_progress, training_minutes
    from manyworlds.share import PageCard

    tasks = list(dict.fromkeys(target.task for target in targets if target.task))
    task = ", ".join(tasks) or None
    title = options.title or task or ", ".join(Path(name).stem for name in options.targets)
    card = PageCard(title=title, command=command, task=task)
    runs = [target.run for target in targets if target.run is not None]
    if len(runs) != 1:
        return card
    [run] = runs
    origin = run.origin()
    card.trained_with = str(origin.get("versions", {}).get("mujoco", ""))
    try:
        records = read_progress(run.path, min_count=1)
    except EXPECTED as error:
        print(f"warning: no training time: {one_line(error)}", file=sys.stderr)
        return card
    minutes = training_minutes(records)[-1]
    card.trained = f"{60.0 * minutes:.0f} s"
    if minutes >= 1.0:
        card.trained = f"{minutes:.0f} min"
    machine = origin.get("machine", {})
    if machine.get("gpu"):
        card.trained += f" on {machine['gpu']}"
    elif machine.get("cores"):
        card.trained += f" on {machine['cores']} cores"
    card.iterations = records[-1].iteration
    return card


def _evaluation(
    targets: list[Target], options: ShareOptions, known: dict[Path, Evaluation]
) -> dict[str, object] | None:
    """Return the results of the runs by title, or None; a failure is a warning."""
    if not options.evaluate:
        return None
    rows: dict[str, object] = {}
    runs = {target.run: target.policy for target in targets if target.run is not None}
    for run, policy in runs.items():
        try:
            found = known.get(run.path) or _evaluate(run, policy, options)
        except EXPECTED as error:
            print(f"warning: no evaluation: {one_line(error)}", file=sys.stderr)
            continue
        prefix = ""
        if len(runs) > 1:
            prefix = f"{run.path.name}: "
        rows[f"{prefix}mean return"] = round(found.mean_return, 2)
        rows[f"{prefix}mean length"] = (
            f"{found.mean_length_s:.1f} s of at most {found.episode_length_s:g} s, "
            f"{found.episodes} episodes"
        )
        for name, count in found.ends.items():
            if count:
                share = 100.0 * count / found.episodes
                rows[f"{prefix}ended by {name.replace('_', ' ')}"] = f"{share:.0f} %"
    return rows or None


def _evaluate(run: RunFolder, policy: Path | None, options: ShareOptions) -> Evaluation:
    from manyworlds.cli.evaluate import evaluate_run

    checkpoint = policy
    if checkpoint is None or checkpoint.suffix != ".pt":
        checkpoint = run.last_checkpoint()
    return evaluate_run(
        run.task or "",
        run,
        checkpoint,
        _EVALUATED_WORLDS,
        device=options.device,
        from_file=options.from_file,
    )
