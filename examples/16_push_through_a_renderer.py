"""Draw a live world in a program of its own, and push a body through it.

    manyworlds lab Push-Variants --serve --headless
    python examples/16_push_through_a_renderer.py object_object [PORT [PICTURE.png]]

This is the fast path of docs/lab_protocol.md with nothing but pyzmq, msgpack and MuJoCo, as a
renderer in any language would use it: the model once, poses with each step, and forces back.
"""

from __future__ import annotations

import argparse
import sys

import msgpack
import mujoco
import numpy as np
import zmq

WEIGHTS, PUSHES = 2.0, 20  # force in weights of the body; one push lasts for one step
PATIENCE_MS = 5000  # longest wait for a reply [ms]


class Mirror:
    """Model of a lab, in which bodies have the newest poses.

    Args:
        context: ZeroMQ's context.
        port: port of the lab's fast path.
    """

    def __init__(self, context: zmq.Context, port: int) -> None:
        self._requests = context.socket(zmq.REQ)
        self._requests.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
        self._requests.setsockopt(zmq.LINGER, 0)
        self._requests.connect(f"tcp://127.0.0.1:{port}")
        hello = self.ask(op="fastpath_hello")
        self.model = mujoco.MjModel.from_binary_path("lab.mjb", {"lab.mjb": hello["mjb"]})
        self.data = mujoco.MjData(self.model)
        self._poses = context.socket(zmq.SUB)
        self._poses.setsockopt(zmq.SUBSCRIBE, b"viewer")
        self._poses.connect(hello["bus"])

    def ask(self, **request: object) -> dict:
        """Send a request, and return its reply."""
        self._requests.send(msgpack.packb(request))
        try:
            reply = msgpack.unpackb(self._requests.recv())
        except zmq.Again:
            sys.exit(
                "No lab answers: start it with `manyworlds lab TARGET --serve`, or give its port."
            )
        if "error" in reply:
            sys.exit(reply["error"])
        return reply

    def follow(self) -> None:
        """Wait for the next positions, and put all bodies there."""
        _, message = self._poses.recv_multipart()
        newest = msgpack.unpackb(message)
        self.data.time, self.data.qpos[:] = newest["t"], newest["qpos"]
        mujoco.mj_kinematics(self.model, self.data)

    def draw(self, path: str) -> None:
        """Write a picture."""
        from PIL import Image

        mujoco.mj_forward(self.model, self.data)
        with mujoco.Renderer(self.model, 480, 640) as renderer:
            renderer.update_scene(self.data)
            Image.fromarray(renderer.render()).save(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("body", help="name of the body that is pushed")
    parser.add_argument("port", type=int, nargs="?", default=5571, help="port of the fast path")
    parser.add_argument("picture", nargs="?", help="file of a picture after the push")
    args = parser.parse_args()
    with zmq.Context() as context:
        mirror = Mirror(context, args.port)
        mirror.follow()
        try:
            body = mirror.model.body(args.body)
        except KeyError as error:  # has the names of all bodies
            sys.exit(str(error.args[0]))
        before = mirror.data.xpos[body.id].copy()
        force = WEIGHTS * mirror.model.body_mass[body.id] * 9.81
        push = {"body": int(body.id), "force": [float(force), 0.0, 0.0], "torque": [0.0, 0.0, 0.0]}
        for _ in range(PUSHES):
            mirror.ask(op="fastpath_perturb", **push)
            mirror.follow()
        moved = mirror.data.xpos[body.id] - before
        print(f"The body moved {np.linalg.norm(moved):.3f} m, {moved[0]:.3f} m along the push.")
        if args.picture:
            mirror.draw(args.picture)
        context.destroy(linger=0)
