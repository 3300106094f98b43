"""Description of the package on PyPI: the README, with links that lead into the repository.

Everything else is in `pyproject.toml`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

_RELATIVE_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)")


def describe(readme: str, repository: str | None, version: str) -> str:
    """Return a README with links to the files of a release.

    Args:
        readme: the README, whose links are relative.
        repository: address of the repository, as `project.urls` has it. Without one, links become
            their texts, and pictures are left out.
        version: version of the release, whose tag begins with `v`.
    """

    def lead(match: re.Match[str]) -> str:
        picture, text, path = match.groups()
        if repository is None:
            return "" if picture else text
        kind = "raw" if picture else "blob"
        return f"{picture}[{text}]({repository.rstrip('/')}/{kind}/v{version}/{path})"

    return _RELATIVE_LINK.sub(lead, readme)


if __name__ == "__main__":
    root = Path(__file__).parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (root / "README.md").read_text(encoding="utf-8")
    setup(
        long_description=describe(
            text, project.get("urls", {}).get("Repository"), project["version"]
        ),
        long_description_content_type="text/markdown",
    )
