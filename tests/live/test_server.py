"""Attach server of a running training, over its socket."""

from __future__ import annotations

import http.client
import json
import stat
import threading
import time

import pytest
import torch

from manyworlds.live import WorldRecord, WorldSnapshot, env_from_snapshot
from manyworlds.live.record import repeat
from manyworlds.live.server import ATTACH_FILE, MAX_RECORDED_STEPS, AttachServer
from manyworlds.utils.plain_archive import unpack
from manyworlds.utils.seeding import rng_state
from tests.live.test_fork import WORLDS, delay, make_env
from tests.waiting import PATIENCE_S


@pytest.fixture
def server(tmp_path):
    """An attach server to worlds of a quadruped with delays; nothing steps them yet."""
    server = AttachServer(make_env("Velocity-Flat-Quadruped", delay), tmp_path, "the task")
    yield server
    server.finish()


class Ask:
    """Client that knows no more than the file in the run folder."""

    def __init__(self, folder) -> None:
        self.content = json.loads((folder / ATTACH_FILE).read_text())

    def __call__(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        if headers is None:
            headers = {"Authorization": f"Bearer {self.content['token']}"}
        connection = http.client.HTTPConnection(self.content["address"], timeout=PATIENCE_S)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        result = response.status, response.read()
        connection.close()
        return result


class Steps:
    """Steps worlds in a thread of its own, as training does."""

    def __init__(self, server: AttachServer) -> None:
        self.server, self.count, self.going = server, 0, True
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while self.going:
            self.server.env.step(torch.full((WORLDS, 12), 0.1 * (self.count % 3)))
            self.count += 1

    def __enter__(self) -> Steps:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.going = False
        self.thread.join()


def test_the_file_is_private_and_goes_away(server, tmp_path):
    """Look at the file: only its owner can read it, and it ends with the training."""
    file = tmp_path / ATTACH_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    host, _, port = Ask(tmp_path).content["address"].rpartition(":")
    assert host == "127.0.0.1" and server.address.endswith(port)
    server.finish()
    assert not file.exists()
    with pytest.raises(OSError):
        http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S).connect()
    server.env.step(torch.zeros(WORLDS, 12))  # training goes on


def test_nothing_is_told_without_the_token(server, tmp_path):
    """Ask without a token, with another one, and as a web page: refused."""
    ask = Ask(tmp_path)
    assert ask("/facts", {})[0] == 403
    assert ask("/enter?world=0", {"Authorization": "Bearer wrong"})[0] == 403
    own = {"Authorization": f"Bearer {ask.content['token']}"}
    assert ask("/facts", own | {"Origin": "https://example.org"})[0] == 403
    assert ask("/facts", own)[0] == 200


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/enter?world=5", "no world 5"),
        ("/enter?world=x", "invalid literal"),
        ("/enter?world=1&speed=3", "speed"),
        (f"/enter?world=1&record={MAX_RECORDED_STEPS + 1}", "At most"),
        ("/enter?world=1&record=-1", "At most"),
        ("/record?world=1", "World 1 is not recorded"),
        ("/etc/passwd", "There is no '/etc/passwd'"),
    ],
)
def test_wrong_questions(server, tmp_path, path, reason):
    """Ask for what is not there: the answer says why, and the training goes on."""
    status, answer = Ask(tmp_path)(path)
    assert status == 400 and reason in answer.decode()
    server.env.step(torch.zeros(WORLDS, 12))


@pytest.mark.slow
def test_a_visitor_repeats_what_the_training_did(server, tmp_path):
    """Enter while worlds step in another thread: their next 200 steps are repeated to the bit."""
    ask = Ask(tmp_path)
    with Steps(server):
        content = unpack(ask("/enter?world=3&record=200")[1])
        assert json.loads(ask("/facts")[1])["recorded"] == [3]
        found = WorldRecord.from_bytes(ask("/record?world=3")[1])
        while len(found.steps) < 200:
            time.sleep(0.05)
            found = WorldRecord.from_bytes(ask("/record?world=3")[1])
        assert json.loads(ask("/facts")[1])["recorded"] == []  # it has ended by itself
    assert content["task"] == "the task" and content["num_envs"] == WORLDS
    snapshot = WorldSnapshot.from_bytes(content["snapshot"])
    assert snapshot.step == content["step"] == found.snapshot.step
    alone = env_from_snapshot(snapshot, server.env.cfg)
    assert len(list(repeat(alone, found.steps))) == 200
    alone.close()


def test_it_answers_while_nothing_steps(server, tmp_path):
    """Ask during a pause between two steps, as while the policy learns: there is an answer."""
    server.env.step(torch.zeros(WORLDS, 12))
    assert Ask(tmp_path)("/enter?world=0")[0] == 200


@pytest.mark.slow
def test_visits_change_nothing(tmp_path):
    """Step with and without visitors: the same states and random numbers."""
    ends = []
    for visited in (False, True):
        server = AttachServer(make_env("Velocity-Flat-Quadruped", delay), tmp_path)
        for i in range(40):
            if visited and i % 10 == 3:
                assert Ask(tmp_path)(f"/enter?world={i % WORLDS}&record=8")[0] == 200
            obs = server.env.step(torch.full((WORLDS, 12), 0.1 * (i % 4)))[0]
        state = server.env.sim.get_state()["state"].numpy().tobytes()
        ends.append((obs["actor"].numpy().tobytes(), state, rng_state()["torch"].tolist()))
        server.finish()
    assert ends[0] == ends[1]


def test_records_are_limited(server, tmp_path):
    """Record too many worlds at once: refused until the first records are complete."""
    ask = Ask(tmp_path)
    for world in range(4):
        assert ask(f"/enter?world={world}&record=3")[0] == 200
    status, answer = ask("/enter?world=4&record=3")
    assert status == 400 and "at most 4 at once" in answer.decode()
    for _ in range(3):
        server.env.step(torch.zeros(WORLDS, 12))
    assert ask("/enter?world=4&record=3")[0] == 200
    assert ask("/record?world=0")[0] == 400  # the oldest has made room
    assert ask("/record?world=1")[0] == 200


class Policy:
    """Policy that notes what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def of_world(self, env_id):
        return {"world": env_id}

    def hold(self):
        self.told.append("hold")

    def release(self):
        self.told.append("release")


def test_a_training_that_remembers_nothing_says_so(server):
    """Ask for the past without a memory: the answer names the option, instead of no episodes."""
    for ask in (server.worst, lambda: server.past_of(0)):
        with pytest.raises(ValueError, match="remembers nothing: start it with --remember"):
            ask()


def test_the_policy_is_held_while_it_learns(tmp_path):
    """Step two rollouts: the policy is held at the end of each, and released at the next."""
    policy = Policy()
    server = AttachServer(make_env("Cartpole-Balance"), tmp_path, "", policy, rollout_steps=3)
    for _ in range(7):
        server.env.step(torch.zeros(WORLDS, 1))
    assert policy.told == ["release", "hold"] * 2 + ["release"]
    assert unpack(Ask(tmp_path)("/enter?world=2")[1])["policy"] == {"world": 2}
    server.finish()
