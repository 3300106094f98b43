"""The demo, in small."""

from __future__ import annotations

import json

import pytest

from manyworlds.cli.main import main

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
pytest.importorskip("coacd", reason="shapes need the extra 'meshes'")


def run_demo(tmp_path) -> dict:
    """Run a demo of two iterations; return its summary and files."""
    sizes = ["--num-envs", "20", "--iterations", "2", "--evaluation-worlds", "2"]
    assert main(["demo", *sizes, "--log-root", str(tmp_path), "--no-view"]) == 0
    (run,) = (tmp_path / "demo").iterdir()
    summary = json.loads((run / "summary.json").read_text())
    return {"summary": summary, "files": {path.name for path in run.iterdir()}}


@pytest.mark.slow
def test_the_demo_leaves_everything_in_one_folder(tmp_path, capsys, monkeypatch, gl):
    """Leave checkpoint, ONNX, configuration, curve, video and summary, and say where."""
    monkeypatch.setattr("manyworlds.cli.demo_run.VIDEO_S", 0.4)
    result = run_demo(tmp_path)
    assert {"model_1.pt", "policy.onnx", "params", "learning_curve.png"} <= result["files"]
    assert result["summary"]["video"] in result["files"]
    assert "success_by_shape.png" in result["files"]
    assert set(result["summary"]["episodes"].values()) == {2}
    assert len(result["summary"]["success"]) >= 10
    assert all(0.0 <= share <= 1.0 for share in result["summary"]["success"].values())
    assert result["summary"]["solved"] is False
    out = capsys.readouterr().out
    assert "success by shape" in out and "ellipse" in out and "summary.json" in out


@pytest.mark.slow
def test_without_opengl_everything_but_the_video_is_there(tmp_path, capsys, monkeypatch):
    """Skip the video with one line that says what to install."""
    monkeypatch.setattr(
        "manyworlds.utils.gl.gl_available", lambda: "OpenGL is missing: install libegl1."
    )
    result = run_demo(tmp_path)
    assert result["summary"]["video"] is None
    assert not {name for name in result["files"] if name.startswith("six_worlds")}
    assert "no video: OpenGL is missing: install libegl1." in capsys.readouterr().out


def test_the_page_is_served_where_asked(monkeypatch, tmp_path):
    """Pass the address and the port on to the page."""
    from manyworlds.cli import demo_run
    from manyworlds.cli.demo import DemoOptions
    from manyworlds.cli.options import parse

    served = []
    monkeypatch.setattr(demo_run, "_play_env", lambda *args: ("env", "policy"))
    monkeypatch.setattr(
        "manyworlds.cli.play.watch", lambda env, policy, **where: served.append(where)
    )
    argv = ["--host", "0.0.0.0", "--port", "8090", "--web-origin", "https://hub.example.org"]
    options = parse(DemoOptions, argv, "demo")
    rl_cfg = demo_run.load_rl_cfg(demo_run.TASK)
    demo_run._show(rl_cfg, tmp_path, options)
    origins = ("https://hub.example.org",)
    assert served == [{"host": "0.0.0.0", "port": 8090, "web_origins": origins}]
