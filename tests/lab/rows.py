"""Which test proves which row of the contract of the lab (`spec/live_lab.md`).

A row is the letters of its heading and its number, or, for hotkeys, its key. Tests are named by
their file under `tests/`, several with a space between them; a row that does not make sense here,
or belongs to later work, begins with `not here: ` and says why.
"""

SCOPE = {
    "A": "A6 A11",
    "B": "",
    "C": "C2 C3 C4 C8",
    "D": "",
    "E": "",
    "F": "",
    "G": "",
    "H": "",
    "I": "",
    "J": "",
    "K": "KO KF",
    "L": "",
    "M": "",
    "T": "",
    "U": "",
    "V": "",
    "X": "",
    "Y": "",
    "Z": "Z4 Z8 Z11",
    "AA": "",
    "AB": "",
    "AD": "",
    "AE": "",
    "BA": "",
    "BB": "",
    "BG": "BG8",
    "BH": "",
    "BL": "",
}
"""Headings that the lab follows, and the rows of each that are left for later work."""

PENDING = {
    "A",
    "B",
    "C",
    "D",
    "E",
    "F",
    "G",
    "H",
    "I",
    "J",
    "K",
    "L",
    "M",
    "T",
    "U",
    "V",
    "X",
    "Y",
    "Z",
    "AA",
    "AB",
    "AD",
    "AE",
    "BA",
    "BB",
    "BG",
    "BH",
    "BL",
}
"""Headings whose rows were not gone through yet."""

ROWS = {
    # A
    # B
    # C
    # D
    # E
    # F
    # G
    # H
    # I
    # J
    # K
    # L
    # M
    # T
    # U
    # V
    # X
    # Y
    # Z
    # AA
    # AB
    # AD
    # AE
    # BA
    # BB
    # BG
    # BH
    # BL
}
