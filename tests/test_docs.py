"""The documentation is complete, and what is generated is current."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import posixpath
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from manyworlds.cli.main import COMMANDS, main
from tools.docs import api, commands, generated, layers, site, terms

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
TEXTS = {
    **{path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")},
    **site.generated_pages(),
}
"""Pages of the site by path, as MkDocs reads them."""


def test_each_page_is_in_the_navigation_once():
    """List every page, and nothing else."""
    listed = [path for _, path in generated.navigation()]
    assert sorted(listed) == sorted(TEXTS)


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_links_of_the_site_resolve(page):
    """Follow every link to a page, a file, and a heading, as MkDocs does."""
    text = TEXTS[page]
    if page not in site.generated_pages():
        text = site.relink(text, f"docs/{page}", page)
    for link in site.links(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        name = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        assert name in TEXTS or (DOCS / name).is_file(), link
        assert not anchor or anchor in site.anchors(TEXTS[name]), link


def test_links_are_found():
    """Find what the test above looks for, and rewrite it, apart from code."""
    code, example = "```\n[n](o)\n```", "../examples/01_simulation.py"
    text = f"[a](b.md#c) `[x](y)`\n\n{code}\n\n![p](media/q.png) [e]({example})"
    assert [*site.links(text)] == ["b.md#c", "media/q.png", "../examples/01_simulation.py"]
    assert [*site.links(r"float[3] [m], float\[3] [m] and [m]")] == ["m"]
    moved = site.relink(text, "docs/howto/page.md", "howto/page.md")
    assert "[a](b.md#c)" in moved and "```\n[n](o)\n```" in moved
    deep = site.relink("[e](../../examples/01_simulation.py)", "docs/howto/p.md", "howto/p.md")
    assert deep == "[e](../examples.md#01_simulation)"
    assert site.relink("[s](../src/x.py)", "docs/p.md", "p.md") == "s"
    readme = site.relink("[c](CONTRIBUTING.md) ![m](docs/media/a.gif)", "README.md", "index.md")
    assert readme == "[c](contributing.md) ![m](media/a.gif)"


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("Sparse Jacobians on MuJoCo 4.0.0", "sparse-jacobians-on-mujoco-400"),
        ("2. Reward and observation terms", "2-reward-and-observation-terms"),
        (
            "Capacity for contacts and constraints on `warp`",
            "capacity-for-contacts-and-constraints-on-warp",
        ),
    ],
)
def test_headings_have_the_anchors_of_markdown(title, anchor):
    """Give headings the anchors that Python-Markdown gives them."""
    assert site.slug(title) == anchor


@pytest.mark.slow
def test_generated_files_are_current():
    """Compare each generated file with what `python -m tools.docs` would write."""
    stale = [
        str(path)
        for path, text in generated.generated_files().items()
        if not (ROOT / path).exists() or (ROOT / path).read_text() != text
    ]
    assert stale == [], "run: python -m tools.docs"


def test_every_public_name_is_documented():
    """Find a docstring for each public name and for each public method of a public class."""
    assert api.undocumented() == []


def test_undocumented_names_are_found(monkeypatch):
    """Report a name without a docstring, and one that has only that of its dataclass."""
    monkeypatch.setattr(api, "PAGES", {"x": ("tests.undocumented",)})
    monkeypatch.setattr(api, "exporting_modules", list)
    assert api.undocumented() == [
        "tests.undocumented.BARE",
        "tests.undocumented.Cfg",
        "tests.undocumented.Thing.method",
        "tests.undocumented.function",
    ]


def test_the_reference_has_what_pages_import():
    """Describe each name that a page, an example or a notebook imports, or its module."""
    texts = [*TEXTS.values(), *(p.read_text() for p in (ROOT / "examples").glob("**/*.py"))]
    for path in (ROOT / "examples").glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        texts.append("\n".join("".join(cell["source"]) for cell in cells))
    imported = {
        (module, name)
        for text in texts
        for module, names in re.findall(
            r"^\s*from (manyworlds[\w.]*) import (\([^)]*\)|.*)", text, re.M
        )
        for name in re.findall(r"(\w+)(?: as \w+)?,?", re.sub(r"#.*", "", names))
    }
    assert len(imported) > 100
    assert api.missing(sorted(imported)) == []


def test_the_reference_has_what_modules_export(monkeypatch):
    """Describe each name of each `__all__` once, and refuse one that belongs to no page."""
    described = [
        (name, id(getattr(importlib.import_module(module), name)))
        for modules in api.reference().values()
        for module, names in modules.items()
        for name in names
    ]
    assert len(described) == len(set(described))
    exporting = api.exporting_modules()
    assert {"manyworlds.sim", "manyworlds.utils.math", "manyworlds.lab.verbs"} < set(exporting)
    modules = {module: importlib.import_module(module) for module in exporting}
    assert api.missing((m, name) for m, found in modules.items() for name in found.__all__) == []
    assert api.missing([("tools.docs.api", "PAGES")]) == ["tools.docs.api.PAGES"]
    monkeypatch.delitem(api.PAGES, "math")
    with pytest.raises(
        ValueError, match=r"manyworlds\.utils\.math exports apply_delta_pose, .*PAGES"
    ):
        api.reference()


def test_titles_of_the_reference_differ():
    """Have one entry for each title; names that several modules use are shown with the module."""
    titles = []
    for text in api.pages().values():
        for path, options in re.findall(r"^::: (\S+)\n(    options: .*)?", text, re.M):
            titles.append(path if options else path.rpartition(".")[2])
    assert len(titles) == len(set(titles)) > 500


def test_every_shipped_term_is_in_a_table():
    """List each function and class that a task can use as a term."""
    assert terms.unlisted() == []
    found = terms.all_terms()
    assert {"observations", "rewards", "terminations", "events", "actions", "commands"} <= set(
        found
    )
    for kind, name in (("rewards", "upright"), ("events", "push_by_setting_velocity")):
        assert name in [term.__name__ for term in found[kind]]
    assert all(terms.summary(term).endswith((".", ":")) for kind in found.values() for term in kind)


ROWS = [
    (page, package, *row)
    for page in sorted(terms.MANAGERS.values())
    for package, table in re.findall(
        r"^`([\w.]+)`, for .*:\n\n((?:\|.*\n)+)", TEXTS[f"managers/{page}.md"], re.M
    )
    for row in re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.M)
]
"""Page, package, name and parameters of each row of the tables of terms."""


@pytest.mark.parametrize(
    ("page", "package", "name", "parameters"), ROWS, ids=[f"{row[0]}-{row[2]}" for row in ROWS]
)
def test_terms_of_the_tables_are_built_with_their_parameters(page, package, name, parameters):
    """Import each name as a task does, and give it what the row says must be given, and all."""
    term: Any = getattr(importlib.import_module(package), name)
    given = dict(re.findall(r"`(\w+)(=[^`]*)?`", parameters))
    needed: dict[str, Any] = {
        parameter: None for parameter, default in given.items() if not default
    }
    if page in ("actions", "commands"):
        every = {field.name: field for field in dataclasses.fields(term)}
        assert [*needed] == [n for n, field in every.items() if _is_needed(field)]
        assert given.keys() == every.keys() - {"transmission_type"}
        if "resampling_time_range" in needed:
            needed["resampling_time_range"] = (1.0, 1.0)
        assert hasattr(term(**needed), "build")
    elif page == "recorders":
        assert all(f'"{parameter}"' in inspect.getsource(term) for parameter in given)
    else:
        called = inspect.signature(term.__call__ if inspect.isclass(term) else term)
        first = ("self",) * inspect.isclass(term) + ("env",)
        first += ("env_ids",) * (page in ("events", "curriculums"))
        assert [*called.parameters][: len(first)] == [*first]
        called.bind(*first, **needed)
        called.bind(*first, **given)
        left = {n for n in called.parameters if n not in (*first, *given)}
        kinds = {called.parameters[n].kind for n in left}
        assert kinds <= {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
        for parameter in needed:
            rest = {n: None for n in needed if n != parameter}
            with pytest.raises(TypeError, match=parameter):
                called.bind(*first, **rest)


def _is_needed(field):
    defaults = (field.default, field.default_factory)
    return all(default is dataclasses.MISSING for default in defaults)


def test_all_terms_are_found_in_the_tables():
    """Have rows on each page, and more than a hundred in all."""
    assert {row[0] for row in ROWS} == {*terms.MANAGERS.values()} and len(ROWS) > 100


def test_every_command_is_on_its_page(capsys):
    """Have a line and a section for each command that `manyworlds --help` lists, in its order."""
    assert main(["--help"]) == 0
    listed = re.findall(r"^  ([a-z][a-z\d-]*)  ", capsys.readouterr().out, re.M)
    text = (ROOT / commands.PAGE).read_text()
    assert listed == re.findall(r"^\| \[`([\w-]+)`\]", text, re.M) == list(COMMANDS)
    assert listed == re.findall(r"^## (.+)$", text, re.M)


FORMS = {
    "train": ["train", "train Cartpole-Balance"],
    "evaluate": ["evaluate", "evaluate Cartpole-Balance"],
}
"""Command lines whose help has all options of a section, if not that of its title."""


@pytest.mark.parametrize("title", re.findall(r"^###? (.+)$", TEXTS["commands.md"], re.M))
def test_every_option_of_the_help_is_on_the_page(title, capsys):
    """Have a row for each option that `manyworlds COMMAND --help` prints, and for no other."""
    for line in FORMS.get(title, [title]):
        assert main([*line.split(), "--help"]) == 0
    told = re.findall(r"^[│ ] {,2}(--[a-z][\w.-]*)", capsys.readouterr().out, re.M)
    shown = {name for name in told if not name.startswith(("--env.", "--agent."))}
    (section,) = re.findall(rf"^###? {title}\n(.*?)(?=^##|\Z)", TEXTS["commands.md"], re.M | re.S)
    rows = re.findall(r"^\| (`--.*?) \|", section, re.M)
    written = [set(re.findall(r"`(--[^`]+)`", row)) for row in rows]
    written = [names for names in written if not any("FIELD" in name for name in names)]
    assert shown <= set().union(*written)
    assert [names for names in written if not names & shown] == []


def test_the_picture_has_each_layer():
    """Show the layers of the contract in their order."""
    shown = re.findall(r'font-weight="bold" fill="#222">([\w.]+)<', layers.picture())
    assert shown == layers.layers() and len(shown) > 15


def test_the_site_needs_no_network():
    """Build strictly, with the fonts of the reader's system, a favicon, and both color schemes."""
    theme = CONFIG["theme"]
    assert CONFIG["strict"] and theme["font"] is False
    assert (DOCS / theme["favicon"]).is_file()
    assert {part["scheme"] for part in theme["palette"]} == {"default", "slate"}
    assert "offline" not in CONFIG["plugins"]  # its pages load a script from another server
    checks = CONFIG["validation"]
    assert {level for part in checks.values() for level in part.values()} == {"warn"}


def test_language_models_find_each_page(tmp_path):
    """Link to a file of the site for each page, with a sentence that is not the page's title."""
    for page in TEXTS:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)  # as MkDocs has done
    site.on_post_build({"site_dir": tmp_path})
    text = (DOCS / "llms.txt").read_text()
    entries = re.findall(r"^- \[(.+?)\]\((\S+)\): (.+)$", text, re.M)
    assert len(entries) == text.count("\n- ") == len(TEXTS)
    for _, link, sentence in entries:
        page = link.replace(".html", ".md")
        assert page in TEXTS and (tmp_path / page).is_file()
        assert link.endswith(".html" if link.startswith("api/") else ".md")
        title = TEXTS[page].partition("\n")[0].lstrip("# ")
        assert sentence.endswith(".") and sentence.rstrip(".") != title, link
        assert 20 <= len(sentence) <= 300 and "](" not in sentence, link
    readme = (tmp_path / "index.md").read_text()
    assert "](engines.md)" in readme and "](docs/" not in readme


def test_a_page_begins_with_its_description():
    """Take the first sentence of prose: no picture, note, table or code, and no links."""
    text = (
        "# T\n\n*By hand.*\n\n```sh\nx\n```\n\n![p](q)\n\n`f` is [a\nlink](b.md). More.\n\n## S\n"
    )
    assert generated.first_sentence(text) == "`f` is a link."
    assert generated.first_sentence("# Only a title\n\n## S\n\nText.\n") == "Only a title."
