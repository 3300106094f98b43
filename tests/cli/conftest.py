"""What holds in all tests of the commands."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
import rich.markup


@pytest.fixture(autouse=True)
def no_markup(monkeypatch):
    """Fail where text of users, data or units would pass as markup of rich."""
    render = rich.markup.render

    def strict(markup: str, *args: Any, **options: Any) -> object:
        is_ours = not any("/viser/" in frame.filename for frame in traceback.extract_stack())
        assert not is_ours or "[" not in markup, f"{markup!r} is taken for markup"
        return render(markup, *args, **options)

    monkeypatch.setattr("rich.console.render_markup", strict)
    monkeypatch.setattr("rich.text.Text.from_markup", strict)
