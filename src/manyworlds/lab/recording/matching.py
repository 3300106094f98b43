"""Matching of recorded joints with those of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from manyworlds.lab.moments.recording import Recording

Rule = Literal["exact", "suffix", "bare", "free"]
"""Rule by which a joint was found: by its name, by its name after a prefix, by its bare name under
another prefix, or as the only free joint that is left."""

_WIDTHS = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}


@dataclass(frozen=True)
class Match:
    """Recorded joint and the model's joint that it moves."""

    recorded: str
    joint: str
    rule: Rule


@dataclass
class MatchReport:
    """Result of the matching, for each joint."""

    matched: list[Match] = field(default_factory=list)
    unmatched: dict[str, str] = field(default_factory=dict)
    """Recorded joints that move nothing, and the reason."""
    unmoved: list[str] = field(default_factory=list)
    """Joints of the model that no recorded one moves."""
    notes: list[str] = field(default_factory=list)
    """Sentences about segments of other models."""

    def __str__(self) -> str:
        """Return lines of text."""
        rules = Counter(match.rule for match in self.matched)
        by_rule = ", ".join(f"{count} {rule}" for rule, count in rules.items())
        lines = [f"{len(self.matched)} joints matched ({by_rule or 'none'})"]
        lines += [f"{name}: {why}" for name, why in self.unmatched.items()]
        if self.unmoved:
            lines.append(f"not recorded: {', '.join(self.unmoved)}")
        lines += self.notes
        return "\n".join(lines)


def match_joints(
    recording: Recording, types: Mapping[str, str], robot_of: Callable[[str], str | None]
) -> MatchReport:
    """Match joints of the same width, and of the same type where it is known.

    The rules are tried in order; a joint that an earlier rule matched is not available to later
    ones. A joint is not matched if a rule finds several for it, or finds it for several.

    Args:
        recording: recording whose joints are matched.
        types: type of each joint of the model, by name.
        robot_of: function that returns the robot of a joint of the model.
    """
    report = MatchReport(unmoved=list(types))
    prefix = _common_prefix(recording.joints)
    siblings: dict[str | None, list[str]] = {}
    for joint in types:
        siblings.setdefault(robot_of(joint), []).append(joint)
    prefixes = {robot: _common_prefix(joints) for robot, joints in siblings.items()}
    rules: dict[Rule, Callable[[str, str], bool]] = {
        "exact": lambda recorded, joint: recorded == joint,
        "suffix": lambda recorded, joint: joint.endswith(("_" + recorded, "/" + recorded)),
        "bare": lambda recorded, joint: (
            _bare(recorded, prefix) == _bare(joint, prefixes[robot_of(joint)])
        ),
    }
    open_ = recording.joints
    refused = {}
    for rule, holds in rules.items():
        found = {}
        claims: Counter[str] = Counter()
        for name in open_:
            found[name] = [joint for joint in report.unmoved if holds(name, joint)]
            claims.update(found[name])
        for name, joints in found.items():
            if not joints:
                continue
            rivals = joints
            if len(joints) == 1 and claims[joints[0]] > 1:
                rivals = [other for other in found if joints[0] in found[other]]
            why = _differs(recording, name, types[joints[0]])
            if len(rivals) > 1:
                refused[name] = f"ambiguous ({rule}): {', '.join(rivals)}"
            elif why:
                refused[name] = f"'{joints[0]}' {why}"
            else:
                _match(report, name, joints[0], rule)
        done = {match.recorded for match in report.matched} | refused.keys()
        open_ = [name for name in open_ if name not in done]
    _match_free(report, recording, types, robot_of, open_)
    matched = {match.recorded for match in report.matched}
    report.unmatched = {
        name: refused.get(name, "no joint of this name")
        for name in recording.joints
        if name not in matched
    }
    return report


def _match(report: MatchReport, recorded: str, joint: str, rule: Rule) -> None:
    report.matched.append(Match(recorded, joint, rule))
    report.unmoved.remove(joint)


def _match_free(
    report: MatchReport,
    recording: Recording,
    types: Mapping[str, str],
    robot_of: Callable[[str], str | None],
    names: list[str],
) -> None:
    """Match the only remaining recorded free joint with the only one left of the matched robots."""
    robots = {robot_of(match.joint) for match in report.matched} - {None}
    free = [name for name in names if recording.index["qpos"][name][1] == _WIDTHS["free"]]
    joints = [j for j in report.unmoved if types[j] == "free" and robot_of(j) in robots]
    if len(free) == len(joints) == 1:
        _match(report, free[0], joints[0], "free")


def _differs(recording: Recording, name: str, kind: str) -> str:
    width = recording.index["qpos"][name][1]
    known = recording.joint_types.get(name, kind)
    if width == _WIDTHS[kind] and known == kind:
        return ""
    return f"is a {kind} joint, but {width} numbers of a {known} one were recorded"


def _common_prefix(names: list[str]) -> str:
    """Longest common prefix of all names, up to its last `_`."""
    if len(names) < 2:
        return ""
    common = ""
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        common += letters[0]
    return common[: common.rfind("_") + 1]


def _bare(name: str, prefix: str) -> str:
    if "/" in name:
        return name.rpartition("/")[2]
    return name.removeprefix(prefix)
