"""Walk into one world of a batch, and play with it live.

    python examples/10_lab.py            # prints what happens
    python examples/10_lab.py --page     # and shows the world in the browser; needs the extra 'lab'

You learn to open one of many worlds as a lab that goes on exactly where the batch was; to push it,
change its masses and undo that; to keep and restore states; and to call the verbs that programs in
other languages call over the network.
"""

from __future__ import annotations

import sys
import time

import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab, VerbError
from manyworlds.tasks import load_env_cfg

ROBOT, POLE = "cartpole", "cartpole/pole"


def batch(num_envs: int, num_steps: int) -> ManagerBasedRlEnv:
    """Return worlds that have been stepped with random actions."""
    cfg = load_env_cfg("Cartpole-Swingup")
    cfg.scene.num_envs, cfg.seed = num_envs, 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    for _ in range(num_steps):
        env.step(torch.randn(num_envs, 1))
    return env


def play(lab: LiveLab) -> dict[str, float]:
    """Change the world in several ways; return the pole's angle after each [rad]."""
    hinge = lab.model.joint(f"{ROBOT}/hinge_1").qposadr[0]
    angles = {"as in the batch": float(lab.snapshot.qpos[hinge])}
    lab.states.save("entry")

    lab.step(100)
    angles["a second later"] = float(lab.snapshot.qpos[hinge])

    lab.states.restore("entry")
    lab.set_model(f"body:{POLE}", "mass", 2.0)  # twenty times as heavy, from the next step on
    lab.step(100)
    angles["with a heavy pole"] = float(lab.snapshot.qpos[hinge])
    lab.history.undo()

    lab.states.restore("entry")
    lab.verbs.step(n_steps=20, wrenches={POLE: [5.0, 0, 0, 0, 0, 0]})  # 5 N for 0.2 s
    lab.step(80)
    angles["after a push"] = float(lab.snapshot.qpos[hinge])

    lab.states.restore("entry")
    lab.step(100)
    angles["a second later, again"] = float(lab.snapshot.qpos[hinge])
    return angles


if __name__ == "__main__":
    env = batch(num_envs=16, num_steps=20)
    with LiveLab.walk_into(env, 3, cfg=LabCfg(mode="direct")) as lab:
        print("robots:", [*lab.robots], "time:", lab.snapshot.time)
        for what, angle in play(lab).items():
            print(f"{what:22} {angle:+.6f} rad")
        try:
            lab.verbs.set_sim_speed(percent=-1.0)
        except VerbError as error:
            print(f"errors say what to do ({error.code}): {error}")
        if "--page" in sys.argv:
            from manyworlds.lab.page import LabPage

            lab.verbs.set_mode(mode="live")
            page = LabPage(lab)
            page.start()
            print(f"open {page.url}; Ctrl-C ends")
            try:
                while True:
                    time.sleep(1.0)
            except KeyboardInterrupt:
                page.close()
