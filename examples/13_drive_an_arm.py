"""Drive an arm with the twist of a gamepad, over the network.

    manyworlds lab Lift-Cube-Arm --serve --headless
    python examples/13_drive_an_arm.py

The sticks set the velocity of the hand; MuJoCo's Jacobian turns it into targets of the joints.
"""

from __future__ import annotations

import argparse
import sys

import mujoco
import numpy as np

from manyworlds.lab.client import LabClient, LabError, connect

ROBOT, HAND = "robot", "grasp_site"
SPEED = np.array([0.1, 0.1, 0.1, 0.5])  # of full sticks [m/s, m/s, m/s, rad/s]
PERIOD = 0.02  # [s]


def read_sticks(time: float) -> np.ndarray:
    """Return forward, left, up and turn of the sticks, from -1 to 1.

    This is a second forward and a second up; read a gamepad here, for example with pygame.
    """
    return np.array([1.0, 0.0, 0.0, 0.0]) if time < 1.0 else np.array([0.0, 0.0, 1.0, 0.0])


def joint_speeds(lab: LabClient, dofs: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """Return the speeds of joints that move the hand by a twist of six values [rad/s or m/s]."""
    jacobian = np.zeros((6, lab.model.nv))
    hand = lab[ROBOT].site(HAND).id
    mujoco.mj_jacSite(lab.model, lab.data, jacobian[:3], jacobian[3:], hand)
    own = jacobian[:, dofs]
    return own.T @ np.linalg.solve(own @ own.T + 1e-3 * np.eye(6), twist)


def drive(lab: LabClient, seconds: float) -> None:
    """Drive the arm for some simulated time."""
    lab.set_mode("direct")  # time advances by `step` only
    lab.reset()
    robot = lab[ROBOT]
    names = [name for name in robot.actuators if name.startswith("joint")]
    joints = [robot.joint(name) for name in names]
    dofs = np.array([joint.model.dofadr[0] for joint in joints])
    targets = np.array([joint.data.qpos[0] for joint in joints])
    num_steps = round(PERIOD / lab.model.opt.timestep)
    for period in range(round(seconds / PERIOD)):
        forward, left, up, turn = SPEED * read_sticks(period * PERIOD)
        twist = np.array([forward, left, up, 0.0, 0.0, turn])
        targets += PERIOD * joint_speeds(lab, dofs, twist)
        lab.step(num_steps, targets={ROBOT: dict(zip(names, targets.tolist(), strict=True))})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "address", nargs="?", default="tcp://127.0.0.1:5559", help="address of the lab"
    )
    address = parser.parse_args().address
    try:
        with connect(address) as lab:
            lab.reset()
            before = lab[ROBOT].site(HAND).data.xpos.copy()
            drive(lab, 2.0)
            x, y, z = lab[ROBOT].site(HAND).data.xpos - before
            print(f"The hand moved {x:.3f} m forward, {y:.3f} m left, {z:.3f} m up.")
    except (LabError, ValueError) as error:  # no lab, another world, a wrong address
        sys.exit(str(error))
