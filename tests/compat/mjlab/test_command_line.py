"""mjlab's form of flags, for the options that are flags."""

import os
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
import tyro

from manyworlds.cli import options as options_module
from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import Frontend, parse_known
from manyworlds.cli.play import PlayOptions
from manyworlds.cli.task_fields import TrainConfig, parse_fields
from manyworlds.cli.train import TrainOptions
from manyworlds.compat.mjlab.command_line import TYRO_FLAGS, plain_flags, present_program
from manyworlds.compat.mjlab.names import run_command
from manyworlds.tasks import load_env_cfg, load_rl_cfg


@dataclass
class Part:
    """Options of a part."""

    on_at_first: bool = True
    name: str = "True"
    choice: bool | None = None


@dataclass
class Options:
    """Options of many kinds."""

    video: bool = False
    silent: tyro.conf.FlagCreatePairsOff[bool] = False
    part: Part = field(default_factory=Part)
    table: dict = field(default_factory=lambda: {"a_b": Part(), "flag": True})
    rows: tuple = (Part(),)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("--video True", "--video"),
        ("--video=True", "--video"),
        ("--video False", "--no-video"),
        ("--video=False --video", "--no-video --video"),
        ("--video --part.name True", "--video --part.name True"),
        ("--part.on-at-first False", "--part.no-on-at-first"),
        ("--part.on_at_first=False", "--part.no-on_at_first"),
        ("--part.choice True", "--part.choice True"),
        ("--silent True", "--silent"),
        ("--silent False", ""),
        ("--table.a-b.on-at-first False", "--table.a-b.no-on-at-first"),
        ("--table.flag False", "--table.no-flag"),
        ("--rows.0.on-at-first True", "--rows.0.on-at-first"),
        ("--video Maybe", "--video Maybe"),
        ("--unknown True True", "--unknown True True"),
        ("--part.unknown.flag True", "--part.unknown.flag True"),
        ("True --video", "True --video"),
    ],
)
def test_flags_lose_their_values(given, plain):
    """Rewrite flags alone, at any depth, and leave all else as it is."""
    assert plain_flags(Options(), given.split()) == plain.split()


def test_what_is_rewritten_parses(monkeypatch):
    """Parse the flags of a task to the values that are named, and those only with the form."""
    config = TrainConfig(env=load_env_cfg("Cartpole-Swingup"), agent=load_rl_cfg("Reach"))
    flags = "--video True --enable-nan-guard True --resume False --agent.resume=True"
    nested = "--env.sim.nan-guard.enabled True --env.observations.actor.enable-corruption False"
    argv = f"{flags} {nested} --env.auto_reset=False --agent.run-name True".split()
    options, words = parse_known(TrainOptions, argv, "train")
    with pytest.raises(UsageError, match="'True' is one too many"):
        parse_fields(config, words, "train", options)
    monkeypatch.setattr(options_module, "FRONTENDS", [Frontend(plain_flags, list)])
    options, words = parse_known(TrainOptions, argv, "train")
    cfg = parse_fields(config, words, "train", options)
    assert options.video and options.enable_nan_guard and not options.resume and cfg.agent.resume
    assert cfg.env.sim.nan_guard.enabled and not cfg.env.auto_reset
    assert not cfg.env.observations["actor"].enable_corruption
    assert cfg.agent.run_name == "True"


def test_options_without_values_are_flags_too():
    """Know the flags of a class whose options have no values yet."""
    argv = ["--no-terminations", "True", "--video=False", "--agent", "zero", "--latest", "True"]
    rewritten = ["--no-terminations", "--no-video", "--agent", "zero", "--latest"]
    assert plain_flags(PlayOptions, argv) == rewritten


def test_the_form_lasts_as_long_as_the_command(monkeypatch, capsys):
    """Accept the form in commands of the alias, and in no later one."""
    monkeypatch.setattr(sys, "argv", ["play", "Cartpole-Balance", "--video", "True", "--steps=x"])
    with pytest.raises(SystemExit):
        run_command("play")
    error = capsys.readouterr().err
    assert "--steps" in error and "Unrecognized" not in error
    assert options_module.FRONTENDS == []


def test_markers_for_programs_of_their_own():
    """Parse flags with values by the markers that mjlab has for it."""
    args = ["--video", "True", "--part.on-at-first", "False", "--rows.0.on-at-first", "False"]
    options = tyro.cli(Options, args=args, config=TYRO_FLAGS)
    assert options.video and not options.part.on_at_first and not options.rows[0].on_at_first


@pytest.mark.slow
@pytest.mark.parametrize("program", [["-m", "mjlab.scripts.play"], ["SCRIPT"]])
def test_commands_take_flags_with_values(program, tmp_path, gl):
    """Play a task by the module, and by a program that calls its `main`."""
    script = tmp_path / "play.py"
    script.write_text("from mjlab.scripts.play import main\nmain()\n")
    program = [str(script) if part == "SCRIPT" else part for part in program]
    options = "--agent zero --no-terminations True --env.auto-reset True --video True"
    result = subprocess.run(
        [
            *(sys.executable, "-m", "manyworlds.compat.mjlab", *program, "Cartpole-Balance"),
            *(*options.split(), "--video-length", "2", "--num-envs", "1"),
            *("--video-width", "32", "--video-height", "32", "--log-root", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
    )
    assert "video: " in result.stdout, result.stderr


@pytest.mark.parametrize(
    "program",
    [
        ["-m", "manyworlds.compat.mjlab", "-m", "mjlab.scripts.train"],
        ["-m", "manyworlds.compat.mjlab", "scripts/train.py"],
        ["-X", "dev", "-u", "scripts/train.py"],
    ],
)
def test_several_gpus_run_the_same_program(program, monkeypatch, alias):
    """Start the program once for each GPU, as it was started, so that its tasks are known."""
    started = []

    def become(_, args):
        started.append(args[1:])
        raise SystemExit(0)

    options = ["Mjlab-Cartpole-Balance", "--gpu-ids", "[0, 1]", "--video", "True"]
    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(sys, "argv", ["train.py", *options])
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, *program, *options])
    run_command("train")
    [(*launch, count), again] = started[0][:4], started[0][4:]
    assert launch[:2] == ["-m", "torch.distributed.run"] and count == "--nproc-per-node=2"
    start = program.index("-m") if "-m" in program else -1
    assert again == [*program[start:], *options]


def test_code_without_a_file_cannot_run_on_several_gpus(monkeypatch):
    """Say so, and what helps."""
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", "pass", "x"])
    with pytest.raises(ValueError, match="write the code of `python -c` to a file"):
        present_program()


@pytest.mark.parametrize(
    "option", ["--registry-name", "--registry_name=a/b", "--torchrunx-log-dir"]
)
def test_an_option_without_a_meaning_has_a_remedy(option):
    """Say what to do instead of an option that only mjlab's commands have."""
    with pytest.raises(UsageError, match="no option --.*, since .*(download|leave)"):
        plain_flags(Options(), [option, "a/b"])
