"""What is changed in viser's internals: events that any thread may set, and a version that fits."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque

import pytest

from manyworlds.viewer.browser.viser_internals import AnyThreadEvent
from tests.browser import free_port


def test_only_the_loop_wakes_those_that_wait():
    """Set the event in another thread: it is set, and those that wait are the loop's alone."""
    seen = []

    class Waiters(deque):
        def __iter__(self):
            seen.append(threading.get_ident())
            return super().__iter__()

    async def check(event: AnyThreadEvent) -> None:
        event._waiters = Waiters()  # type: ignore[attr-defined]
        tasks = [asyncio.create_task(event.wait()) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.to_thread(event.set)
        assert event.is_set() and not any(task.done() for task in tasks)
        event.set()
        await asyncio.wait_for(asyncio.gather(*tasks), 10.0)
        event.clear()
        assert not event.is_set()
        await asyncio.to_thread(event.set)
        assert await event.wait()
        event.clear()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(event.wait(), 0.01)

    asyncio.run(check(AnyThreadEvent()))
    assert seen == [threading.get_ident()]


def test_pages_use_it():
    """Start a page: its messages have such an event."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.viewer.browser.server import new_server, stop_server

    for _ in range(2):
        server = new_server("127.0.0.1", free_port())
        buffer = server._websock_server.get_message_buffer()
        assert isinstance(buffer.message_event, AnyThreadEvent)
        assert type(buffer).__mro__[1].__module__.startswith("viser.")
        stop_server(server)


@pytest.mark.parametrize("missing", ["AsyncMessageBuffer", "module"])
def test_another_viser_is_refused(monkeypatch, missing):
    """Take away what is changed: no page is opened, and one sentence says which viser fits."""
    infra = pytest.importorskip("viser.infra._infra", reason="needs the extra 'lab'")
    from manyworlds.viewer.browser import viser_internals
    from manyworlds.viewer.browser.server import new_server

    if missing == "module":
        monkeypatch.setitem(sys.modules, "viser.infra._infra", None)
    else:
        monkeypatch.delattr(infra, missing)
    first_use = viser_internals.change_viser.__wrapped__  # it was changed before in this program
    monkeypatch.setattr("manyworlds.viewer.browser.server.change_viser", first_use)
    with pytest.raises(RuntimeError, match=r"^viser .* has other internals .*'viser>=1.1,<1.2'"):
        new_server("127.0.0.1", free_port())
