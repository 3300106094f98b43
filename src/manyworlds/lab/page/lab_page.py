"""Web page of a lab, in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.page.page_process import PageProcess
from manyworlds.lab.page.tabs import TABS, Tabs

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab


class LabPage:
    """Serves a page that shows and controls a lab, from a process of its own.

    The page reads snapshots from shared memory, and changes the world only by verbs, so that it
    does not delay the steps. If its process ends, the lab goes on; if the lab's process ends, the
    page shows that, and ends.

    Args:
        lab: lab to show; the page does not start or stop it.
        host: address of the page; '0.0.0.0' accepts connections from the whole network, with the
            token that `url` has.
        port: port of the page; if it is in use, the next free one is taken. See `url`.
        frame_rate: largest number of frames per second [1/s].
        collapsed: whether the panel is hidden until a user presses Tab.
        tabs: parts of each tab; see `TABS`. The page's process imports them: they are classes of
            modules, not of the program itself, or names `module:Class`.
        play_when_drawn: whether a paused lab plays as soon as a browser has drawn the world.
        token: token of a page that other machines may open; a random one if empty.
        web_origins: further origins of pages that may talk to this one, and show it in a frame,
            such as `https://hub.example.org` of a proxy or a notebook.
        network_port: port of the WebSocket of the lab's server, by which the page shows who drives,
            and drives with keys; 0 for none.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: this machine cannot serve at that address, or a part cannot be imported.
        RuntimeError: the page's process ended.
    """

    def __init__(
        self,
        lab: LiveLab,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        frame_rate: float = 30.0,
        collapsed: bool = False,
        tabs: Tabs = TABS,
        play_when_drawn: bool = False,
        token: str = "",
        web_origins: Sequence[str] = (),
        network_port: int = 0,
    ) -> None:
        self.lab = lab
        page = {
            "host": host,
            "port": port,
            "frame_rate": frame_rate,
            "collapsed": collapsed,
            "play_when_drawn": play_when_drawn,
            "token": token,
            "web_origins": list(web_origins),
            "network_port": network_port,
        }
        self._process = PageProcess(page, tabs)
        try:
            self.url = self._process.url
            """The address of the page."""
            self._process.show(lab)
        except BaseException:
            self._process.close()
            raise

    @property
    def pid(self) -> int:
        """Id of the page's process."""
        return self._process.process.pid

    @property
    def is_alive(self) -> bool:
        """True while the page's process runs."""
        return self._process.is_alive

    @property
    def errors(self) -> list[str]:
        """Tracebacks of parts that failed; these are not updated any more."""
        return self._process.errors

    def start(self) -> None:
        """Keep the page up to date, while a browser is connected."""
        self._process.start()

    def frame(self, name: str = "") -> None:
        """Point the cameras of all browsers at a robot or a body, or at everything that moves.

        The camera belongs to the page, not to the world, so that this is no verb of the lab.

        Args:
            name: name of the robot or body; everything if empty.

        Raises:
            KeyError: there is no such robot or body.
        """
        from manyworlds.lab.page.camera_controls import find_target

        self._process.look_at(find_target(self.lab.world.elements, name), follow=False)

    def follow(self, name: str = "") -> None:
        """Keep a robot or a body in the center of the view, from the next frame on.

        Args:
            name: name of the robot or body; nothing is followed if empty.

        Raises:
            KeyError: there is no such robot or body.
        """
        from manyworlds.lab.page.camera_controls import find_target

        self._process.look_at(find_target(self.lab.world.elements, name), follow=True)

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        self._process.close()
