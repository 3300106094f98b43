"""Differences between platforms, with the platform replaced; Linux itself where it can be."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from manyworlds.lab.readers.reader_process import ReaderProcess
from manyworlds.utils import gl, platforms
from tests.waiting import PATIENCE_S

PLATFORMS = ("linux", "darwin", "win32")
on_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@pytest.fixture
def on(monkeypatch):
    """Replace the platform."""
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "APPDATA"):
        monkeypatch.delenv(variable, raising=False)

    def replace(platform: str) -> None:
        monkeypatch.setattr(sys, "platform", platform)

    return replace


class TestFolders:
    @pytest.mark.parametrize("platform", PLATFORMS)
    def test_without_variables(self, on, platform):
        """Take folders of the user's home."""
        on(platform)
        assert platforms.cache_folder() == Path.home() / ".cache" / "manyworlds"
        assert platforms.config_folder() == Path.home() / ".config" / "manyworlds"

    @pytest.mark.parametrize("platform", PLATFORMS)
    def test_variables(self, on, monkeypatch, tmp_path, platform):
        """Follow XDG's variables everywhere, and Windows' own ones there alone."""
        on(platform)
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
        monkeypatch.setenv("APPDATA", str(tmp_path / "roaming"))
        inside = platforms.cache_folder().is_relative_to(tmp_path)
        assert inside == (platform == "win32")
        assert platforms.config_folder().is_relative_to(tmp_path) == inside
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        assert platforms.cache_folder() == tmp_path / "cache" / "manyworlds"
        assert platforms.config_folder() == tmp_path / "config" / "manyworlds"


class TestPrivateFiles:
    def test_written_once(self, tmp_path):
        """Write a file for its owner alone, and never again."""
        path = tmp_path / "new" / "key"
        assert platforms.write_private_once(path, "ä\n")
        assert not platforms.write_private_once(path, "other")
        assert platforms.read_private(path, "the key") == "ä\n"
        assert path.read_bytes().decode("utf-8").splitlines() == ["ä"]

    @on_posix
    @pytest.mark.parametrize(
        ("platform", "refused"), [("linux", True), ("darwin", True), ("win32", False)]
    )
    def test_modes(self, on, tmp_path, platform, refused):
        """Refuse a file that others can read, where modes say that."""
        path = tmp_path / "key"
        path.write_text("secret")
        path.chmod(0o666)  # what Windows always reports
        on(platform)
        if refused:
            with pytest.raises(ValueError, match=r"read the key in '.*' \(mode 666\): run `chmod"):
                platforms.read_private(path, "the key")
        else:
            assert platforms.read_private(path, "the key") == "secret"


class TestReplacement:
    @pytest.fixture
    def blocked(self, monkeypatch):
        """Let a number of replacements fail, as while a program reads the file on Windows."""
        left = [0]
        replace = os.replace

        def fail(source, target) -> None:
            left[0] -= 1
            if left[0] >= 0:
                raise PermissionError(13, "Access is denied", str(source))
            replace(source, target)

        monkeypatch.setattr(os, "replace", fail)
        return left

    def files(self, folder: Path) -> tuple[Path, Path]:
        new, old = folder / "new", folder / "old"
        new.write_text("new")
        old.write_text("old")
        return new, old

    def test_blocked_for_a_moment(self, on, tmp_path, blocked):
        """Try again on Windows while another program reads the file."""
        on("win32")
        new, old = self.files(tmp_path)
        blocked[0] = 3
        platforms.replace_path(new, old)
        assert old.read_text() == "new" and not new.exists()

    def test_blocked_for_long(self, on, tmp_path, blocked, monkeypatch):
        """Give up after a time; nothing is lost."""
        on("win32")
        monkeypatch.setattr(platforms, "_REPLACE_S", 0.1)
        new, old = self.files(tmp_path)
        blocked[0] = 10**9
        with pytest.raises(PermissionError):
            platforms.replace_path(new, old)
        assert old.read_text() == "old" and new.read_text() == "new"

    @pytest.mark.parametrize("platform", ["linux", "darwin"])
    def test_no_permission(self, on, tmp_path, blocked, platform):
        """Fail at once elsewhere, where nothing but permissions is the reason."""
        on(platform)
        new, old = self.files(tmp_path)
        blocked[0] = 1
        with pytest.raises(PermissionError):
            platforms.replace_path(new, old)
        assert blocked[0] == 0


class FakeKernel:
    """The functions of Windows' kernel32 that are used, with processes that run and have ended."""

    RUNNING, ENDED = 11, 12

    def __init__(self) -> None:
        self.priority = 0
        self.open = 0
        self.OpenProcess = self._function(self._open_process)
        self.GetCurrentProcess = self._function(lambda: 2**64 - 1)

    @staticmethod
    def _function(call):
        """Return a function that takes attributes, as those of ctypes do."""

        class Function:
            def __call__(self, *arguments):
                return call(*arguments)

        return Function()

    def _open_process(self, access: int, inherit: bool, pid: int) -> int | None:
        found = pid in (self.RUNNING, self.ENDED)
        self.open += found
        return 1000 + pid if found else None

    def GetExitCodeProcess(self, handle, code) -> int:  # noqa: N802
        code._obj.value = 259 if handle.value == 1000 + self.RUNNING else 0
        return 1

    def CloseHandle(self, handle) -> None:  # noqa: N802
        self.open -= 1

    def SetPriorityClass(self, handle, priority: int) -> int:  # noqa: N802
        assert handle.value == 2**64 - 1
        self.priority = priority
        return 1


@pytest.fixture
def kernel(on, monkeypatch) -> FakeKernel:
    """Replace Windows' kernel32, on Windows."""
    on("win32")
    fake = FakeKernel()
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: fake, raising=False)
    monkeypatch.setattr(os, "kill", None)  # it would send Ctrl-C
    return fake


class TestProcesses:
    @on_posix
    def test_exists(self):
        """Find this process, one of another user, and none for one that has ended."""
        with subprocess.Popen([sys.executable, "-c", ""]) as process:
            process.wait()
        assert platforms.process_exists(os.getpid()) and platforms.process_exists(1)
        assert not platforms.process_exists(process.pid)

    def test_exists_on_windows(self, kernel):
        """Ask for the exit code there, which running processes lack; close what was opened."""
        found = [platforms.process_exists(pid) for pid in (kernel.RUNNING, kernel.ENDED, 13)]
        assert found == [True, False, False] and kernel.open == 0

    @on_posix
    def test_priority(self):
        """Lower that of all threads of a process, those that run already, too."""
        code = (
            "import os, threading, time\n"
            "from manyworlds.utils.platforms import lower_priority, lower_thread_priority\n"
            "go = threading.Event()\n"
            "thread = threading.Thread(target=go.wait)\n"
            "thread.start()\n"
            "lower_priority(3)\n"
            "at = lambda number: os.getpriority(os.PRIO_PROCESS, number)\n"
            "assert at(0) == BEFORE + 3, at(0)\n"
            "assert at(thread.native_id) == BEFORE + 3, at(thread.native_id)\n"
            "lower_thread_priority(2)\n"
            "assert at(threading.get_native_id()) == BEFORE + 5\n"
            "assert at(thread.native_id) == BEFORE + 3\n"
            "go.set()\n"
        )
        if sys.platform != "linux":
            pytest.skip("threads have no priorities of their own")
        before = os.getpriority(os.PRIO_PROCESS, 0)
        if before > 14:
            pytest.skip("the priority is lowest already")
        subprocess.run([sys.executable, "-c", f"BEFORE = {before}\n{code}"], check=True)

    def test_priority_on_macos(self, on, monkeypatch):
        """Lower that of the process, since threads have none."""
        on("darwin")
        seen = []
        monkeypatch.setattr(os, "getpriority", lambda which, who: 4, raising=False)
        monkeypatch.setattr(os, "setpriority", lambda *a: seen.append(a), raising=False)
        platforms.lower_thread_priority(9)
        platforms.lower_priority(6)
        assert seen == [(os.PRIO_PROCESS, 0, 10)]

    @pytest.mark.parametrize(("by", "priority"), [(5, 0x4000), (10, 0x40), (19, 0x40)])
    def test_priority_on_windows(self, kernel, monkeypatch, by, priority):
        """Take one of the two lower classes."""
        for name in ("getpriority", "setpriority", "nice"):
            monkeypatch.delattr(os, name, raising=False)
        platforms.lower_thread_priority(by)
        assert kernel.priority == 0
        platforms.lower_priority(by)
        assert kernel.priority == priority

    @on_posix
    def test_interrupt(self):
        """End a program in a group of its own by Ctrl-C, and by SIGTERM."""
        # Programs in the background of a shell ignore SIGINT, and so do their children.
        code = (
            "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); "
            "print(flush=True); time.sleep(60)"
        )
        for signum in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen(
                [sys.executable, "-c", code],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                process_group=0,
                creationflags=platforms.own_group_flags(),
            ) as process:
                assert process.stdout is not None and process.stdout.readline() == "\n"
                assert os.getpgid(process.pid) == process.pid
                platforms.interrupt(process, signum)
                assert process.wait(PATIENCE_S) == -signum

    def test_interrupt_on_windows(self, on, monkeypatch):
        """Send Ctrl-Break there, the one signal that reaches another group."""
        on("win32")
        monkeypatch.setattr(signal, "CTRL_BREAK_EVENT", 1, raising=False)
        monkeypatch.setattr(signal, "SIGBREAK", signal.SIGUSR1, raising=False)
        monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0x200, raising=False)
        sent = []
        process = type("Process", (), {"send_signal": staticmethod(sent.append)})()
        platforms.interrupt(process, signal.SIGTERM)
        assert sent == [1] and platforms.own_group_flags() == 0x200
        assert platforms.stop_signals() == (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            (1, "exit code 1"),
            (-9, "SIGKILL"),
            (-99, "signal 99"),
            (3221225786, "exit code 3221225786"),
        ],
    )
    def test_exit_codes(self, code, words):
        """Name signals; Windows' codes of ends by Ctrl-C are large numbers."""
        assert platforms.describe_exit(code) == words

    def test_pages_of_the_lab_need_descriptors(self, on, monkeypatch):
        """Say at once, without starting a process, where a page cannot have shared memory."""
        on("win32")
        monkeypatch.delattr(socket, "send_fds", raising=False)
        monkeypatch.setattr(subprocess, "Popen", None)
        with pytest.raises(
            RuntimeError, match=r"The page of a live world .* win32 .* WSL 2, .*--headless"
        ):
            ReaderProcess("some.module", "page", {})


class TestTerminal:
    @pytest.mark.parametrize(("encoding", "shown"), [("cp1252", b"m ?"), ("utf-8", "m ↑".encode())])
    def test_characters(self, monkeypatch, encoding, shown):
        """Show '?' for what the encoding lacks; UTF-8 lacks nothing."""
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
        platforms.show_all_characters()
        print("m ↑", end="", flush=True)
        assert raw.getvalue() == shown

    def test_no_terminal(self, monkeypatch):
        """Accept programs without any output, such as pythonw of Windows."""
        monkeypatch.setattr(sys, "stdout", None)
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        platforms.show_all_characters()


class TestGl:
    @pytest.mark.parametrize(
        ("platform", "tried", "remedy"),
        [
            ("linux", ["egl", "osmesa"], "apt-get install"),
            ("darwin", [""], "session with a screen"),
            ("win32", [""], "driver of the graphics card"),
        ],
    )
    def test_backends(self, on, monkeypatch, platform, tried, remedy):
        """Try the backends of the platform, and name its remedy."""
        on(platform)
        for variable in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(variable, raising=False)
        seen = []
        monkeypatch.setattr(gl, "_probe", lambda backend: seen.append(backend) or "no")
        gl._choose.cache_clear()
        try:
            reason = gl.gl_available()
        finally:
            gl._choose.cache_clear()
        assert seen == tried and reason is not None and remedy in reason
        assert ("Debian" in reason) == (platform == "linux")


def test_processes_are_spawned():
    """Start processes by `spawn` alone: a fork would copy locks of threads in any state."""
    source = Path(platforms.__file__).parents[1]
    text = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    users = {path.name for path, code in text.items() if "import multiprocessing" in code}
    assert users <= {"training_view.py"}
    (view,) = (code for path, code in text.items() if path.name == "training_view.py")
    assert 'get_context("spawn")' in view
    assert not any("os.fork" in code for code in text.values())


@pytest.mark.parametrize("name", ["fcntl", "termios", "resource", "pwd", "grp", "msvcrt", "winreg"])
def test_no_module_of_one_platform_is_imported(name):
    """Import none of the modules that are missing on some platform."""
    source = Path(platforms.__file__).parents[1]
    for path in source.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        assert f"import {name}\n" not in code and f"from {name} import" not in code, path


def test_os_functions_of_posix_stay_in_one_place():
    """Call functions that Windows lacks in `platforms` alone, or where their presence is asked."""
    calls = ("os.nice", "os.setpriority", "os.getpriority", "os.kill(", "os.getpgid")
    source = Path(platforms.__file__).parents[1]
    allowed = {"platforms.py", "scheduling.py"}  # the latter returns before on all but Linux
    found = [
        (path.name, call)
        for path in source.rglob("*.py")
        if path.name not in allowed
        for call in calls
        if call in path.read_text(encoding="utf-8")
    ]
    assert found == []
