"""`manyworlds report RUN`: write a page about a training run."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import tyro

from manyworlds.cli.buckets import exported_folder, one_bucket
from manyworlds.cli.errors import EXPECTED, UsageError, one_line
from manyworlds.cli.options import RUNS, Bucket, Device, FromFile, Load, LogRoot, parse
from manyworlds.cli.runs import FoundRun, find_run, tell_differences
from manyworlds.cli.task_files import load_task_of

if TYPE_CHECKING:
    from manyworlds.cli.report_content import Results
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.evaluation import Evaluation

T = TypeVar("T")
_FILM_SIZE = (640, 480)
_STRIP_SIZE = (240, 180)


@dataclass(kw_only=True)
class ReportOptions:
    """Write a page about a training run: curves, evaluation, film, and commands to repeat it."""

    run: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="[RUN]",
            help_behavior_hint="",
            help="Run folder, checkpoint in one, name of a run, or a task for its newest run; "
            "empty for the newest run of any task.",
        ),
    ] = ""
    out: Path | None = None
    """File of the page; None writes report.html or report.md in the run folder."""
    format: Literal["html", "md"] | None = None
    """One HTML file, or Markdown with pictures; None uses the suffix of --out, or HTML."""
    evaluate: bool = True
    """Run one episode in each of many new worlds, as `manyworlds evaluate` does."""
    worlds: int = 256
    """Number of worlds of the evaluation."""
    film: bool = True
    """Film the policy in one world: MP4 with the extra `video`, else GIF."""
    film_seconds: float = 8.0
    """Length of the film [s]."""
    share: bool = False
    """Also write the folder `share` beside the page, as `manyworlds share` does, and link it."""
    log_root: LogRoot = RUNS
    device: Device = None
    bucket: Bucket = None
    load: Load = ()
    from_file: FromFile = False


def main(argv: list[str]) -> int:
    """Run `manyworlds report`."""
    options = parse(ReportOptions, argv, "report")
    page_format = _format(options)
    if options.worlds < 1:
        raise UsageError(f"--worlds must be at least 1, got {options.worlds}.")
    if not 0.0 < options.film_seconds < float("inf"):
        raise UsageError(f"--film-seconds must be positive, got {options.film_seconds}.")
    from manyworlds.cli.report_content import Results, fill_page
    from manyworlds.rl.progress import read_progress
    from manyworlds.tasks.registry import require_task
    from manyworlds.utils.files import check_writable
    from manyworlds.utils.page import HtmlPage, MarkdownPage

    found = find_run(options.run, options.log_root)
    run = found.need_folder()
    records = read_progress(run.path, min_count=1)
    if run.task is not None and (options.evaluate or options.film):
        try:
            load_task_of(run, from_file=options.from_file)
            require_task(run.task)
        except (KeyError, FileNotFoundError, PermissionError) as error:
            error.add_note("--no-evaluate --no-film writes the page without the task.")
            raise
    out = options.out or run.path / f"report.{page_format}"
    if out.is_dir():
        raise UsageError(
            f"--out '{out}' is a folder: name a file in it, such as {out}/report.html."
        )
    check_writable(out)
    print(f"run: {run.path}", flush=True)
    if options.evaluate or options.film:
        tell_differences(run, run.task or "", from_file=options.from_file)
    page = {"html": HtmlPage, "md": MarkdownPage}[page_format](f"{run.task}: {run.path.name}")
    with tempfile.TemporaryDirectory() as scratch:
        results = Results()
        if options.from_file:
            results.settings = "the settings of the task as it is now"
        folder = exported_folder(run, options.bucket)
        if folder != run.path:
            options.bucket = folder.name
            results.settings += f" in bucket '{folder.name}'"
        if options.evaluate:
            results.evaluation, results.no_evaluation = _attempt(
                "evaluation", lambda: _evaluate(found, options)
            )
        if options.film:
            results.pictures, results.no_pictures = _attempt(
                "film", lambda: _film(found, Path(scratch), options)
            )
        if options.share:
            results.shared, results.no_shared = _attempt(
                "page of the policy", lambda: _share(found, out, results, options)
            )
        fill_page(page, run, found.checkpoint, records, results, Path(scratch))
        page.write(out)
    print(f"report: {out}")
    return 0


def _format(options: ReportOptions) -> Literal["html", "md"]:
    """Return the format that the options name, or that the suffix of the page's file does."""
    suffix = ""
    if options.out is not None:
        suffix = options.out.suffix.lower()
    by_suffix: dict[str, Literal["html", "md"]]
    by_suffix = {"": "html", ".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}
    if options.format is None and suffix not in by_suffix:
        raise UsageError(
            f"--out '{options.out}' is neither .html nor .md: rename it, or give --format."
        )
    return options.format or by_suffix[suffix]


def _attempt(what: str, make: Callable[[], T]) -> tuple[T | None, str]:
    """Return a part of the page, or None and the reason why there is none, which is printed."""
    try:
        return make(), ""
    except EXPECTED as error:
        print(f"warning: no {what}: {one_line(error)}", file=sys.stderr)
        return None, one_line(error)


def _evaluate(found: FoundRun, options: ReportOptions) -> Evaluation:
    """Evaluate the policy in new worlds."""
    from manyworlds.cli.evaluate import evaluate_run

    return evaluate_run(
        found.need_task(),
        found.need_folder(),
        found.need_checkpoint(),
        options.worlds,
        bucket=options.bucket,
        device=options.device,
        from_file=options.from_file,
    )


def _share(found: FoundRun, out: Path, results: Results, options: ReportOptions) -> Path:
    """Write the policy as a page of its own beside the report; return its folder."""
    from manyworlds.cli.share import ShareOptions, write_page

    run = found.need_folder()
    share = ShareOptions(
        targets=(str(found.checkpoint or run.path),),
        output=out.parent / "share",
        evaluate=results.evaluation is not None,
        log_root=options.log_root,
        device=options.device,
        from_file=options.from_file,
    )
    known = {}
    if results.evaluation is not None:
        known[run.path] = results.evaluation
    command = f"manyworlds share {shlex.quote(str(run.path))} --output share"
    return write_page(share, command, known)


def _film(found: FoundRun, folder: Path, options: ReportOptions) -> list[Path]:
    """Draw pictures of the policy side by side, and a film; return their paths."""
    from manyworlds.cli.evaluate import UNSEEN_SEED
    from manyworlds.cli.play import film
    from manyworlds.cli.policies import load_run_policy, with_progress
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks.run_configs import play_env_cfg
    from manyworlds.utils.gl import use_working_gl
    from manyworlds.viewer.policy_pictures import draw_policy

    run = found.need_folder()
    task = found.need_task()
    checkpoint = found.need_checkpoint()
    use_working_gl()
    cfg: ManagerBasedRlEnvCfg = play_env_cfg(task, run, from_file=options.from_file)
    cfg.scene.num_envs = 1
    cfg = one_bucket(cfg, options.bucket)
    cfg.seed = UNSEEN_SEED
    cfg.viewer.width, cfg.viewer.height = _STRIP_SIZE
    env = ManagerBasedRlEnv(cfg, device=options.device)
    policy = load_run_policy(env, task, run, checkpoint)
    files = [draw_policy(env, policy, folder / "pictures.png")]
    env.cfg.viewer.width, env.cfg.viewer.height = _FILM_SIZE
    env.reset()
    steps = max(1, round(options.film_seconds / env.step_dt))
    with with_progress(policy, steps, "filming") as shown:
        files.append(film(env, shown, folder / "film", steps))
    env.close()
    return files
