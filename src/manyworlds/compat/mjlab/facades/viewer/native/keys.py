"""Codes of keys, as GLFW and MuJoCo's window report them: `KEY_A`, `KEY_ENTER` and others."""

from __future__ import annotations

import string

_OTHERS = {
    **{"SPACE": 32, "APOSTROPHE": 39, "COMMA": 44, "MINUS": 45, "PERIOD": 46, "SLASH": 47},
    **{"SEMICOLON": 59, "EQUAL": 61, "LEFT_BRACKET": 91, "BACKSLASH": 92, "RIGHT_BRACKET": 93},
    **{"GRAVE_ACCENT": 96, "ESCAPE": 256, "ENTER": 257, "TAB": 258, "BACKSPACE": 259},
    **{"INSERT": 260, "DELETE": 261, "RIGHT": 262, "LEFT": 263, "DOWN": 264, "UP": 265},
    **{"PAGE_UP": 266, "PAGE_DOWN": 267, "HOME": 268, "END": 269, "CAPS_LOCK": 280},
    **{"KP_DECIMAL": 330, "KP_DIVIDE": 331, "KP_MULTIPLY": 332, "KP_SUBTRACT": 333},
    **{"KP_ADD": 334, "KP_ENTER": 335, "KP_EQUAL": 336, "LEFT_SHIFT": 340, "LEFT_CONTROL": 341},
    **{"LEFT_ALT": 342, "LEFT_SUPER": 343, "RIGHT_SHIFT": 344, "RIGHT_CONTROL": 345},
    **{"RIGHT_ALT": 346, "RIGHT_SUPER": 347},
}
_CODES = {
    **{f"KEY_{letter}": ord(letter) for letter in string.ascii_uppercase + string.digits},
    **{f"KEY_KP_{digit}": 320 + digit for digit in range(10)},
    **{f"KEY_F{number}": 289 + number for number in range(1, 26)},
    **{f"KEY_{name}": code for name, code in _OTHERS.items()},
}


def __getattr__(name: str) -> int:
    if name in _CODES:
        return _CODES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_CODES]
