"""Help texts: lines of the source are joined, items of lists are not."""

from __future__ import annotations

import pytest

from manyworlds.cli.help_texts import joined
from manyworlds.cli.main import main


def test_lines_are_joined_and_paragraphs_and_lists_are_kept():
    """Join lines that begin with any sign; keep empty lines and items."""
    text = """One line
    `two` and
    --three (see
    four).

    A list:
    - first
      of all
    - last
    """
    assert (
        joined(text) == "One line `two` and --three (see four).\n\nA list:\n- first of all\n- last"
    )


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["lab", "--attach"], "the training remembers it (`train --remember`): it repeats"),
        (["lab"], "a world of the gallery (`manyworlds list --worlds`), a task, or a run"),
        (["why"], "and with `--enter` or `--view`. The last seconds are simulated again"),
    ],
)
def test_sentences_of_the_help_are_whole(command, sentence, capsys, monkeypatch):
    """Find sentences of docstrings of several lines in the help, on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "400")
    assert main([*command, "--help"]) == 0
    assert sentence in capsys.readouterr().out
