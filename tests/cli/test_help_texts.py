"""Help texts: sentences of docstrings are not broken by the lines of the source."""

from __future__ import annotations

import pytest

from manyworlds.cli.main import main


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["lab", "--attach"], "the training remembers it (`train --remember`): it repeats"),
        (["lab"], "a world of the gallery (`manyworlds list --worlds`), a task, or a run"),
        (["train", "Cartpole-Balance"], "one place. A generated"),
        (["why"], "and with `--enter` or `--view`. The last seconds are simulated again"),
    ],
)
def test_sentences_of_the_help_are_whole(command, sentence, capsys, monkeypatch):
    """Find sentences of docstrings of several lines in the help, on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "400")
    assert main([*command, "--help"]) == 0
    assert sentence in capsys.readouterr().out
