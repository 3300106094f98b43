"""Controls of the camera: framing, and following what a policy controls."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import mujoco

from manyworlds.lab.errors import near
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.robots.control import POLICY
from manyworlds.lab.world.elements import RobotElements
from manyworlds.lab.world.model_facts import element_names
from manyworlds.viewer.browser.cameras import FOVY, move_camera
from manyworlds.viewer.browser.widgets import add_choice

if TYPE_CHECKING:
    import viser

_FREE: str = "free view"
_PERIOD_S = 0.25


class CameraPart:
    """Buttons that frame everything or the selected body; follows a robot with a policy.

    Args:
        ctx: context of the page.
    """

    period = _PERIOD_S

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        self._followed = False
        actions = {"All": self.frame_all, "Selected": self.frame_selected}
        gui = ctx.gui
        self.choice = add_choice(gui, "Frame", actions, ctx.attempt)
        options: tuple[str, ...] = (_FREE,)
        self.through = gui.add_dropdown(
            "Look through",
            options,
            hint="A camera of the model; only this browser's view.",
        )
        self._through: dict[int, str] = {}
        """Cameras that browsers look through, by the id of the browser."""
        self.through.on_update(lambda event: ctx.attempt(lambda: self._choose(event.client)))
        self.picture = gui.add_button("Save a picture", hint="Of the view, as it is now.")
        self.picture.on_click(lambda event: ctx.attempt(lambda: self._save(event.client)))
        self.renew()

    def renew(self) -> list[str]:
        """Keep what is followed, and list the cameras of the new world."""
        names = [name for name in element_names(self._ctx.lab.model, "cam") if name]
        self.through.options = (_FREE, *names)
        self.through.visible = bool(names)
        self._through = {each: name for each, name in self._through.items() if name in names}
        return []

    def frame_all(self) -> None:
        """Point all cameras at everything that moves, and the floor below it."""
        self._ctx.view.look(self._ctx.lab.snapshot, move_open=True)

    def frame_selected(self) -> None:
        """Point all cameras at the selected body.

        Raises:
            ValueError: no body is selected.
        """
        if not self._ctx.body:
            raise ValueError("No body is selected: click one, or choose it in the tab World.")
        self._ctx.view.look(self._ctx.lab.snapshot, self._ctx.body, move_open=True)

    def frame(self) -> None:
        """Point all cameras at the selected body, or at everything."""
        (self.frame_selected if self._ctx.body else self.frame_all)()

    def update(self, snapshot: Snapshot) -> None:
        """Follow the first robot that a policy controls, once, unless a user follows a body."""
        self._look(snapshot)
        if self._followed:
            return
        for name, robot in self._ctx.lab.facts.robots.items():
            if robot.owner != POLICY:
                continue
            self._followed = True
            if not self._ctx.view.follow:
                self._ctx.view.follow = self._root_of(name)
            return

    def _choose(self, client: viser.ClientHandle | None) -> None:
        """Let one browser look through the chosen camera from now on, or as before."""
        if client is None:  # the program lists other cameras
            return
        name = self.through.value
        fovy = FOVY
        if name == _FREE:
            self._through.pop(client.client_id, None)
            self._ctx.view.look_from(client, self._ctx.lab.snapshot)
        else:
            self._through[client.client_id] = name
            fovy = float(self._ctx.lab.model.camera(name).fovy[0])
        client.camera.fov = math.radians(fovy)
        self.period = 0.0 if self._through else _PERIOD_S

    def _look(self, snapshot: Snapshot) -> None:
        """Put the views of browsers where the cameras are that they look through."""
        if not self._through:
            return
        model = self._ctx.lab.model
        clients = self._ctx.server.get_clients()
        for browser, name in list(self._through.items()):
            if browser not in clients:
                self._through.pop(browser, None)
                continue
            camera = model.camera(name).id
            pos = snapshot.cam_xpos[camera] + self._ctx.view.offset
            forward = -snapshot.cam_xmat[camera].reshape(3, 3)[:, 2]
            move_camera(clients[browser], pos, pos + model.stat.extent * forward)

    def _save(self, client: viser.ClientHandle | None) -> None:
        """Send a browser a picture of its view."""
        from PIL import Image

        assert client is not None  # only clients click
        image = client.get_render(client.camera.image_height, client.camera.image_width)
        file = io.BytesIO()
        Image.fromarray(image).save(file, "png")
        name = f"picture_{self._ctx.lab.snapshot.time:.3f}s.png"
        client.send_file_download(name, file.getvalue(), save_immediately=True)

    def toggle_follow(self) -> None:
        """Follow the selected robot with the camera, or stop following.

        Raises:
            ValueError: no robot can be followed.
        """
        self._followed = True
        if self._ctx.view.follow:
            self._ctx.view.follow = 0
            return
        root = self._root_of(self._ctx.robot) if self._ctx.robot else 0
        if not root:
            raise ValueError("There is no floating robot to follow: choose a body under Follow.")
        self._ctx.view.follow = root

    def _root_of(self, robot: str) -> int:
        return _floating_root(self._ctx.lab.elements, robot)


def find_target(elements: RobotElements, name: str) -> int:
    """Return the id of a body to look at: the named one, or the root of a robot; 0 if empty.

    Args:
        elements: elements of the world by the robot that they belong to.
        name: name of the robot or body.

    Raises:
        KeyError: there is no such robot or body, or the robot has no body.
    """
    if not name:
        return 0
    names = element_names(elements.model, "body")
    robots = elements.robots
    if name in robots:
        own = elements.ids(name, "body").tolist()
        if not own:
            raise KeyError(f"'{name}' has no body to look at: leave the name out to see all.")
        return _floating_root(elements, name) or own[0]
    if name not in names:
        known = near(name, [*robots, *names], f": choose one of {', '.join(robots)}, or a body.")
        raise KeyError(f"There is no robot or body '{name}'{known}")
    return names.index(name)


def _floating_root(elements: RobotElements, robot: str) -> int:
    """Return the body of a robot's free joint; 0 if its first joint is another one."""
    model = elements.model
    for body in elements.ids(robot, "body").tolist():
        joint = int(model.body_jntadr[body])
        if joint >= 0:
            free = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
            return body if free else 0
    return 0
