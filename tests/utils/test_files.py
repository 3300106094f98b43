"""Files are whole or not there."""

import errno
import os
from pathlib import Path

import pytest

from manyworlds.utils.files import (
    atomic_path,
    check_writable,
    get_checkpoint_path,
    update_assets,
    write_atomic,
)


def test_a_failed_write_leaves_what_was_there(tmp_path):
    """Keep the old file and no temporary one when writing fails."""
    path = tmp_path / "file.txt"
    write_atomic(path, "old")
    with pytest.raises(OSError, match="No space left"), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="says so itself"), atomic_path(path):
        raise OSError("an error without a number says so itself")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_wanted_file(tmp_path, monkeypatch):
    """Name the file that was asked for, not the temporary one, and a remedy; keep the number."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "report.html"
    for write in (check_writable, lambda path: write_atomic(path, "text")):
        with pytest.raises(OSError, match="Cannot write") as caught:
            write(path)
        said = str(caught.value)
        assert f"Cannot write '{path}' (" in said and "folder that you can write" in said
        assert caught.value.errno and not caught.value.filename
    path = tmp_path / "report.html"

    def refuse(temporary, path):
        raise OSError(errno.EROFS, "Read-only file system", str(temporary), None, str(path))

    monkeypatch.setattr("manyworlds.utils.files.replace_path", refuse)
    with pytest.raises(OSError, match=r"report.html' \(Read-only") as caught:
        write_atomic(path, "text")
    assert caught.value.errno == errno.EROFS and ".report" not in str(caught.value)


def test_an_error_about_another_file_stays(tmp_path):
    """Leave an error as it is if it is about a file that is read meanwhile."""
    with pytest.raises(FileNotFoundError, match="mesh.stl'$"), atomic_path(tmp_path / "all.zip"):
        (tmp_path / "mesh.stl").read_bytes()


def test_a_place_may_be_checked_before_it_exists(tmp_path):
    """Check a file in folders that are not there yet, and leave nothing."""
    check_writable(tmp_path / "a" / "b" / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_the_final_name_appears_only_when_complete(tmp_path):
    """Write under another name in the same folder, then rename."""
    path = tmp_path / "new" / "file.bin"
    with atomic_path(path) as temporary:
        temporary.write_bytes(b"1")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_bytes() == b"1"
    assert [p.name for p in Path(path.parent).iterdir()] == ["file.bin"]


def test_update_assets(tmp_path):
    """Collect files under the names that a spec asks for."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.obj").write_bytes(b"a")
    (tmp_path / "sub" / "b.obj").write_bytes(b"b")
    assets = {"old": b""}
    update_assets(assets, tmp_path, "meshes")
    assert assets == {"old": b"", "meshes/a.obj": b"a", "meshes/sub/b.obj": b"b"}
    update_assets(assets, tmp_path)
    assert assets["a.obj"] == b"a"
    with pytest.raises(ValueError, match="nowhere"):
        update_assets(assets, tmp_path / "nowhere")


def test_the_last_checkpoint_of_the_last_run_is_found(tmp_path):
    """Choose by pattern, by name or by time; count numbers as numbers."""
    for run in ("a", "b", "c_old"):
        (tmp_path / run).mkdir()
        for i in (9, 10, 2):
            (tmp_path / run / f"model_{i}.pt").touch()
    (tmp_path / "b" / "policy.onnx").touch()
    os.utime(tmp_path / "a", (9e9, 9e9))
    assert get_checkpoint_path(tmp_path, "[abc]", "model_.*") == tmp_path / "b" / "model_10.pt"
    assert get_checkpoint_path(tmp_path) == tmp_path / "c_old" / "model_10.pt"
    assert get_checkpoint_path(tmp_path, sort_alpha=False).parent.name == "a"
    for args, message in (
        ((tmp_path / "no",), "There is no folder"),
        ((tmp_path, "z"), "No runs present in .* match 'z'"),
        ((tmp_path, "a", "x"), "No checkpoints in .* match 'x'"),
    ):
        with pytest.raises(ValueError, match=message):
            get_checkpoint_path(*args)
