"""`manyworlds share`, and what is wrong with its arguments."""

import json
import shutil

import pytest

from manyworlds.cli.main import main
from manyworlds.rl.run_folder import RunFolder
from tests.share.conftest import no_downloads
from tests.share.folders import read_json

__all__ = ["no_downloads"]

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
pytestmark = pytest.mark.usefixtures("no_downloads")

ARM = """
<mujoco model="little arm">
  <worldbody>
    <body><joint name="hinge" axis="0 1 0"/><geom size=".1"/></body>
  </worldbody>
  <actuator><position joint="hinge" kp="5"/></actuator>
  <keyframe><key name="home" qpos=".5" ctrl=".5"/></keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> RunFolder:
    """Train a run of two iterations; return it."""
    root = tmp_path_factory.mktemp("runs")
    size = ["--env.scene.num-envs", "8", "--agent.num-steps-per-env", "4"]
    options = ["--agent.max-iterations", "2", "--env.episode-length-s", "0.1"]
    assert main(["train", "Cartpole-Swingup", *size, *options, "--log-root", str(root)]) == 0
    return RunFolder.latest(root)


def shared(folder, *arguments: str):
    """Share something; return `world.json`."""
    assert main(["share", *arguments, "--output", str(folder)]) == 0
    return read_json(folder)


def test_a_run_has_a_card_with_all_facts(trained, tmp_path, monkeypatch, capsys):
    """Show task, training time, evaluation and the command that writes the page again."""
    monkeypatch.setattr("manyworlds.cli.share._EVALUATED_WORLDS", 4)
    about = shared(tmp_path / "page", str(trained.path))
    assert f"page: {tmp_path / 'page'} (" in capsys.readouterr().out
    card = about["card"]
    assert about["title"] == about["task"] == card["task"] == "Cartpole-Swingup"
    assert card["iterations"] == 2
    assert card["trained"].endswith(" cores")
    assert card["evaluation"]["mean length"] == "0.1 s of at most 0.1 s, 4 episodes"
    assert card["evaluation"]["ended by time out"] == "100 %"
    wanted = f"manyworlds share {trained.path} --output {tmp_path / 'page'}"
    assert card["command"] == wanted
    [policy] = about["policies"]
    assert policy["decimation"] == 5 and policy["calls"] == "control"


def test_several_runs_share_a_page(trained, tmp_path):
    """Offer the policies of two runs in the world that both have, without an evaluation."""
    other = shutil.copytree(trained.path, trained.path.with_name("other"))
    options = ["--no-evaluate", "--title", "Two of them"]
    about = shared(tmp_path / "page", str(trained.path), str(other), *options)
    assert about["title"] == "Two of them" and about["card"]["evaluation"] is None
    assert [policy["name"] for policy in about["policies"]] == [trained.path.name, "other"]
    assert len(about["worlds"]) == 1


def test_a_checkpoint_is_exported(trained, tmp_path):
    """Share an earlier checkpoint of a run instead of its exported policy."""
    checkpoint = trained.checkpoints()[0]
    about = shared(tmp_path / "page", str(checkpoint), "--no-evaluate")
    assert len(about["policies"]) == 1


def test_tasks_move_by_zero_actions(tmp_path):
    """Share tasks without a policy, and variants as worlds."""
    about = shared(tmp_path / "page", "Push-Variants", "--variants", "bar,star", "--embed")
    assert [world["name"] for world in about["worlds"]] == ["bar", "star"]
    assert [policy["world"] for policy in about["policies"]] == [0, 1]
    assert [command["name"] for command in about["commands"]] == ["goal"]
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert '<html lang="en" class="embed">' in page


def test_model_files_and_the_gallery_have_no_policy(tmp_path):
    """Share a model file from its keyframe, and a world of the gallery from its start."""
    (tmp_path / "arm.xml").write_text(ARM)
    about = shared(tmp_path / "page", str(tmp_path / "arm.xml"), "cloth-on-a-pole")
    assert about["worlds"][0]["keyframe"] == "home"
    assert [world["name"] for world in about["worlds"]] == ["arm", "cloth-on-a-pole"]
    assert about["policies"] == [] and about["task"] is None
    assert about["worlds"][0]["camera"]["distance"] > 0.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["Push-Variants", "--variants", "bar,moon"], "'object' has no variant moon: choose from"),
        (["Reach", "--variants", "bar"], "the task's entities have no variants: leave"),
        (["Nothing"], "There is no model file, world, task or run 'Nothing'"),
        ([], "Name what to share: manyworlds share RUN --output FOLDER"),
    ],
)
def test_wrong_arguments_are_one_sentence(tmp_path, capsys, arguments, text):
    """Say what is wrong, and write nothing."""
    assert main(["share", *arguments, "--output", str(tmp_path / "page")]) != 0
    assert text in capsys.readouterr().err
    assert not (tmp_path / "page").exists()


def test_other_folders_are_kept(tmp_path, capsys):
    """Refuse to replace a folder that is no page, before any work."""
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["share", "Reach", "--output", str(tmp_path)]) == 1
    assert "is not an earlier page, it contains notes.txt" in capsys.readouterr().err


def test_reports_link_the_page(trained, tmp_path):
    """Write the folder beside the report, with the evaluation of the report."""
    report = tmp_path / "report.html"
    options = ["--no-evaluate", "--no-film", "--share", "--out", str(report)]
    assert main(["report", str(trained.path), *options]) == 0
    assert 'href="share/index.html"' in report.read_text(encoding="utf-8")
    about = json.loads((tmp_path / "share" / "world.json").read_text(encoding="utf-8"))
    assert about["task"] == "Cartpole-Swingup"
