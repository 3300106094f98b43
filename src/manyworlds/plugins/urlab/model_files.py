"""The model as files for URLab's clients."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from manyworlds.lab.errors import VerbError
from manyworlds.lab.server.operations import NotYetError, Request
from manyworlds.lab.verbs.fields import PlainDict
from manyworlds.plugins.urlab.client_model import export_model
from manyworlds.plugins.urlab.roster import Roster


class ModelFiles:
    """The model as files for clients, exported again when it has changed.

    An export takes seconds for a large model, and runs in a thread of its own.

    Args:
        waits: whether `update` waits for an export.
    """

    def __init__(self, waits: bool) -> None:
        self._waits = waits
        self._job: tuple[int, str, Future[PlainDict]] | None = None
        self._files: tuple[int, str, PlainDict] = -1, "", {}

    def update(self, request: Request, roster: Roster) -> PlainDict:
        """Return the binary model, the XML, and the files that the XML refers to.

        Args:
            request: a request of a client.
            roster: members of the world.

        Raises:
            NotYetError: the model is being exported.
            VerbError: the model cannot be exported, or clients could not tell its robots apart.
        """
        roster.check_names()
        details = roster.details
        version = int(details["model_version"])
        scene = str(details["model_hash"])
        if self._files[0] == version:
            return self._files[2]
        if self._job is None or self._job[0] != version:
            before = None
            if self._files[1] == scene:
                before = self._files[2]
            self._job = version, scene, _start(lambda: _export(request, before))
        job = self._job[2]
        if not (self._waits or job.done()):
            raise NotYetError("The model is being exported for clients: ask again in some seconds.")
        try:
            self._files = version, scene, job.result()
        finally:
            self._job = None
        return self._files[2]


def _start(export: Callable[[], PlainDict]) -> Future[PlainDict]:
    """Run an export in a thread, for which the end of the program waits.

    Python crashes where it ends while MuJoCo works in another thread.
    """
    future: Future[PlainDict] = Future()

    def run() -> None:
        try:
            future.set_result(export())
        except Exception as error:  # for the caller of `update`
            future.set_exception(error)

    threading.Thread(target=run, name="manyworlds-export", daemon=False).start()
    return future


def _export(request: Request, before: PlainDict | None) -> PlainDict:
    """Return the files of the model; XML, which some models do not have, only of another scene."""
    if before is not None:
        return {**before, "mjb": export_model(request.verbs)["mjb"]}
    try:
        return {**export_model(request.verbs, sources=True), "mjcf_error": ""}
    except VerbError as error:  # XML cannot contain everything
        sources = {"mjcf": "", "files": {}, "mjcf_error": str(error)}
        return {"mjb": export_model(request.verbs)["mjb"], **sources}
