"""Programs of others from npm."""

import base64
import gzip
import hashlib
import io
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from manyworlds.share import vendor
from manyworlds.share.vendor import NpmPackage, licenses_text, vendor_files


def packed(content: bytes) -> bytes:
    """Return an archive as npm makes it, with one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/a.wasm")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Use a fresh cache, and one package of two bytes."""
    archive = packed(b"ab")
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    package = NpmPackage(
        name="@some/one",
        version="1.2.3",
        integrity=f"sha512-{digest}",
        license="MIT",
        copyright="Some One",
        source="https://example.org",
        files={"a.wasm": "a.wasm.gz"},
    )
    monkeypatch.setattr(vendor, "PACKAGES", (package,))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "archive").write_bytes(archive)
    return tmp_path / "manyworlds" / "npm"


def test_packages_are_downloaded_once(cache, tmp_path, monkeypatch):
    """Ask npm for the pinned version, check it, and take it from the cache the next time."""
    calls = []

    def npm(command, **kwargs):
        calls.append(command)
        content = (tmp_path / "archive").read_bytes()
        Path(command[-1], "any-name.tgz").write_bytes(content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(vendor.shutil, "which", lambda name: "/bin/npm")
    monkeypatch.setattr(vendor.subprocess, "run", npm)
    for _ in range(2):
        files = vendor_files()
        assert gzip.decompress(files["a.wasm.gz"]) == b"ab"
    assert [command[1:3] for command in calls] == [["pack", "@some/one@1.2.3"]]
    assert [path.name for path in cache.iterdir()] == ["some-one-1.2.3.tgz"]
    assert "@some/one 1.2.3\n  Copyright Some One\n  License: MIT" in licenses_text()


def test_wrong_archives_are_refused(cache, monkeypatch):
    """Compare the hash of what is in the cache with the pinned one."""
    cache.mkdir(parents=True)
    (cache / "some-one-1.2.3.tgz").write_bytes(packed(b"ax"))
    with pytest.raises(ValueError, match=r"is not @some/one 1.2.3: its SHA-512 is .*delete it"):
        vendor_files()


def test_a_missing_npm_is_one_sentence(cache, monkeypatch):
    """Say what is missing and where to get it; the same for a download that fails."""
    monkeypatch.setattr(vendor.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"npm is not installed: install Node.js .*copy"):
        vendor_files()
    failed = subprocess.CompletedProcess([], 1, "", "npm error code ENOTFOUND\nmore")
    monkeypatch.setattr(vendor.shutil, "which", lambda name: "/bin/npm")
    monkeypatch.setattr(vendor.subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(ConnectionError, match=r"@some/one@1.2.3 \(npm error code ENOTFOUND\)"):
        vendor_files()


def test_pinned_packages_have_hashes_of_their_own():
    """Name each package once, with a SHA-512."""
    digests = {package.integrity for package in vendor.PACKAGES}
    assert len(digests) == len(vendor.PACKAGES) == 3
    for digest in digests:
        assert len(base64.b64decode(digest.removeprefix("sha512-"))) == 64
    assert replace(vendor.MUJOCO, version="3.15.0").archive == "mujoco-mujoco-3.15.0.tgz"
