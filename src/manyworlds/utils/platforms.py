"""Differences between Linux, macOS and Windows: folders, private files, processes, terminals.

Windows has no modes of files, no priorities in `os`, no signals between processes but Ctrl-C and
Ctrl-Break, and it refuses to replace a file that another program reads.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_REPLACE_S = 2.0  # time for which a file that another program reads may block its replacement
_REPLACE_PAUSE_S = 0.02
_STILL_ACTIVE = 259  # exit code of a process of Windows that has none yet
_QUERY_LIMITED = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION
_BELOW_NORMAL = 0x4000  # BELOW_NORMAL_PRIORITY_CLASS
_IDLE = 0x40  # IDLE_PRIORITY_CLASS
_MUCH_NICER = 10  # niceness from which Windows' class is the lowest


def is_windows() -> bool:
    """Return True on Windows."""
    return sys.platform == "win32"


def is_linux() -> bool:
    """Return True on Linux."""
    return sys.platform.startswith("linux")


def cache_folder() -> Path:
    """Return the user's folder for what can be computed or downloaded again.

    It is `manyworlds` in `$XDG_CACHE_HOME` if this is set, else in `%LOCALAPPDATA%` on Windows and
    in `~/.cache` elsewhere.
    """
    return _user_folder("XDG_CACHE_HOME", "LOCALAPPDATA", ".cache")


def config_folder() -> Path:
    """Return the user's folder for settings and keys.

    It is `manyworlds` in `$XDG_CONFIG_HOME` if this is set, else in `%APPDATA%` on Windows and in
    `~/.config` elsewhere.
    """
    return _user_folder("XDG_CONFIG_HOME", "APPDATA", ".config")


def _user_folder(variable: str, on_windows: str, elsewhere: str) -> Path:
    base = os.environ.get(variable)
    if not base and is_windows():
        base = os.environ.get(on_windows)
    return Path(base or Path.home() / elsewhere) / "manyworlds"


def write_private_once(path: Path, text: str) -> bool:
    """Write a file that only its owner can read, unless it is there; return True if written.

    On Windows, the folder's access list decides: files below the user's profile are private.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True


def read_private(
    path: Path, what: str, renewal: str = "delete the file, which is then made again"
) -> str:
    """Return the text of a file that only its owner can read.

    Args:
        path: the file.
        what: words for the content, such as "the token", for the error.
        renewal: words for how to get another content, which nobody else has read.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: others can read the file.
    """
    with path.open(encoding="utf-8") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        text = file.read()
    if mode & 0o077 and not is_windows():  # where the mode says nothing about others
        raise ValueError(
            f"Other users can read {what} in '{path}' (mode {mode:o}): run `chmod 600 {path}`, or "
            f"{renewal}."
        )
    return text


def replace_path(source: Path, target: Path) -> None:
    """Rename a file, in place of the one at `target` if there is one, or a folder.

    On Windows, a program that reads one of them, such as a virus scanner, blocks this for a
    moment; then it is tried again for 2 s.

    Raises:
        OSError: the path cannot be renamed.
    """
    until = time.monotonic() + _REPLACE_S
    while True:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if not is_windows() or time.monotonic() > until:
                raise
            time.sleep(_REPLACE_PAUSE_S)


def process_exists(pid: int) -> bool:
    """Return True if a process with this number runs, of any user."""
    if is_windows():  # where `os.kill(pid, 0)` sends Ctrl-C
        return _windows_process_exists(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _windows_process_exists(pid: int) -> bool:
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # pyright: ignore[reportAttributeAccessIssue]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(_QUERY_LIMITED, False, pid)
    if not handle:
        return False
    try:
        code = ctypes.c_ulong()
        known = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
        return bool(known) and code.value == _STILL_ACTIVE
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


def lower_priority(by: int) -> None:
    """Lower the priority of this process and of all of its threads.

    Args:
        by: difference of the niceness; Windows knows two lower classes, for less than 10 and more.
    """
    if is_windows():
        import ctypes

        kernel = ctypes.WinDLL("kernel32")  # pyright: ignore[reportAttributeAccessIssue]
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        chosen = _IDLE if by >= _MUCH_NICER else _BELOW_NORMAL
        kernel.SetPriorityClass(ctypes.c_void_p(kernel.GetCurrentProcess()), chosen)
        return
    priority = os.getpriority(os.PRIO_PROCESS, 0) + by
    if not is_linux():
        os.setpriority(os.PRIO_PROCESS, 0, priority)
        return
    for thread in threading.enumerate():  # each has its own
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, thread.native_id or 0, priority)


def limit_memory(most: int) -> None:
    """Limit the memory that this process may allocate [byte]; nothing happens on Windows."""
    if is_windows():
        return
    resource: Any = importlib.import_module("resource")  # which Windows does not have
    _, bound = resource.getrlimit(resource.RLIMIT_DATA)
    if bound == resource.RLIM_INFINITY:
        bound = most
    resource.setrlimit(resource.RLIMIT_DATA, (min(bound, most), bound))


def lower_thread_priority(by: int) -> None:
    """Lower the priority of the calling thread, where a thread has its own: on Linux."""
    if is_linux():
        with contextlib.suppress(OSError):
            identity = threading.get_native_id()
            priority = os.getpriority(os.PRIO_PROCESS, identity)
            os.setpriority(os.PRIO_PROCESS, identity, priority + by)


def own_group_flags() -> int:
    """Return the `creationflags` of a program to which a terminal sends no Ctrl-C.

    `process_group=0` does this elsewhere, where the flags are 0. The caller passes Ctrl-C on with
    `interrupt`.
    """
    return subprocess.CREATE_NEW_PROCESS_GROUP if is_windows() else 0  # pyright: ignore[reportAttributeAccessIssue]


def interrupt(process: subprocess.Popen[str], signum: int = signal.SIGINT) -> None:
    """Send a signal that asks a program to end well: SIGINT or SIGTERM; Ctrl-Break on Windows."""
    if is_windows():
        signum = signal.CTRL_BREAK_EVENT  # pyright: ignore[reportAttributeAccessIssue]
    process.send_signal(signum)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask a program to end: SIGINT, SIGTERM, and Ctrl-Break on Windows."""
    if is_windows():
        return (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)  # pyright: ignore[reportAttributeAccessIssue]
    return (signal.SIGINT, signal.SIGTERM)


def describe_exit(code: int) -> str:
    """Return words for the exit code of a process, such as "SIGKILL" or "exit code 1"."""
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:  # a number without a name
        return f"signal {-code}"


def show_all_characters() -> None:
    """Let output show '?' for characters that its encoding lacks, in place of an error.

    On Windows, the output of a program into a pipe has an encoding of few characters.
    """
    for stream in (sys.stdout, sys.stderr):
        encoding = str(getattr(stream, "encoding", None) or "utf-8")
        if isinstance(stream, io.TextIOWrapper) and "utf" not in encoding.lower():
            stream.reconfigure(errors="replace")
