"""Write docs/lab_protocol.md from the operations of the lab's server.

Run from the project's root: python tools/write_protocol_page.py
"""

from __future__ import annotations

from pathlib import Path

from manyworlds.lab.server.protocol_page import protocol_page

PAGE = Path("docs/lab_protocol.md")


if __name__ == "__main__":
    PAGE.write_text(protocol_page())
