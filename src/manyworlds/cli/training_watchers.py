"""What accompanies a training: edits, a video recorder, a web page, and the attach server."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.train_seeds import RUN_FILE
from manyworlds.utils.files import write_atomic
from manyworlds.utils.terminal import print_line

if TYPE_CHECKING:
    from rich.console import Console

    from manyworlds.cli.train import TrainOptions
    from manyworlds.live.run_edits import RunEdits
    from manyworlds.live.server import AttachServer
    from manyworlds.rl.progress import EditRecord, IterationRecord
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.viewer.training_view import TrainingView
    from manyworlds.viewer.video_recorder import VideoRecorder


class TrainingWatchers:
    """Edits and watchers of a running training, as its options ask for them.

    Args:
        options: the options of `manyworlds train`.
        console: console for what is printed.
        recorded: edits of the run that is continued or repeated.
    """

    def __init__(
        self, options: TrainOptions, console: Console, recorded: Sequence[EditRecord] = ()
    ) -> None:
        self._options = options
        self._console = console
        self._recorded = recorded
        self._edits: RunEdits | None = None
        self._film: VideoRecorder | None = None
        self._view: TrainingView | None = None
        self._attach_server: AttachServer | None = None

    def attach(self, runner: OnPolicyRunner) -> None:
        """Let the training accept and repeat edits.

        Raises:
            ValueError: its worlds have several models, and the options need one.
        """
        from manyworlds.envs import BucketedRlEnv
        from manyworlds.live.run_edits import RunEdits

        if isinstance(runner.env.unwrapped, BucketedRlEnv):
            options = self._options
            if options.view or options.enter or options.edits is not None:
                raise ValueError(
                    "--view, --enter and --edits need one model for all worlds, but the task has "
                    "buckets of several: leave them out, or train one bucket."
                )
            return
        self._edits = RunEdits(runner, self._recorded, repeat=self._options.repeat_edits)
        self._edits.on_applied = lambda edit: self._print(
            f"edit after iteration {edit.after}: {edit.text}"
        )

    def start(self, runner: OnPolicyRunner, run: RunFolder) -> None:
        """Start recording and serving, as the options say."""
        run_file = os.environ.get(RUN_FILE)
        if run_file:
            write_atomic(Path(run_file), str(run.path.resolve()))
        if self._edits is not None:
            self._edits.open(run.path)
        if self._options.video:
            self._start_film(runner, run)
        if self._options.view or self._options.enter:
            self._open_attach_server(runner, run)
        if self._options.view:
            self._open_page(runner, run)

    def _start_film(self, runner: OnPolicyRunner, run: RunFolder) -> None:
        """Record videos of a world from now on."""
        from manyworlds.viewer.video_recorder import VideoRecorder

        interval = self._options.video_interval
        runner.env.unwrapped.render_mode = "rgb_array"
        self._film = VideoRecorder(
            runner.env.env,
            run.path / "videos" / "train",
            step_trigger=lambda step: step % interval == 0,
            video_length=self._options.video_length,
        )
        runner.env.env = self._film

    def _open_attach_server(self, runner: OnPolicyRunner, run: RunFolder) -> None:
        """Let other programs enter the worlds."""
        from manyworlds.live.memory import WorldMemory
        from manyworlds.live.server import AttachServer
        from manyworlds.live.training_policy import TrainingPolicy

        memory = None
        if self._options.remember:
            memory = WorldMemory(runner.env.unwrapped)
        self._attach_server = AttachServer(
            runner.env.unwrapped,
            run.path,
            run.task or "",
            TrainingPolicy(runner),
            int(runner.cfg["num_steps_per_env"]),
            self._edits,
            memory,
        )
        self._print(f"enter one of its worlds: manyworlds lab --attach {run.path} --world 0")

    def _open_page(self, runner: OnPolicyRunner, run: RunFolder) -> None:
        """Serve the page of the worlds."""
        from manyworlds.lab.training.warm_lab import WarmLab
        from manyworlds.plugins.urlab.fast_path.training import TrainingPublisher
        from manyworlds.utils.web_access import is_local, served_at
        from manyworlds.viewer.training_view import TrainingView

        options = self._options
        shown = min(options.view_worlds, runner.env.num_envs)
        if not 0 <= options.peek_world < shown:
            raise ValueError(
                f"--peek-world must be one of the {shown} worlds shown, from 0 to {shown - 1}, got "
                f"{options.peek_world}: see --view-worlds."
            )
        walk_in = None  # the lab's page is for this machine only
        if is_local(options.host):
            walk_in = functools.partial(WarmLab, run.path.resolve())
        self._view = TrainingView(
            runner.env.unwrapped,
            options.view_worlds,
            options.host,
            options.port,
            functools.partial(TrainingPublisher, world=options.peek_world, name=run.path.name),
            walk_in,
            web_origins=options.web_origin,
        )
        self._print(f"watch at {served_at(self._view.url, options.port)}")
        self._print(
            f"or world {options.peek_world} in MuJoCo's window, where it cannot be pushed: "
            f"manyworlds peek {self._view.shared_at}"
        )

    def _print(self, text: str) -> None:
        print_line(self._console, text)

    def note(self, record: IterationRecord) -> None:
        """Pass on the report of an iteration."""
        if self._view is not None:
            self._view.note(record)

    @property
    def files(self) -> list[Path]:
        """Videos written so far."""
        if self._film is None:
            return []
        return self._film.files

    def close(self) -> None:
        """Finish the videos and close the page."""
        for watcher in (self._film, self._view, self._attach_server):
            if watcher is not None:
                watcher.finish()
