"""First cells of the notebooks: title, how to install the package, and the badge of Colab.

Colab opens files of GitHub, so that the badge needs the repository's address: that of `Repository`
in `project.urls` of `pyproject.toml`. Without one there is no badge.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDER = Path("examples")
_GITHUB = "https://github.com/"
_COLAB = "https://colab.research.google.com"


def notebooks() -> dict[Path, str]:
    """Return the content of each notebook, by its path from the project's root."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        urls = tomllib.load(file)["project"].get("urls", {})
    paths = sorted(path.relative_to(ROOT) for path in (ROOT / _FOLDER).glob("*.ipynb"))
    return {path: with_badge((ROOT / path).read_text(), path, urls) for path in paths}


def with_badge(text: str, path: Path, urls: dict[str, str]) -> str:
    """Return a notebook whose first cell has the badge, if there is an address.

    Args:
        text: the notebook.
        path: its path from the project's root.
        urls: addresses of the project, by the names that `pyproject.toml` gives them.

    Raises:
        ValueError: the repository is not on GitHub.
    """
    content = json.loads(text)
    title = [line for line in content["cells"][0]["source"] if _COLAB not in line]
    if title[1:2] == ["\n"] and title[2:3] == ["\n"]:  # a line that a former badge left
        del title[1]
    content["cells"][0]["source"] = [title[0], *_badge(path, urls), *title[1:]]
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _badge(path: Path, urls: dict[str, str]) -> list[str]:
    if "Repository" not in urls:
        return []
    address = urls["Repository"].rstrip("/").removesuffix(".git")
    if not address.startswith(_GITHUB):
        raise ValueError(
            f"'Repository' of project.urls is '{address}', but Colab opens files of {_GITHUB} only."
        )
    place = f"{_COLAB}/github/{address.removeprefix(_GITHUB)}/blob/main/{path.as_posix()}"
    return ["\n", f"[![Open in Colab]({_COLAB}/assets/colab-badge.svg)]({place})\n"]
