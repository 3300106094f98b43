"""Attach server: copies worlds of a running training for other processes of the same machine.

It answers between two control steps, or at any time while the training learns. It sends copies, so
that only the edits of a visitor reach the training.
"""

from __future__ import annotations

import collections
import http.server
import json
import os
import secrets
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from manyworlds.live.memory import WorldMemory
from manyworlds.live.record import WorldRecord, WorldRecorder
from manyworlds.live.snapshot import take_snapshot
from manyworlds.utils.files import write_atomic
from manyworlds.utils.plain_archive import pack
from manyworlds.utils.web_access import WebAccess

if TYPE_CHECKING:
    import torch

    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv
    from manyworlds.live.run_edits import RunEdits, SentEdit
    from manyworlds.live.training_policy import TrainingPolicy

ATTACH_FILE = "attach.json"
"""File of the run folder with the address and the token, which only its owner can read."""
MAX_RECORDED_STEPS = 2000
MAX_RECORDED_WORLDS = 4
_ANSWER_S = 60.0
_RETRY_S = 0.005
_TOKEN_BYTES = 32
_LARGEST_EDIT = 2**22


class AttachServer:
    """Serves copies of the worlds of an environment to other processes of the same machine.

    It observes the environment, whose state and random numbers do not depend on it. It listens on a
    free port of the loopback interface, and requires a token, which stands in a file that only its
    owner can read.

    Args:
        env: the environment, or what wraps it.
        folder: run folder, which gets the file `ATTACH_FILE` until `finish`.
        task: name of the task.
        policy: the present policy; None for none.
        rollout_steps: control steps between two updates of the policy.
        edits: receiver of edits that visitors send; None refuses them.
        memory: memory of the last seconds of all worlds, which `finish` closes; None for none.
    """

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        folder: Path,
        task: str = "",
        policy: TrainingPolicy | None = None,
        rollout_steps: int = 0,
        edits: RunEdits | None = None,
        memory: WorldMemory | None = None,
    ) -> None:
        self.env = env
        """The environment."""
        self._memory = memory
        self._edits = edits
        self._sent: list[SentEdit] = []
        self._task = task
        self._policy = policy
        self._rollout_steps = rollout_steps
        self._steps = 0
        self._lock = threading.Lock()  # held while the environment steps
        self._stepping = False
        self._asked: collections.deque[_Question] = collections.deque()
        self._recorder = WorldRecorder(env)
        self._records: dict[int, tuple[WorldRecord, int]] = {}
        self._file = folder / ATTACH_FILE
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.attach_server = self
        self._server.access = WebAccess(token)
        self.address = f"127.0.0.1:{self._server.server_port}"
        """HOST:PORT that it listens at."""
        content = {"address": self.address, "token": token, "pid": os.getpid()}
        write_atomic(self._file, json.dumps(content) + "\n", mode=0o600)
        thread = threading.Thread(target=self._server.serve_forever, name="attach", daemon=True)
        thread.start()
        # The first one is the last to see the end of a step: records and memory have it then.
        env.observers.insert(0, self)

    def before_step(self, action: torch.Tensor) -> None:
        """Hold the lock, so that requests wait for the end of the step."""
        if not self._stepping:  # else an error has ended the last step
            self._lock.acquire()
            self._stepping = True
        if self._policy is not None and self._steps == 0:
            self._policy.release()

    def after_step(self) -> None:
        """Answer the requests that came during the step."""
        self._steps += 1
        if self._steps == self._rollout_steps:
            if self._memory is not None:
                self._memory.end_rollout()
            if self._policy is not None:
                self._policy.hold()
            self._steps = 0
        for env_id in self._recorder.env_ids:
            found, length = self._records[env_id]
            if len(found.steps) >= length:
                self._recorder.stop(env_id)
        self._answer()
        self._stepping = False
        self._lock.release()

    def finish(self) -> None:
        """Close the attach server; training continues. A second call does nothing."""
        if self in self.env.observers:
            self.env.observers.remove(self)
            if self._memory is not None:
                self._memory.close()
        self._server.shutdown()
        self._server.server_close()
        self._file.unlink(missing_ok=True)

    def ask(self, question: Callable[[], object]) -> object:
        """Call a function while no step is under way, from any thread, and return its result."""
        asked = _Question(question)
        self._asked.append(asked)
        waited = 0.0
        # The training answers after its present step; while it learns, this thread does.
        while not asked.done.wait(_RETRY_S):
            if self._lock.acquire(blocking=False):
                try:
                    self._answer()
                finally:
                    self._lock.release()
            waited += _RETRY_S
            if waited > _ANSWER_S and not asked.done.is_set():
                raise TimeoutError(
                    f"The training has not answered for {_ANSWER_S:g} s: its present step is not "
                    "at its end."
                )
        if asked.error is not None:
            raise asked.error
        return asked.answer

    def facts(self) -> dict[str, object]:
        """Return the task, the run, the number of worlds and the step, as plain data."""
        env = self.env
        return {
            "task": self._task,
            "run": str(self._file.parent.resolve()),
            "num_envs": env.num_envs,
            "step": env.common_step_counter,
            "recorded": self._recorder.env_ids,
        }

    def enter(self, env_id: int, record: int = 0) -> bytes:
        """Return the present moment of a world and the policy; see `unpack`.

        Args:
            env_id: index of the world.
            record: number of following control steps to record, for `steps_of`.

        Raises:
            ValueError: there is no such world, it cannot go on alone, or too much is recorded.
        """
        if not 0 <= record <= MAX_RECORDED_STEPS:
            raise ValueError(
                f"At most {MAX_RECORDED_STEPS} control steps are recorded, got {record}."
            )
        if record:
            others = [i for i in self._recorder.env_ids if i != env_id]
            if len(others) >= MAX_RECORDED_WORLDS:
                raise ValueError(
                    f"Worlds {others} are being recorded, at most {MAX_RECORDED_WORLDS} at once: "
                    "wait until their steps are made."
                )
            self._records.pop(env_id, None)
            while len(self._records) >= MAX_RECORDED_WORLDS:
                self._records.pop(next(i for i in self._records if i not in others))
            found = self._recorder.start(env_id)
            self._records[env_id] = found, record
            snapshot = found.snapshot
        else:
            snapshot = take_snapshot(self.env, env_id)
        policy = None
        if self._policy is not None:
            policy = self._policy.of_world(env_id)
        return pack({**self.facts(), "snapshot": snapshot.to_bytes(), "policy": policy})

    def steps_of(self, env_id: int) -> bytes:
        """Return the record of a world, with the steps made so far; see `WorldRecord.from_bytes`.

        Raises:
            ValueError: the world is not recorded.
        """
        if env_id not in self._records:
            raise ValueError(f"World {env_id} is not recorded: enter it with record=200.")
        return self._records[env_id][0].to_bytes()

    def send(self, edit: object) -> bytes:
        """Pass an edit on to the training; return its number, for `edit_of`.

        Raises:
            ValueError: it is no edit, or the training accepts none.
        """
        if self._edits is None:
            raise ValueError("This training accepts no edits: it has no learner.")
        if not isinstance(edit, dict):
            raise ValueError("An edit is a JSON object with its 'kind': see `edit_from_plain`.")
        self._sent.append(self._edits.send(edit))
        return json.dumps({"number": len(self._sent) - 1}).encode()

    def edit_of(self, number: int) -> bytes:
        """Return the state of an edit; see `SentEdit.describe`.

        Raises:
            ValueError: there is no edit of this number.
        """
        if not 0 <= number < len(self._sent):
            raise ValueError(f"There is no edit {number}: {len(self._sent)} were sent.")
        return json.dumps(self._sent[number].describe()).encode()

    def worst(self) -> bytes:
        """Return the worst episodes of the last rollouts as JSON, the latest last.

        Raises:
            ValueError: nothing is remembered.
        """
        ends = [
            {
                "env_id": end.env_id,
                "step": end.step,
                "ended_by": end.ended_by,
                "length": end.length,
                "episode_return": end.episode_return,
                "text": end.text,
            }
            for end in self._remembered().worst
        ]
        return json.dumps(ends).encode()

    def past_of(self, env_id: int, end: int = -1) -> bytes:
        """Return the last seconds of a world; see `WorldRecord.from_bytes`.

        Args:
            env_id: index of the world.
            end: control steps of the batch at the end of one of the worst episodes; -1 for the
                present episode.

        Raises:
            ValueError: nothing is remembered.
        """
        memory = self._remembered()
        if end < 0:
            return memory.past(env_id).to_bytes()
        for each in memory.worst:
            if (each.env_id, each.step) == (env_id, end):
                return each.record.to_bytes()
        raise ValueError(f"No episode of world {env_id} that ended after step {end} is kept.")

    def _remembered(self) -> WorldMemory:
        if self._memory is None:
            raise ValueError("This training remembers nothing: start it with --remember.")
        return self._memory

    def _answer(self) -> None:
        while self._asked:
            self._asked.popleft().call()


class _Question:
    """Function to call between two steps, and its result."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self.done = threading.Event()
        self.answer: object = None
        self.error: Exception | None = None

    def call(self) -> None:
        """Call the function; its error is for the one who asked."""
        try:
            self.answer = self._function()
        except Exception as error:
            self.error = error
        self.done.set()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    attach_server: AttachServer
    access: WebAccess


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers a request to an attach server."""

    server: _Server  # type: ignore[assignment]
    timeout = 10.0  # for a visitor that sends nothing

    def do_GET(self) -> None:
        """Answer with bytes or JSON, or with an error as text."""
        address = urlsplit(self.path)
        self._reply(
            lambda: self._answer(
                address.path, {name: int(value) for name, value in parse_qsl(address.query)}
            )
        )

    def do_POST(self) -> None:
        """Accept an edit."""
        self._reply(self._accept)

    def _reply(self, answer: Callable[[], bytes]) -> None:
        refusal = self.server.access.refusal(self.path, self.headers)
        if refusal:
            return self._send(HTTPStatus.FORBIDDEN, refusal.encode())
        try:
            self._send(HTTPStatus.OK, answer())
        except (ValueError, TypeError, TimeoutError) as error:
            self._send(HTTPStatus.BAD_REQUEST, str(error).encode())
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, text.encode())
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal belongs to the training."""

    def _accept(self) -> bytes:
        size = int(self.headers.get("Content-Length") or 0)
        if self.path != "/edit" or not 0 < size <= _LARGEST_EDIT:
            raise ValueError(f"Send an edit of at most {_LARGEST_EDIT} bytes as JSON to '/edit'.")
        return self.server.attach_server.send(json.loads(self.rfile.read(size)))

    def _answer(self, path: str, query: dict[str, int]) -> bytes:
        attach_server = self.server.attach_server
        if path == "/edit":  # the training need not answer
            return attach_server.edit_of(query.get("number", -1))
        world = query.pop("world", -1)
        calls: dict[str, Callable[[], object]] = {
            "/facts": lambda: json.dumps(attach_server.facts()).encode(),
            "/enter": lambda: attach_server.enter(world, **query),
            "/record": lambda: attach_server.steps_of(world),
            "/worst": attach_server.worst,
            "/past": lambda: attach_server.past_of(world, **query),
        }
        if path not in calls:
            raise ValueError(f"There is no '{path[:80]}': ask for {', '.join(calls)}.")
        answer = attach_server.ask(calls[path])
        assert isinstance(answer, bytes)
        return answer

    def _send(self, status: HTTPStatus, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
