"""`manyworlds lab --attach [RUN]`: enter a world of a running training."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from manyworlds.cli.errors import EXPECTED, one_line
from manyworlds.cli.options import (
    RUNS,
    Load,
    LogRoot,
    Port,
    RunningTraining,
    WebOrigins,
    parse,
)
from manyworlds.cli.runs import running_training
from manyworlds.cli.task_files import load_task_of
from manyworlds.cli.waiting import check_seconds, wait
from manyworlds.utils.garbage import gc_paused
from manyworlds.utils.web_access import served_at

if TYPE_CHECKING:
    from manyworlds.lab.page.lab_page import LabPage
    from manyworlds.lab.training import EnteredWorld

ATTACH = "--attach"
_HEARTBEAT_S = 0.2
_EPISODE_S = 5.0


@dataclass(kw_only=True)
class AttachOptions:
    """Enter a world of a running training: continue it in a lab, with the current policy.

    The training must have been started with `--enter` or `--view`. It continues meanwhile, and is
    affected only by what the lab sends back.
    """

    run: RunningTraining = ""
    world: int = 0
    """World of the training."""
    repeat: int = 0
    """Control steps to replay bit for bit, once the training has made them."""
    back: Annotated[
        float,
        arg(
            help="Start this long before the present [s], as far as the training has it in memory "
            "(`train --remember`): the world replays what happened until it is disturbed."
        ),
    ] = 0.0
    episode: int | None = None
    """Rewind to one of the worst episodes instead, 0 for the latest: its last 5 s, or --back."""
    wait: bool = False
    """Read world numbers from standard input, one per line; used by the training's page."""
    paused: bool = False
    """Start paused."""
    headless: bool = False
    """Serve no page."""
    seconds: float | None = None
    """Time until the lab stops [s]; None runs until Ctrl-C."""
    port: Port = 8080
    web_origin: WebOrigins = ()
    log_root: LogRoot = RUNS
    load: Load = ()


def attach(argv: list[str]) -> int:
    """Run `manyworlds lab --attach`."""
    cfg = parse(AttachOptions, [part for part in argv if part != ATTACH], f"lab {ATTACH}")
    check_seconds(cfg.seconds)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops as Ctrl-C does
    try:
        if cfg.wait:
            _wait(cfg)
        else:
            _attach(cfg)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _attach(cfg: AttachOptions) -> None:
    """Enter one world, and run the lab until its time is over."""
    with contextlib.ExitStack() as stack:
        if cfg.run:  # a wrong name is an error at once; the page loads beside the search for others
            running_training(cfg.run, cfg.log_root)
        page = None
        if not cfg.headless:
            page = stack.enter_context(_page(cfg))
        run = running_training(cfg.run, cfg.log_root)
        load_task_of(run)
        with gc_paused():
            entered = _entered(cfg, run.path)
        lab = stack.enter_context(entered.lab)
        if page is not None:
            page.show(lab)
            page.start()
        back = ""
        if cfg.back > 0.0 and cfg.episode is None:
            back = f", {cfg.back:g} s before"
        policy = "no policy"
        if entered.iteration is not None:
            policy = f"policy of iteration {entered.iteration}"
        print(
            f"world {entered.env_id} of {run.path.name} after {entered.step} control steps{back}, "
            f"{policy}",
            flush=True,
        )
        if page is not None:
            print(f"lab at {served_at(page.url, cfg.port)} (Ctrl-C stops)", flush=True)
        if cfg.repeat:
            print(f"waiting for {entered.recorded} control steps of the training ...", flush=True)
            replay = entered.repeat()
            lab.play()
            while not replay.ended:
                time.sleep(_HEARTBEAT_S)
            print(replay.ended, flush=True)
            if cfg.paused:
                lab.pause()
        wait(cfg.seconds)


def _entered(cfg: AttachOptions, folder: Path) -> EnteredWorld:
    """Enter the world, and go back in time as the options say."""
    _limit_threads()
    from manyworlds.lab import LabCfg
    from manyworlds.lab.training import enter_run

    lab_cfg = LabCfg(start_paused=cfg.paused or bool(cfg.repeat))
    world = cfg.world
    end = -1
    if cfg.episode is not None:
        world, end = _worst_episode(folder, cfg.episode)
    entered = enter_run(folder, world, lab_cfg, record=cfg.repeat, end=end)
    if cfg.back or end >= 0:
        entered.rewind(cfg.back or _EPISODE_S, end=end)
    return entered


def _wait(cfg: AttachOptions) -> None:
    """Load the lab after the first line of input; enter a world for each further line."""
    if not sys.stdin.readline():
        return
    _limit_threads()
    from manyworlds.lab.training import enter_run
    from manyworlds.lab.training.entry_stock import EntryStock
    from manyworlds.rl.run_folder import RunFolder

    with contextlib.ExitStack() as stack:
        page = stack.enter_context(_page(cfg))
        folder = Path(cfg.run)
        entered = None

        def enter(world: int) -> EnteredWorld:
            found = enter_run(folder, world, stock=stock)
            if entered is not None:
                entered.lab.stop()
            page.show(found.lab)
            found.lab.start()
            page.start()
            return found

        try:
            load_task_of(RunFolder(folder))
            stock = EntryStock(folder)
            stock.prepare_any()
            _answer(ready=page.url)
        except EXPECTED as error:
            return _answer(error=one_line(error))
        for line in sys.stdin:
            try:
                entered = enter(int(line))
                _answer(url=page.url)
                stock.prepare(entered.snapshot)
            except EXPECTED as error:
                _answer(error=one_line(error))
        if entered is not None:
            entered.lab.stop()


def _answer(**fields: str) -> None:
    print(json.dumps(fields), flush=True)


def _limit_threads() -> None:
    import torch

    torch.set_num_threads(1)  # one world has too little work for several


def _page(cfg: AttachOptions) -> contextlib.closing[LabPage]:
    """Start the page's process, which loads beside the world."""
    from manyworlds.lab.page.lab_page import LabPage

    return contextlib.closing(LabPage(port=cfg.port, web_origins=cfg.web_origin))


def _worst_episode(folder: Path, number: int) -> tuple[int, int]:
    """Return the world of one of the worst episodes, the latest first, and the step of its end."""
    from manyworlds.lab.training import Visitor

    worst = Visitor(folder).worst()[::-1]
    if not 0 <= number < len(worst):
        raise ValueError(
            f"There is no episode {number}: the training remembers {len(worst)} (`manyworlds why` "
            "explains them)."
        )
    print(worst[number]["text"])
    return worst[number]["env_id"], worst[number]["step"]
