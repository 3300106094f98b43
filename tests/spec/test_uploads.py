from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from manyworlds.spec import mesh_files, uploads
from manyworlds.spec.load import load_spec
from manyworlds.spec.uploads import read_upload
from tests.robots import robot_file

MODEL = b'<mujoco><worldbody><body><geom size=".1"/></body></worldbody></mujoco>'


def archive(files: dict[str, bytes]) -> bytes:
    """Return a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "folder", [pytest.param("unitree_g1", marks=pytest.mark.slow), "unitree_go1", "i2rt_yam"]
)
def test_robots(folder, tmp_path):
    """Upload the folder of a robot as an archive, and compile it."""
    names = {"unitree_g1": "g1.xml", "unitree_go1": "go1.xml", "i2rt_yam": "yam.xml"}
    root = robot_file(f"{folder}/{names[folder]}").parent
    files = {
        str(path.relative_to(root.parent)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }
    path = read_upload(f"{folder}.zip", archive(files), tmp_path)
    spec, warnings = load_spec(path)
    assert spec.compile().nmesh and not warnings


@pytest.mark.parametrize(
    "name, kept",
    [
        ("robot.xml", "robot.xml"),
        ("../../etc/robot.xml", "robot.xml"),
        ("C:\\robots\\my robot.xml", "my_robot.xml"),
        ("..xml", "_.xml"),
        (f"{'x' * 400}.urdf", f"{'x' * 100}.urdf"),
    ],
)
def test_names(name, kept, tmp_path):
    """Keep a file in a folder of its own, whatever it is called."""
    folder = tmp_path / "uploads"
    path = read_upload(name, MODEL, folder)
    assert path.name == kept and path.parent.parent == folder
    assert read_upload(name, MODEL, folder) != path
    assert [p.name for p in tmp_path.iterdir()] == ["uploads"]


def link() -> bytes:
    """Return an archive with a link to another folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        entry = zipfile.ZipInfo("model.xml")
        entry.external_attr = 0o120777 << 16
        target.writestr(entry, "/etc/passwd")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("robot.exe", b"", "is no model: upload one of .xml"),
        ("robot", b"", "is no model"),
        ("a.zip", b"garbage", "cannot be unpacked"),
        ("a.zip", archive({"model.xml": MODEL})[:-40], "cannot be unpacked"),
        ("a.zip", archive({"notes.txt": b"x"}), "has no model"),
        ("a.zip", archive({"../model.xml": MODEL}), "outside its folder: '../model.xml'"),
        ("a.zip", archive({"/model.xml": MODEL}), "outside its folder"),
        ("a.zip", archive({"a/..\\..\\model.xml": MODEL}), "outside its folder"),
        ("a.zip", archive({"C:model.xml": MODEL}), "outside its folder"),
        ("a.zip", link(), "has a link"),
        ("a.zip", archive({"model.xml": b" " * 2**22}), "grows .* times"),
        ("a.zip", archive({f"{i}.txt": b"" for i in range(5001)}), "5001 files, and 5000"),
        ("a.zip", archive({"b.xml": MODEL, "c.xml": MODEL}), "several models, b.xml, c.xml"),
    ],
)
def test_refused(name, content, message, tmp_path):
    """Refuse files that are no models or want to harm, and keep nothing of them."""
    with pytest.raises(ValueError, match=message) as raised:
        read_upload(name, content, tmp_path / "uploads")
    assert "\n" not in str(raised.value)
    assert not [path for path in tmp_path.rglob("*") if path.name != "uploads"]


def test_sizes(tmp_path, monkeypatch):
    """Refuse uploads and archives that are too large."""
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 1000)
    with pytest.raises(ValueError, match="an upload may have"):
        read_upload("a.xml", b"x" * 1001, tmp_path)
    with pytest.raises(ValueError, match="unpacked"):
        read_upload("a.zip", archive({"a.xml": b"x" * 1001}), tmp_path)


def test_a_header_that_lies(tmp_path):
    """Refuse an archive whose file is larger than it says."""
    content = bytearray(archive({"model.xml": b" " * 2000 + MODEL}))
    central = content.rfind(b"PK\x01\x02")
    content[central + 24 : central + 28] = (5).to_bytes(4, "little")
    with pytest.raises(ValueError, match="cannot be unpacked"):
        read_upload("a.zip", bytes(content), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_scene_of_several(tmp_path):
    """Open the model that includes the others."""
    scene = b'<mujoco><include file="arm.xml"/></mujoco>'
    files = {"kit/arm.xml": MODEL, "kit/table.xml": scene, "kit/assets/part.xml": MODEL}
    assert read_upload("a.zip", archive(files), tmp_path).name == "table.xml"


def test_a_mesh_in_an_archive(tmp_path):
    """Open the mesh of an archive without a model."""
    path = read_upload("a.zip", archive({"part.obj": b"v 0 0 0\n", "part.mtl": b""}), tmp_path)
    assert path.suffix in mesh_files.MESH_SUFFIXES and Path(path).with_suffix(".mtl").is_file()
