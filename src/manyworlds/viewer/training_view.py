"""Page that shows a running training without affecting it.

The page is served by its own process, of lowest priority, that takes a small share of the
processor. A few times per second, between two control steps, training copies the state of the
worlds shown into shared memory; it does nothing else for the page.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.shared_memory import SharedMemory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol

import mujoco
import numpy as np

from manyworlds.utils.extras import require_extra
from manyworlds.utils.platforms import lower_priority
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.cpu_share import CpuShare
from manyworlds.viewer.entry_controls import EntryControls
from manyworlds.viewer.model_sync import VIEWER_MODEL_FIELDS, as_numpy

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import torch

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.runner import IterationRecord
    from manyworlds.sim import Simulation

_FRAMES_PER_SECOND = 10.0
_CPU_SHARE = 0.005
"""Largest share of all cores for the page; it draws fewer frames where it would need more."""
_START_SECONDS = 300.0  # on machines with other work; an end of the process is seen at once
_STATE = ("time", "qpos", "qvel", "mocap_pos", "mocap_quat")
_RECORD = ("iteration", "total", "mean_return", "steps_per_s")

Layout = dict[str, tuple[tuple[int, ...], str]]
"""Shape and dtype of each array in the shared memory."""
Page = tuple[mujoco.MjModel, ViewerConfig, np.ndarray, str, int, tuple[str, ...]]
"""Arguments of the page: model, view, origins of the worlds [m], address, port, and web origins."""


class Sharer(Protocol):
    """Server of the worlds for other programs than browsers, in the page's process."""

    @property
    def address(self) -> str:
        """HOST:PORT that it listens at."""
        ...

    def close(self) -> None:
        """Stop serving."""
        ...


class WorldLab(Protocol):
    """Lab for the worlds of a training, in a process of its own."""

    def warm(self) -> None:
        """Load what is needed; a second call does nothing."""
        ...

    def enter(self, world: int) -> str:
        """Open a world, and return the address of the lab's page."""
        ...

    def close(self) -> None:
        """End the lab."""
        ...


Share = Callable[["Frames", mujoco.MjModel], Sharer]
"""Function of the states of the worlds and their model that begins to serve them."""


class Frames:
    """Arrays in shared memory, written by one process and read by another.

    Args:
        layout: shape and dtype of each array.
        name: name of the memory to attach to; None creates a new one.
    """

    def __init__(self, layout: Layout, name: str | None = None) -> None:
        sizes = {k: int(np.prod(shape)) * np.dtype(t).itemsize for k, (shape, t) in layout.items()}
        # Offsets are aligned for all dtypes.
        starts = np.cumsum([8, *(-(-size // 8) * 8 for size in sizes.values())]).tolist()
        self._own = name is None
        self.memory = SharedMemory(name, create=name is None, size=starts[-1])
        self._sequence = np.ndarray((1,), np.int64, self.memory.buf)
        self.arrays = {
            key: np.ndarray(shape, dtype, self.memory.buf, start)
            for (key, (shape, dtype)), start in zip(layout.items(), starts[:-1], strict=True)
        }

    def begin(self) -> None:
        """Mark the arrays as partly written."""
        self._sequence[0] += 1

    end = begin
    """Mark the arrays as complete: the number is even again."""

    def read(self, last: int) -> tuple[int, dict[str, np.ndarray] | None]:
        """Copy the arrays in the layout's shapes; None if incomplete or unchanged since `last`."""
        before = int(self._sequence[0])
        if before == last or before % 2:
            return last, None
        copies = {name: array.copy() for name, array in self.arrays.items()}
        if int(self._sequence[0]) != before:
            return last, None
        return before, copies

    def close(self) -> None:
        """Close the memory; the process that created it also removes it."""
        self.arrays = {}
        del self._sequence
        self.memory.close()
        if self._own:
            self.memory.unlink()


class TrainingView:
    """Shows the first worlds of an environment on a read-only page, as others step it.

    It observes the environment, whose state and random numbers do not depend on it.

    Args:
        env: the environment.
        num_shown: largest number of worlds on the page.
        host: address of the page; the default accepts connections from this machine only.
        port: port of the page; if it is in use, the next free one is taken. See `url`.
        share: also serves the worlds to other programs; another process must be able to import
            it. None serves the page only.
        walk_in: creates the lab that the button *Walk in* opens worlds in; likewise. None for no
            button.
        web_origins: further origins of pages that may talk to this one, and show it in a frame.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        RuntimeError: the page could not be served; the message has the reason.
    """

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        num_shown: int = 64,
        host: str = "127.0.0.1",
        port: int = 8080,
        share: Share | None = None,
        walk_in: Callable[[], WorldLab] | None = None,
        web_origins: Sequence[str] = (),
    ) -> None:
        require_extra("viser", "lab")
        self._env = env.unwrapped
        sim = self._env.sim
        self._rows = slice(0, min(num_shown, env.num_envs))
        self._sources = _sources(sim)
        layout: Layout = {"record": ((len(_RECORD),), "float64")}
        for name, tensor in self._sources.items():
            row = as_numpy(tensor[self._rows])
            layout[name] = row.shape, row.dtype.str
        self._frames: Frames | None = Frames(layout)
        self._next = 0.0
        self._show()
        context = multiprocessing.get_context("spawn")
        answers, pipe = context.Pipe(duplex=False)
        origins = as_numpy(self._env.scene.env_origins[self._rows])
        page = (sim.mj_model, self._env.cfg.viewer, origins, host, port, tuple(web_origins))
        self._process = context.Process(
            target=_serve,
            args=(self._frames.memory.name, layout, page, pipe, share, walk_in),
            name="manyworlds-view",
            daemon=True,
        )
        self._process.start()
        pipe.close()
        self.url, self.shared_at = self._wait_for_page(answers)
        """The address of the page, and HOST:PORT of `share`; empty without it."""
        self._env.observers.append(self)

    def before_step(self, action: torch.Tensor) -> None:
        """Do nothing: worlds are shown after a control step."""

    def after_step(self) -> None:
        """Show the worlds if a frame is due."""
        if time.perf_counter() >= self._next:
            self._show()

    def note(self, record: IterationRecord) -> None:
        """Show the results of an iteration."""
        if self._frames is not None:
            self._frames.begin()
            values = [getattr(record, name) for name in _RECORD]
            self._frames.arrays["record"][:] = np.array(values, float)  # None becomes NaN
            self._frames.end()

    def finish(self) -> None:
        """Stop serving the page; training continues. A second call does nothing."""
        if self._frames is None:
            return
        if self in self._env.observers:
            self._env.observers.remove(self)
        self._process.terminate()
        self._process.join()
        self._frames.close()
        self._frames = None

    def _show(self) -> None:
        self._next = time.perf_counter() + 1.0 / _FRAMES_PER_SECOND
        if self._frames is None:
            return
        self._frames.begin()
        for name, tensor in self._sources.items():
            self._frames.arrays[name][:] = as_numpy(tensor[self._rows])
        self._frames.end()

    def _wait_for_page(self, answers: Connection) -> tuple[str, str]:
        """Return the addresses of the page and of the shared world."""
        try:
            answer = "no answer"
            if answers.poll(_START_SECONDS):
                answer = answers.recv()
        except EOFError:
            answer = "its process ended"
        if isinstance(answer, str):
            self.finish()
            raise RuntimeError(f"The page of the training could not be served: {answer}.")
        return answer


def _sources(sim: Simulation) -> dict[str, torch.Tensor]:
    """Return the data that the page is drawn from: state, and model fields that differ."""
    model = sim.mj_model
    state = {
        name: getattr(sim.data, name) for name in _STATE if model.nmocap or "mocap" not in name
    }
    fields = sorted(VIEWER_MODEL_FIELDS & sim.expanded_fields)
    return {**state, **{f"model.{name}": getattr(sim.model, name) for name in fields}}


def _serve(
    name: str,
    layout: Layout,
    page: Page,
    pipe: Connection,
    share: Share | None,
    walk_in: Callable[[], WorldLab] | None,
) -> None:
    """Serve the page until the process is terminated; runs in its own process."""
    # Ctrl-C is handled by the training, which terminates this process at its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lab = None
    if walk_in is not None:
        lab = walk_in()  # with the priority of the training
    frames = Frames(layout, name)
    try:
        shown = _TrainingPage(frames, *page, walk_in=lab)
        shared = None
        address = ""
        if share is not None:
            shared = share(frames, page[0])
            address = shared.address
        pipe.send((shown.url, address))
    except Exception as error:
        with contextlib.suppress(BrokenPipeError):  # the training was stopped meanwhile
            pipe.send(f"{type(error).__name__}: {error}")
        return
    lower_priority(19)  # until now the training has waited for the page

    def end(*_: object) -> None:
        for server in (shared, lab):
            if server is not None:
                server.close()
        os._exit(0)  # without waiting for threads of browsers

    signal.signal(signal.SIGTERM, end)
    parent = multiprocessing.parent_process()
    budget = CpuShare(_CPU_SHARE * (os.cpu_count() or 1), 1.0 / _FRAMES_PER_SECOND)
    busy = time.process_time()
    while parent is not None and parent.is_alive():
        shown.update()
        # Includes the work of viser's threads since the last frame.
        before = busy
        busy = time.process_time()
        time.sleep(budget.rest(busy - before))
    end()


class _TrainingPage:
    """The page: worlds side by side, progress of the training, and its learning curve."""

    def __init__(
        self,
        frames: Frames,
        model: mujoco.MjModel,
        cfg: ViewerConfig,
        origins: np.ndarray,
        host: str,
        port: int,
        web_origins: Sequence[str] = (),
        walk_in: WorldLab | None = None,
    ) -> None:
        from manyworlds.viewer.browser.cameras import FittedView
        from manyworlds.viewer.browser.server import new_server, page_url
        from manyworlds.viewer.browser.world_grid import WorldGrid
        from manyworlds.viewer.camera import first_free_body
        from manyworlds.viewer.world_mirror import WorldMirror

        self._frames = frames
        self._cfg = cfg
        self._origins = origins
        self._count = len(frames.arrays["qpos"])
        self._last = -1
        self._selected = 0
        fields = {key.removeprefix("model.") for key in frames.arrays if key.startswith("model.")}
        self._data = SimpleNamespace()
        self._sim_model = SimpleNamespace()
        self._take()
        self._world = WorldMirror(model, self._sim_model, fields)
        self._server = new_server(host, port, web_origins=web_origins, noun="training")
        self.url = page_url(self._server)
        self._view = FittedView(self._server)
        on_click = None
        if walk_in is not None:
            on_click = self._select
        self._grid = WorldGrid(
            self._server,
            model,
            cfg,
            self._count,
            sim_model=self._sim_model,
            expanded_fields=fields,
            on_click=on_click,
            can_select=walk_in is not None,
        )
        self._robot = first_free_body(model)
        self._follow = True
        self._curve: list[tuple[float, float]] = []
        self._add_panel(walk_in)
        self._draw()
        self._look()

    def update(self) -> None:
        """Draw the newest state, if a browser is connected."""
        if self._server.get_clients() and self._take():
            self._draw()
            self._show_progress()

    def _take(self) -> bool:
        """Copy the newest frame; return True if there is one."""
        self._last, arrays = self._frames.read(self._last)
        if arrays is None:
            return False
        self._record = arrays.pop("record")
        for key, array in arrays.items():
            if key.startswith("model."):
                setattr(self._sim_model, key.removeprefix("model."), array)
            else:
                setattr(self._data, key, array)
        return True

    def _draw(self) -> None:
        """Draw all worlds."""
        from manyworlds.viewer.browser.layout import own_origins

        model = self._world.model
        world = self._world
        positions = np.empty((self._count, model.nbody, 3))
        quaternions = np.empty((self._count, model.nbody, 4))
        for i in range(self._count):
            world.load(self._data, i)
            positions[i] = world.data.xpos
            quaternions[i] = world.data.xquat
        self._grid.sync_appearance(slice(0, self._count))
        anchors = np.zeros((self._count, 3))
        if not self._grid.landscape and self._follow and self._robot:
            anchors[:, :2] = positions[:, self._robot, :2]
        elif not self._grid.landscape:
            anchors = own_origins(self._origins, positions[:, min(1, model.nbody - 1)])
        self._grid.update(positions, quaternions, anchors, self._selected)

    def _look(self) -> None:
        """Point the camera at all worlds."""
        elevation = -20.0
        if self._count > 1:
            elevation = min(float(self._cfg.elevation), -25.0)
        self._view.look(self._grid.shown_box(), self._cfg.azimuth, elevation)

    def _toggle_follow(self) -> None:
        self._follow = not self._follow

    def _select(self, world: int) -> None:
        """Select a world."""
        self._selected = world
        if self._entry is not None:
            self._entry.show(world)

    def _add_panel(self, walk_in: WorldLab | None) -> None:
        """Add progress, plot and buttons to the page."""
        from manyworlds.viewer.browser.keys import PageKeys
        from manyworlds.viewer.browser.line_plot import LinePlot

        actions = {"frame": self._look, "follow": self._toggle_follow}
        self.keys = PageKeys(self._server.gui, "training", actions)

        gui = self._server.gui
        self._text = gui.add_html("")
        self._entry = None
        if walk_in is not None:
            self._entry = EntryControls(self._server, walk_in)
        self._plot = LinePlot(gui, "mean return", ["mean return"], height=160, x_label="Iteration")
        self._show_progress()

    def _show_progress(self) -> None:
        """Show iteration, return and speed."""
        from manyworlds.viewer.browser.markup import status_html

        iteration, total, mean_return, speed = self._record
        rows = [("Worlds", f"{self._count} of this training, read-only")]
        if total:
            shown = "-"
            if not np.isnan(mean_return):
                shown = f"{mean_return:.2f}"
                if not self._curve or self._curve[-1][0] < iteration:
                    self._curve.append((iteration, mean_return))
            rows += [
                ("Iteration", f"{iteration:.0f} of {total:.0f}"),
                ("Return", shown),
                ("Speed", f"{speed:,.0f} control steps/s"),
            ]
        self._text.content = status_html(rows, name_em=5.0)
        if len(self._curve) > 1:
            self._plot.draw(*np.array(self._curve).T)
