"""Record a world to files, read them back, and replay them in a changed model.

    python examples/11_record_and_replay.py [FOLDER]

You learn to record every physics step, to read recordings as arrays, to save them as CSV, and to
replay them: joints are matched by name, so that a recording outlives changes of the model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_spec
from manyworlds.lab.recording.mcap_files import read_mcap

ARM = """
<mujoco model="arm">
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/><motor name="elbow" joint="elbow"/></actuator>
</mujoco>
"""


def lab_of(xml: str, folder: Path) -> LiveLab:
    """Return a lab of a model that records into a folder, and advances by calls of `step`."""
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(folder=folder))
    return LiveLab(world_from_spec(mujoco.MjSpec.from_string(xml)), cfg)


def record(folder: Path) -> Path:
    """Swing the arm for a second; return the file of the recording."""
    with lab_of(ARM, folder) as lab:
        lab.recorder.start("swing.mcap")
        for i in range(10):
            lab["arm"].write("panel", {"shoulder": 2.0 * np.sin(i), "elbow": 0.5})
            lab.step(50)
        lab.recorder.stop()
        lab.recorder.save("swing.csv")
    return folder / "swing.mcap"


def replay(folder: Path, name: str) -> tuple[str, list[np.ndarray]]:
    """Replay a file in a model with a third joint; return the report and some positions."""
    longer = ARM.replace(
        '<geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>',
        '<geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/><body name="hand" pos="0.2 0 0">'
        '<joint name="wrist" axis="1 0 0"/><geom size="0.03"/></body>',
    )
    with lab_of(longer, folder) as lab:
        report = str(lab.replay.start(name))
        shown = []
        for moment in (0.25, 0.5, 0.75):
            lab.replay.seek(moment)
            shown.append(lab.snapshot.qpos.copy())
        lab.replay.stop()
    return report, shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default="recordings")
    folder = parser.parse_args().folder
    file = record(folder)
    recording = read_mcap(file)
    print(
        f"{file}: {len(recording)} steps, {recording.clock[0]:.3f} to {recording.clock[-1]:.3f} s"
    )
    report, shown = replay(folder, file.name)
    print(report)
    for qpos in shown:
        print("shoulder, elbow, wrist [rad]:", qpos.round(3).tolist())
    print("open it in the browser:", f"manyworlds lab MODEL.xml, tab Record, file {file.name}")
