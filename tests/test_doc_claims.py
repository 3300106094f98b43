"""Names, places and limits that the pages state are those of the code."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from manyworlds.lab.verbs import VERBS
from manyworlds.spec import mesh_files, model_files, uploads

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
PLACEHOLDER = "manyworlds.a.b"


def exists(name: str) -> bool:
    """Return True if a dotted name leads to a module, an attribute, or a field of a dataclass."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if part in getattr(found, "__dataclass_fields__", {}):
                continue
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES)
def test_names_of_this_package_exist(page):
    """Look up each dotted name, such as `manyworlds.rl.OnnxPolicy`."""
    names = set(re.findall(r"`(manyworlds(?:\.\w+)+)(?:\([^`]*\))?`", PAGES[page]))
    assert sorted(name for name in names - {PLACEHOLDER} if not exists(name)) == []
    assert not exists("manyworlds.rl.Missing") and not exists("manyworlds.missing.Thing")


@pytest.mark.parametrize("page", PAGES)
def test_terms_that_pages_name_exist(page):
    """Look up each `mdp.name` among the general terms."""
    mdp = importlib.import_module("manyworlds.envs.mdp")
    names = set(re.findall(r"(?<![\w.])mdp\.(\w+)", PAGES[page]))
    assert sorted(name for name in names if not hasattr(mdp, name)) == []


def test_parts_of_the_lab_are_in_the_tab_that_pages_name():
    """Find each "*Part* in the tab *Tab*" in the sources of that tab."""
    pytest.importorskip("viser", reason="the page needs the extra 'lab'")
    from manyworlds.lab.page.tabs import TABS

    named = [
        (page, *match)
        for page, text in PAGES.items()
        for match in re.findall(r"\*([^*\n]+)\*\s+in\s+the\s+(?:lab's\s+)?tab\s+\*(\w+)\*", text)
    ]
    assert len(named) >= 6
    for page, part, tab in named:
        modules = [entry.partition(":")[0] for entry in TABS[tab] if isinstance(entry, str)]
        sources = [inspect.getsource(importlib.import_module(module)) for module in modules]
        assert any(f'"{part}' in source for source in sources), f"{page}: {part} in {tab}"


def test_verbs_of_the_pages_exist():
    """Look up each name that a page calls a verb."""
    named = {
        (page, verb)
        for page, text in PAGES.items()
        for verb in re.findall(r"\b[Vv]erb `(\w+)`|`(\w+)` \(verb\)", text)
        for verb in verb
        if verb
    }
    assert len(named) >= 5
    assert sorted((page, verb) for page, verb in named if verb not in VERBS) == []


def test_limits_of_files_are_those_of_the_code():
    """State the largest sizes that the code lets pass."""
    files = PAGES["docs/files.md"]
    mesh_gib, upload_mib = mesh_files.MAX_MESH_BYTES // 2**30, uploads.MAX_UPLOAD_BYTES // 2**20
    assert f"{mesh_files.MAX_TRIANGLES} triangles and {mesh_gib} GiB" in files
    assert f"| upload | {upload_mib} MiB |" in files
    assert f"{upload_mib} MiB unpacked" in files
    assert f"{model_files.MAX_ELEMENTS} elements" in files
    assert f"2^{model_files.MAX_PIXELS.bit_length() - 1} pixels" in files
    props = re.sub(r"\s+", " ", PAGES["docs/props.md"])
    assert f"at most {mesh_gib} GiB and {mesh_files.MAX_TRIANGLES:,} triangles" in props
    scenes = re.sub(r"\s+", " ", PAGES["docs/lab_scene.md"])
    assert f"They have at most {upload_mib} MiB" in scenes


def test_files_of_the_architecture_page_exist():
    """Look up each path of the map of the code, and each room of the layers in its table."""
    text = PAGES["docs/architecture.md"]
    paths = set(re.findall(r"`((?:\w+/)+[\w.]*)`", text))
    assert len(paths) > 50
    roots = (ROOT, ROOT / "src/manyworlds", ROOT / "src/manyworlds/lab")
    assert [
        path for path in sorted(paths) if not any((root / path).exists() for root in roots)
    ] == []
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rooms = [name.removeprefix("manyworlds.") for name in layers["contracts"][0]["layers"]]
    assert [room for room in rooms if f"`{room}/`" not in text] == []
