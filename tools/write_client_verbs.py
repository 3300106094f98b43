"""Write the methods of `manyworlds.lab.client` from the registries that they stand for.

These are a method for each verb of the lab, and a property for each one of `EntityData`.

Run from the project's root: python tools/write_client_verbs.py
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from manyworlds.entity.data import EntityData
from manyworlds.lab.client.robot_reads import NOT_READ
from manyworlds.lab.verbs import VERBS
from manyworlds.lab.verbs.fields import Choice, Field, Number
from manyworlds.lab.verbs.registry import Verb

FOLDER = Path("src/manyworlds/lab/client/written")
_WIDTH = 100
_MOST_OPTIONS = 12  # that fit into an annotation
_TYPES = {
    "string": "str",
    "any": "object",
    "bool": "bool",
    "float": "float",
    "int": "int",
    "string or int": "str | int",
    "float[]": "ArrayLike",
    "map of float": "Mapping[str, float]",
    "map": "Mapping[str, object]",
    "map[]": "Sequence[Mapping[str, object]]",
    "string[]": "Sequence[str]",
    "bytes": "bytes",
    "path": "str | Path",
}
"""Annotations by the types of fields."""
_IMPORTS = {
    "Mapping": "from collections.abc import Mapping",
    "Sequence": "from collections.abc import Sequence",
    "Path": "from pathlib import Path",
    "Literal": "from typing import Literal",
    "ArrayLike": "from numpy.typing import ArrayLike",
}
_HEAD = '''"""{text}

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

'''


def written_files() -> dict[str, str]:
    """Return the content of each file, by its name."""
    groups: dict[str, list[Verb]] = {}
    for verb in VERBS.values():
        groups.setdefault(verb.call.__module__.rpartition(".")[2], []).append(verb)
    files = {f"{name}.py": _verbs_file(name, verbs) for name, verbs in sorted(groups.items())}
    files["entity_reads.py"] = _reads_file()
    files["__init__.py"] = _init_file(sorted(groups))
    return files


def _verbs_file(group: str, verbs: Sequence[Verb]) -> str:
    body = "".join(_method(verb) for verb in verbs)
    found = [line for name, line in _IMPORTS.items() if re.search(rf"\b{name}\b", body)]
    standard = [line for line in found if not line.startswith("from numpy")]
    blocks = ["\n".join(_merge(standard)), "\n".join(set(found) - set(standard))]
    blocks.append("from manyworlds.lab.client.caller import Reply, VerbCaller")
    imports = "\n\n".join(block for block in blocks if block)
    head = _HEAD.format(text=f"Verbs of `manyworlds.lab.verbs.{group}`, as methods.")
    title = f'class {_class_of(group)}(VerbCaller):\n    """Verbs of a live world: {group}."""\n'
    return f"{head}{imports}\n\n\n{title}{body}"


def _merge(lines: list[str]) -> list[str]:
    """Return imports with those of one module in one line."""
    names: dict[str, list[str]] = {}
    for line in lines:
        module, _, name = line.partition(" import ")
        names.setdefault(module, []).append(name)
    return [f"{module} import {', '.join(found)}" for module, found in names.items()]


def _class_of(group: str) -> str:
    return f"{group.title().replace('_', '')}Verbs"


def _init_file(groups: Sequence[str]) -> str:
    head = _HEAD.format(text="Verbs of a live world, as methods.")
    modules = [f"manyworlds.lab.client.written.{group}" for group in groups]
    pairs = zip(modules, groups, strict=True)
    imports = "".join(f"from {module} import {_class_of(group)}\n" for module, group in pairs)
    bases = "".join(f"    {_class_of(group)},\n" for group in groups)
    title = '    """All verbs of a live world, as methods of the same names."""\n'
    return f"{head}{imports}\n\nclass LabVerbs(\n{bases}):\n{title}"


def _method(verb: Verb) -> str:
    names = list(verb.fields)
    parameters = "".join(_fit(f"        {_parameter(verb, name)},\n") for name in names)
    signature = f"self,\n{parameters}    " if names else "self"
    lines = [f"    def {verb.name}(\n        {signature}) -> Reply:" if names else ""]
    if not names:
        lines = [f"    def {verb.name}(self) -> Reply:"]
    lines += _docstring(verb)
    lines += _call(verb.name, names)
    return "\n" + "\n".join(lines) + "\n"


def _fit(line: str) -> str:
    """Return a parameter, with its options in lines of their own if it is long."""
    if len(line) <= _WIDTH + 1 or "Literal[" not in line:
        return line
    start, _, rest = line.partition("Literal[")
    options, _, end = rest.rpartition("]")
    inner = f"            {options}"
    if len(inner) > _WIDTH:
        inner = ",\n".join(f"            {option}" for option in options.split(", ")) + ","
    return f"{start}Literal[\n{inner}\n        ]{end}"


def _parameter(verb: Verb, name: str) -> str:
    kind = _annotation(verb.fields[name])
    if name not in verb.defaults:
        return f"{name}: {kind}"
    default = verb.defaults[name]
    if isinstance(default, str | bool | int | float):
        return f"{name}: {kind} = {_literal(default)}"
    return f"{name}: {kind} | None = None"


def _annotation(field: Field) -> str:
    if isinstance(field, Choice) and len(field.options) <= _MOST_OPTIONS:
        return f"Literal[{', '.join(map(_literal, field.options))}]"
    return _TYPES[field.type]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _call(name: str, fields: Sequence[str]) -> Iterator[str]:
    parts = [f'"{name}"', *(f"{field}={field}" for field in fields)]
    line = f"        return self.call({', '.join(parts)})"
    if len(line) <= _WIDTH:
        yield line
        return
    yield "        return self.call("
    inner = f"            {', '.join(parts)}"
    yield from [inner] if len(inner) <= _WIDTH else [f"            {part}," for part in parts]
    yield "        )"


def _docstring(verb: Verb) -> Iterator[str]:
    text = f'        """{verb.text}'
    yield text + ("" if verb.fields or verb.reply else '"""')
    if verb.fields:
        yield "\n        Args:"
        for name, field in verb.fields.items():
            yield from _entry(f"{name}: {_meaning(field)}.", 12)
    if verb.reply:
        yield "\n        Returns:"
        told = [f"`{name}` ({_kind(field)})" for name, field in verb.reply.items()]
        yield from _entry(f"{', '.join(told)}, `frame_id`, `time`.", 12, hang=0)
    if verb.fields or verb.reply:
        yield '        """'


def _kind(field: Field) -> str:
    return ", ".join(part for part in (field.type, field.text) if part)


def _meaning(field: Field) -> str:
    unit = f" [{field.unit}]" if field.unit else ""
    text = f"{field.text or field.type}{unit}"
    if isinstance(field, Number):
        told = {"from": field.low, "to": field.high}
        text += "".join(f", {key} {bound:g}" for key, bound in told.items() if abs(bound) < 1e300)
    if isinstance(field, Choice) and len(field.options) > _MOST_OPTIONS:
        text += f": {', '.join(field.options)}"
    return text


def _entry(text: str, indent: int, hang: int = 4) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )


def read_properties() -> dict[str, str]:
    """Return the meaning of each property of `EntityData` that clients have, by its name."""
    found = inspect.getmembers(EntityData, lambda value: isinstance(value, property))
    texts = {name: inspect.getdoc(value) or "" for name, value in found if name not in NOT_READ}
    return {name: text.partition("\n")[0] for name, text in texts.items() if name[0] != "_"}


def _reads_file() -> str:
    parts = [_HEAD.format(text="Properties of `EntityData`, as arrays of one world.")]
    parts.append("import numpy as np\n\n\nclass EntityReads:\n")
    parts.append('    """State of a robot under the names of `EntityData`."""\n\n')
    parts.append("    def _read(self, name: str) -> np.ndarray:\n")
    parts.append('        """Return a property, without the dimension of worlds."""\n')
    parts.append("        raise NotImplementedError\n")
    for name, text in read_properties().items():
        one = text.replace("[num_envs, ", "[").replace("[num_envs]", "[]")
        one = one if "shape" in one else one.replace(", [", ", shape [")
        parts.append(f"\n    @property\n    def {name}(self) -> np.ndarray:\n")
        parts.append(f'        """{one}"""\n        return self._read("{name}")\n')
    return "".join(parts)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in written_files().items():
        (FOLDER / name).write_text(content)
