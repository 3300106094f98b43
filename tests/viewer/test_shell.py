"""HTML around pages: title, styles, and the state that browsers ask for."""

from __future__ import annotations

import json
import urllib.request

import pytest

from tests.browser import free_port


def read(url: str) -> tuple[str, str]:
    """Type and text of an answer."""
    with urllib.request.urlopen(url, timeout=30.0) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


@pytest.fixture
def serve():
    """Start pages, which end with the test."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.viewer.browser.server import new_server, stop_server

    opened = []

    def start(port: int):
        server = new_server("127.0.0.1", port)
        opened.append(server)
        return server

    yield start
    for server in opened:
        stop_server(server)


def test_a_page_has_the_name_of_what_it_shows(serve):
    """Name a page: its HTML has that title, escaped, viser's program, and our icon and script."""
    from manyworlds.viewer.browser.server import entitle, page_url

    server = serve(free_port())
    entitle(server, "a <b> world")
    kind, text = read(page_url(server))
    assert kind.startswith("text/html")
    assert "<title>a &lt;b&gt; world</title>" in text
    assert "<title>Viser</title>" not in text and "%231971c2" in text
    assert "The ${noun} has ended" in text and '})\n("lab");' in text
    assert 'id="root"' in text, "viser's page follows"
    kind, news = read(f"{page_url(server)}/lab-news")
    assert kind.startswith("application/json")
    assert json.loads(news)["title"] == "a <b> world"


def test_a_new_start_can_be_told(serve):
    """Ask two pages twice: each keeps its start, which differs from that of the other."""
    from manyworlds.viewer.browser.server import page_url

    starts = []
    for _ in range(2):
        url = f"{page_url(serve(free_port()))}/lab-news"
        first, again = (json.loads(read(url)[1])["start"] for _ in range(2))
        assert first == again
        starts.append(first)
    assert starts[0] != starts[1]


def test_another_page_of_viser_is_refused(monkeypatch):
    """Take viser's title away: no page is opened, and one sentence says which viser fits."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.viewer.browser import shell
    from manyworlds.viewer.browser.server import new_server

    monkeypatch.setattr(shell, "_TITLE", "<title>Other</title>")
    with pytest.raises(RuntimeError, match="install 'viser>=1.1,<1.2'"):
        new_server("127.0.0.1", free_port())
