"""Checks of the machine, each where all is well and where something is not."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from manyworlds.cli import machine_checks
from manyworlds.cli.machine_checks import MachineCheck, check_disk, check_gl, check_gpu, check_ports
from manyworlds.cli.main import main
from manyworlds.utils import gl


@pytest.mark.parametrize(
    ("reason", "backend", "found"),
    [
        (None, "egl", MachineCheck("OpenGL", "egl")),
        (None, "", MachineCheck("OpenGL", "window system")),
        (
            "Cannot render images (egl: no driver): install OpenGL.",
            None,
            MachineCheck("OpenGL", "Cannot render images (egl: no driver)", "install OpenGL"),
        ),
    ],
)
def test_gl(monkeypatch, reason, backend, found):
    """Name the backend, or what is missing with the command that installs it."""
    monkeypatch.setattr(gl, "gl_available", lambda: reason)
    monkeypatch.setattr(gl, "gl_backend", lambda: backend)
    assert [*check_gl()] == [found]


@pytest.mark.slow
@pytest.mark.parametrize("value", ["osmesa", "no-backend", "off"])
def test_the_doctor_runs_with_any_backend(value):
    """Check all else where MuJoCo cannot be imported with the backend of MUJOCO_GL."""
    program = [sys.executable, "-m", "manyworlds.cli.main", "doctor"]
    environment = {**os.environ, "MUJOCO_GL": value}
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "disk of caches" in done.stdout and "OpenGL: " in done.stdout
    if value != "osmesa":  # which may be installed
        assert f"Cannot render images with MUJOCO_GL='{value}' (which" in done.stdout
        assert "note: OpenGL: " in done.stdout and "unset MUJOCO_GL" in done.stdout
        assert done.stdout.endswith("nothing else is wrong\n")


@pytest.fixture
def gpu(monkeypatch):
    """Replace what PyTorch and the system know of a GPU."""

    def replace(usable: bool, driver: bool, cuda: str | None, warp: bool = True) -> MachineCheck:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(machine_checks, "has_nvidia_driver", lambda: driver)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if warp else None)
        (finding,) = check_gpu()
        return finding

    return replace


def test_gpu(gpu):
    """Tell a GPU that works from one that lacks a build, a driver or an extra, and from none."""
    assert gpu(True, True, "12.8") == MachineCheck("GPU", "Some GPU")
    assert "pip install 'manyworlds-rl[gpu]'" in gpu(True, True, "12.8", warp=False).remedy
    assert gpu(False, False, None) == MachineCheck("GPU", "none of NVIDIA; the CPU is used")
    for_cpu = gpu(False, True, None)
    assert "a build for the CPU" in for_cpu.found and "pip install 'torch<2.14'" in for_cpu.remedy
    assert "nvidia-smi" in gpu(False, True, "12.8").remedy


def test_ports(monkeypatch):
    """Name the port that is in use, its holder, and the option for another one."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        number = holder.getsockname()[1]
        monkeypatch.setattr(machine_checks, "PAGE_PORT", number)
        found = [finding for finding in check_ports() if finding.what == f"port {number}"]
    assert len(found) == 1 and "--port" in found[0].remedy
    if sys.platform == "linux":
        assert "in use by process" in found[0].found
    assert f"port {number}" not in [finding.what for finding in check_ports()]


def test_ports_of_programs(monkeypatch):
    """Look at the ports of `lab --serve`, too."""
    monkeypatch.setattr(machine_checks, "_holder", lambda number: "" if number == 5559 else None)
    used, free = check_ports()
    assert used == MachineCheck(
        "port 5559", "in use", f"end that process, or {machine_checks._SHIFTED}"
    )
    assert free.what == "free ports" and free.found.startswith("8080, 5555") and not free.remedy
    assert "5559" not in free.found


def test_ports_of_one_process(monkeypatch):
    """Tell once of a program that holds several ports; the page has another remedy."""
    taken = {8080: " by process 7", 5555: " by process 7", 5556: " by process 7"}
    monkeypatch.setattr(machine_checks, "_holder", taken.get)
    page, programs, free = check_ports()
    assert page.what == "port 8080" and "--port NUMBER" in page.remedy
    assert programs.what == "ports 5555, 5556" and programs.found == "in use by process 7"
    assert free.found.startswith("5557")


def test_disk(monkeypatch, tmp_path):
    """Name what to choose where space is short, or nothing can be written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "there"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=50 * 10**9))
    assert [finding.remedy for finding in check_disk()] == ["", "", ""]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10**9))
    runs, caches, temporary = check_disk()
    assert "1.0 GB free" in runs.found and "--log-root FOLDER" in runs.remedy
    assert "XDG_CACHE_HOME=FOLDER" in caches.remedy and "TMPDIR=FOLDER" in temporary.remedy

    def refuse(dir: Path):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert all("cannot be written" in finding.found and finding.remedy for finding in check_disk())


def test_the_doctor_shows_all(monkeypatch, capsys):
    """Print findings and remedies; a package alone decides the exit code."""
    findings = [MachineCheck("GPU", "fine"), MachineCheck("OpenGL", "absent", "apt-get install it")]
    monkeypatch.setattr(machine_checks, "check_machine", lambda: findings)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "GPU: fine\nOpenGL: absent\n" in out and "note: OpenGL: apt-get install it" in out
    assert out.endswith("nothing else is wrong\n")
    monkeypatch.setattr(machine_checks, "check_machine", lambda: findings[:1])
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.endswith("nothing is wrong\n")


@pytest.mark.slow
def test_the_core_is_enough():
    """Run without any extra's packages."""
    code = (
        "import sys\n"
        "for name in ('zmq', 'msgpack', 'websockets', 'viser', 'rsl_rl', 'trimesh', 'warp'):\n"
        "    sys.modules[name] = None\n"
        "from manyworlds.cli.machine_checks import check_gpu, check_ports, check_disk\n"
        "print(len([*check_gpu(), *check_disk()]), [*check_ports()] is not None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "4 True\n", done.stderr
