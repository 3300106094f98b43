"""Token and Origin of requests."""

from __future__ import annotations

import pytest

from manyworlds.utils.web_access import WebAccess, is_local, read_token, served_at

TOKEN = "t" * 43


def test_tokens_come_in_three_ways():
    """Give the token in the address, in a cookie, as a bearer token: each opens; others do not."""
    access = WebAccess(TOKEN)
    assert "needs its token" in access.refusal("/", {})
    for target, headers in (
        (f"/?a=1&token={TOKEN}", {}),
        ("/", {"Cookie": f"x=1; manyworlds_token_8080={TOKEN}"}),
        ("/", {"Cookie": f"manyworlds_token_8081=old; manyworlds_token_8080={TOKEN}"}),
        ("/", {"Authorization": f"Bearer {TOKEN}"}),
    ):
        assert access.refusal(target, headers) == ""
    for target, headers in (
        (f"/{TOKEN}", {}),
        (f"/?token={TOKEN[:-1]}", {}),
        ("/?token=", {}),
        ("/?token=\u00e9\ud800", {}),
        ("/", {"Cookie": f"other={TOKEN}"}),
        ("/", {"Authorization": f"Basic {TOKEN}"}),
    ):
        assert "needs its token" in access.refusal(target, headers)
    assert access.refused == {"token": 7}


@pytest.mark.parametrize(
    ("token", "origin", "host", "opens"),
    [
        ("", "http://127.0.0.1:8080", "127.0.0.1:5580", True),
        ("", "http://localhost:8080", "localhost:5580", True),
        ("", "http://[::1]:8080", "[::1]:5580", True),
        ("", "https://lab.example.org", "127.0.0.1:5580", True),
        ("", "http://localhost:8888", "localhost:5580", False),
        ("", "http://localhost:8080", "127.0.0.1:5580", False),
        ("", "http://localhost:9000", "localhost:9000", True),
        ("", "https://lab.example.org", "lab.example.org", True),
        ("", "http://lab.example.org:8080", "lab.example.org:5580", True),
        (TOKEN, "http://robot:8080", "robot:5580", True),
        (TOKEN, "http://robot:9000", "robot:9000", True),
        (TOKEN, "http://evil.example:8080", "robot:5580", False),
        (TOKEN, "null", "robot:5580", False),
        (TOKEN, "http://robot:99999999", "robot:5580", False),
        (TOKEN, "", "", False),
    ],
)
def test_origins(token, origin, host, opens):
    """Ask from pages of several origins: own ones open, with any name beyond loopback only."""
    access = WebAccess(token, ["https://Lab.example.org/"])
    access.ports.add(8080)
    text = access.refusal(f"/?token={token}", {"Origin": origin, "Host": host})
    assert (text == "") == opens and access.refused["origin"] == (not opens)
    assert opens or f"Pages of '{origin}' may not" in text


@pytest.mark.parametrize(
    ("host", "opens"),
    [
        ("localhost", True),
        ("LOCALHOST:9000", True),
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("lab.example.org:8443", True),
        ("evil.example:8080", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("evil@localhost", False),
        ("localhost:8080#", False),
        ("localhost\r\n", False),
        ("localhost:99999999", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_hosts(host, opens):
    """Ask under several names: without a token, only those of this machine and named ones open."""
    access = WebAccess("", ["https://lab.example.org"])
    text = access.refusal("/", {"Host": host})
    assert (text == "") == opens and access.refused["host"] == (not opens)
    assert opens or f"is not known as '{host}'" in text
    assert WebAccess(TOKEN).refusal(f"/?token={TOKEN}", {"Host": host}) == ""


def test_a_token_is_kept_in_a_private_file(tmp_path):
    """Read a token twice: it is random, the same, and for its owner only; others are refused."""
    path = tmp_path / "new" / "token"
    token = read_token(path)
    assert len(token) >= 43 and read_token(path) == token != read_token(tmp_path / "other")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(ValueError, match=r"Other users can read the token .*mode 644.*chmod 600"):
        read_token(path)
    path.write_text("short")
    path.chmod(0o600)
    with pytest.raises(ValueError, match="no token of at least 16"):
        read_token(path)


def test_addresses_of_this_machine():
    """Compare names and addresses: only those of loopback are local."""
    assert all(map(is_local, ("localhost", "127.0.0.1", "127.8.8.8", "::1")))
    assert not any(map(is_local, ("0.0.0.0", "::", "192.168.0.2", "robot", "localhost.evil", "")))


def test_a_page_says_that_its_port_was_in_use():
    """Name the port that was asked for, if it is not that of the address."""
    assert served_at("http://127.0.0.1:8080", 8080) == "http://127.0.0.1:8080"
    assert served_at("http://[::1]:8081/?token=a", 8080).endswith("=a (port 8080 is in use)")
