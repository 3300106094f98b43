"""Errors of requests to a lab: a class for each family of codes.

All are `VerbError`s with a `code`, so that a program may handle errors of a `LiveLab` and of a
client in the same way.
"""

from __future__ import annotations

from manyworlds.lab.errors import VerbError


class LabError(VerbError):
    """Error of a request to a lab."""


class BadRequestError(LabError):
    """There is no such operation, or its fields are not as declared."""


class BadValueError(LabError):
    """A value is of another type, size or kind, or out of its bounds."""


class UnknownNameError(LabError):
    """The lab has nothing of this name."""


class SessionError(LabError):
    """The session ended, another client drives, or another lab answers."""


class NotReadyError(LabError):
    """The lab cannot do this in its present state."""


class NotOwnerError(NotReadyError):
    """Another owner controls the robot."""


class FileError(LabError):
    """A file of the lab's machine cannot be read or written."""


class LabTimeoutError(LabError):
    """The lab did not answer in time."""


class LabConnectionError(LabError):
    """There is no connection to a lab, or it ended."""


class LabVersionError(LabError):
    """The lab's versions do not fit this program's."""


class LabDefectError(LabError):
    """A defect of the lab's server; its log has more."""


FAMILIES: dict[type[LabError], tuple[str, ...]] = {
    BadRequestError: (
        *("bad_request", "missing_op", "unknown_op", "not_in_editor", "missing_field"),
        "wrong_transport",
    ),
    BadValueError: ("bad_value", "bad_mode", "dim_mismatch", "controller_schema_violation"),
    UnknownNameError: (
        *("unknown_articulation", "unknown_robot", "unknown_entity", "unknown_body"),
        *("unknown_state", "unknown_camera", "unknown_keyframe", "not_mocap_body", "no_joints"),
        "unknown_element",
        "replay_session_not_found",
    ),
    SessionError: ("session_expired", "another_lab"),
    NotReadyError: (
        *("no_active_manager", "not_ready", "shutting_down", "rate_limited", "bad_model"),
        *("faulted", "mode_locked_by_server", "no_gl", "no_twist_controller", "no_controller"),
        *("recording_already_active", "recording_not_active"),
    ),
    NotOwnerError: ("not_owner",),
    FileError: ("path_not_writable", "path_not_readable"),
    LabTimeoutError: ("step_timeout",),
    LabConnectionError: ("disconnected",),
    LabVersionError: ("version_mismatch",),
    LabDefectError: ("internal_error",),
}
"""Codes of each class."""
_CLASSES = {code: family for family, codes in FAMILIES.items() for code in codes}


def error_of(code: str, message: str) -> LabError:
    """Return the error of a code; `LabError` for codes that this version does not know."""
    return _CLASSES.get(code, LabError)(code, message)
