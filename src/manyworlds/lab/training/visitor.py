"""Visitor of a running training: asks its attach server for worlds."""

from __future__ import annotations

import http.client
import json
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast
from urllib.parse import urlencode

from manyworlds.live.edits import EnvironmentEdit
from manyworlds.live.record import WorldRecord
from manyworlds.live.server import ATTACH_FILE
from manyworlds.rl.progress import EditRecord
from manyworlds.utils.plain_archive import unpack
from manyworlds.utils.platforms import read_private
from manyworlds.utils.web_access import is_local

if TYPE_CHECKING:
    from manyworlds.live.training_policy import SentPolicy

_TIMEOUT_S = 90.0
_POLL_S = 0.25


class Facts(TypedDict):
    """Facts about a running training."""

    task: str
    run: str
    """Run folder."""
    num_envs: int
    step: int
    """Control steps so far."""
    recorded: list[int]
    """Worlds whose steps are being recorded."""


class Ended(TypedDict):
    """Episode that has ended."""

    env_id: int
    step: int
    """Control steps of the training at the end."""
    ended_by: list[str]
    length: int
    """Length of the episode [control steps]."""
    episode_return: float
    text: str
    """The end in one line."""


class Outcome(TypedDict):
    """State of an edit that was sent."""

    done: bool
    """True if it was applied or refused."""
    record: dict[str, Any] | None
    """Fields of its `EditRecord`; None before it is applied, or if it was refused."""
    refusal: str
    """Reason why it was refused; empty if it was not."""


class Answer(Facts):
    """World of a running training."""

    snapshot: bytes
    """See `WorldSnapshot.from_bytes`."""
    policy: SentPolicy | None


class Visitor:
    """Asks the attach server of a running training; see `AttachServer`.

    Args:
        folder: run folder of the training.

    Raises:
        FileNotFoundError: nothing runs there, or it has no attach server.
        ValueError: the file of the attach server is damaged, or others can read it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._host, self._port, self._token = _read(folder / ATTACH_FILE)

    def facts(self) -> Facts:
        """Return task, run folder, number of worlds, and control steps so far.

        Raises:
            ConnectionError: the training has ended, or does not answer.
        """
        return json.loads(self._get("/facts"))

    def enter(self, env_id: int, record: int = 0) -> Answer:
        """Return the present moment of a world, and the policy.

        Args:
            env_id: index of the world.
            record: number of following control steps that the training records, for `record`.

        Raises:
            ConnectionError: the training has ended, or does not answer.
            ValueError: the training refuses; the message has the reason.
        """
        content = unpack(self._get("/enter", world=env_id, record=record))
        if not isinstance(content, dict) or not {"snapshot", "policy"} <= set(content):
            raise ValueError(
                f"The answer of '{self.folder}' is of another version: use the version of "
                "manyworlds that trains."
            )
        return cast("Answer", content)

    def record(self, env_id: int, steps: int, timeout_s: float = 600.0) -> WorldRecord:
        """Wait until the training has made some steps of a recorded world, and return the record.

        Args:
            env_id: index of the world.
            steps: number of control steps to wait for.
            timeout_s: longest time to wait [s].

        Raises:
            ConnectionError: the training has ended, or does not answer.
            TimeoutError: the training has not made the steps in time.
            ValueError: the world is not recorded.
        """
        end = time.monotonic() + timeout_s
        while True:
            found = WorldRecord.from_bytes(self._get("/record", world=env_id))
            if len(found.steps) >= steps:
                return found
            if time.monotonic() > end:
                raise TimeoutError(
                    f"The training has made {len(found.steps)} of {steps} steps of world {env_id} "
                    f"in {timeout_s:g} s: wait longer, or ask for fewer steps."
                )
            time.sleep(_POLL_S)

    def worst(self) -> list[Ended]:
        """Return the worst episodes that the training remembers, the latest last.

        Raises:
            ConnectionError: the training has ended, or does not answer.
            ValueError: the training remembers nothing.
        """
        return json.loads(self._get("/worst"))

    def past(self, env_id: int, end: int = -1) -> WorldRecord:
        """Return the last seconds of a world, or of one of the worst episodes; see `tell`.

        Args:
            env_id: index of the world.
            end: control steps of the training at the end of the episode, as `worst` returns them;
                -1 for the present episode.

        Raises:
            ConnectionError: the training has ended, or does not answer.
            ValueError: the training remembers nothing of it.
        """
        return WorldRecord.from_bytes(self._get("/past", world=env_id, end=end))

    def send(self, edit: EnvironmentEdit, timeout_s: float = 600.0) -> EditRecord:
        """Send an edit, and wait until the training has applied it after its present iteration.

        Args:
            edit: the edit.
            timeout_s: longest time to wait [s].

        Raises:
            ConnectionError: the training has ended, or does not answer.
            TimeoutError: the iteration has not ended in time; the edit still waits.
            ValueError: the edit is refused; the message has the reason.
        """
        end = time.monotonic() + timeout_s
        number = self.post(edit)
        state = self.outcome(number)
        while not state["done"]:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"The training has not finished its iteration in {timeout_s:g} s: the edit "
                    f"'{edit.text}' still waits."
                )
            time.sleep(_POLL_S)
            state = self.outcome(number)
        if state["record"] is None:
            raise ValueError(state["refusal"])
        return EditRecord(**state["record"])

    def post(self, edit: EnvironmentEdit) -> int:
        """Send an edit, and return its number at once, for `outcome`.

        Raises:
            ConnectionError: the training has ended, or does not answer.
            ValueError: the training accepts no such edits.
        """
        content = json.dumps(edit.plain()).encode()
        return json.loads(self._ask("POST", "/edit", content))["number"]

    def outcome(self, number: int) -> Outcome:
        """Return what has become of an edit.

        Raises:
            ConnectionError: the training has ended, or does not answer.
            ValueError: there is no such edit.
        """
        return json.loads(self._get("/edit", number=number))

    def _get(self, path: str, **query: int) -> bytes:
        return self._ask("GET", f"{path}?{urlencode(query)}")

    def _ask(self, method: str, address: str, body: bytes | None = None) -> bytes:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            headers = {"Authorization": f"Bearer {self._token}"}
            connection.request(method, address, body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError(
                f"The training in '{self.folder}' does not answer ({error}): it has ended, or has "
                "just been killed."
            ) from None
        finally:
            connection.close()
        if response.status != HTTPStatus.OK:
            raise ValueError(content.decode(errors="replace"))
        return content


def running_trainings(log_root: Path) -> list[Path]:
    """Return the run folders of trainings with an attach server that answers, the newest first.

    Args:
        log_root: folder of all runs.
    """
    files = sorted(log_root.glob(f"*/*/{ATTACH_FILE}"), key=_age)
    found = []
    for file in files:
        try:
            Visitor(file.parent).facts()
        except (ValueError, OSError):  # of a training that was killed
            continue
        found.append(file.parent)
    return found


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> tuple[str, int, str]:
    """Return host, port and token."""
    damaged = ValueError(f"'{path}' is damaged: start the training again, or delete the file.")
    try:
        text = read_private(path, "the token of a training", "start the training again")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"No training that can be entered runs in '{path.parent}': start it with `manyworlds "
            "train TASK --enter`, or with --view."
        ) from None
    except UnicodeDecodeError:
        raise damaged from None
    try:
        content = json.loads(text)
        host, _, port = content["address"].rpartition(":")
        number = int(port)
        token = str(content["token"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise damaged from None
    if not is_local(host):
        raise ValueError(
            f"'{path}' names another machine ({host}), where this training does not run: start it "
            "again."
        )
    return host, number, token
