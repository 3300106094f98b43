"""Verbs of `manyworlds.lab.verbs.robots`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class RobotsVerbs(VerbCaller):
    """Verbs of a live world: robots."""

    def take_robot(
        self,
        robot: str,
        owner: str,
    ) -> Reply:
        """Make a client the owner of a robot; targets stay until the first write.

        Args:
            robot: robot with actuators.
            owner: client whose targets take effect.

        Returns:
            `previous_owner` (string, client whose targets take effect), `owner` (string, client
            whose targets take effect), `frame_id`, `time`.
        """
        return self.call("take_robot", robot=robot, owner=owner)

    def release_robot(
        self,
        robot: str,
        owner: str,
    ) -> Reply:
        """End the ownership of a client, if it owns the robot.

        Args:
            robot: robot with actuators.
            owner: client whose targets take effect.

        Returns:
            `owner` (string, client whose targets take effect), `frame_id`, `time`.
        """
        return self.call("release_robot", robot=robot, owner=owner)

    def set_targets(
        self,
        robot: str,
        targets: Mapping[str, float],
        owner: str = "panel",
    ) -> Reply:
        """Set targets of actuators; those of clients that do not own the robot are ignored.

        Args:
            robot: robot with actuators.
            targets: targets by actuator, in its unit.
            owner: client whose targets take effect.

        Returns:
            `accepted` (bool, false if another client owns the robot), `owner` (string, client whose
            targets take effect), `command_number` (int, number of the robot's present command),
            `frame_id`, `time`.
        """
        return self.call("set_targets", robot=robot, targets=targets, owner=owner)

    def reset_targets(
        self,
        robot: str,
        owner: str = "panel",
    ) -> Reply:
        """Set all targets of a robot to their initial values.

        Args:
            robot: robot with actuators.
            owner: client whose targets take effect.

        Returns:
            `accepted` (bool, false if another client owns the robot), `owner` (string, client whose
            targets take effect), `frame_id`, `time`.
        """
        return self.call("reset_targets", robot=robot, owner=owner)

    def enable_controller(
        self,
        robot: str,
        enabled: bool,
    ) -> Reply:
        """Switch the controller of a robot on or off.

        Args:
            robot: robot with actuators.
            enabled: false to pass targets to the actuators unchanged.

        Returns:
            `enabled` (bool), `frame_id`, `time`.
        """
        return self.call("enable_controller", robot=robot, enabled=enabled)

    def set_command(
        self,
        robot: str,
        command: str,
        values: ArrayLike,
    ) -> Reply:
        """Set a command of a robot's policy, such as its velocity.

        Args:
            robot: robot with actuators.
            command: command term of the robot's policy.
            values: all of its values, in its units.

        Returns:
            `values` (float[], the new values), `frame_id`, `time`.
        """
        return self.call("set_command", robot=robot, command=command, values=values)

    def set_twist(
        self,
        robot: str,
        linear: ArrayLike | None = None,
        angular: ArrayLike | None = None,
    ) -> Reply:
        """Set the velocity command of a robot: forward, left and yaw; what is left out stays.

        Args:
            robot: robot with actuators.
            linear: velocity: forward, left, up [m/s].
            angular: angular velocity: roll, pitch, yaw [rad/s].

        Returns:
            `linear` (float[], velocity: forward, left, up), `angular` (float[], angular velocity:
            roll, pitch, yaw), `frame_id`, `time`.
        """
        return self.call("set_twist", robot=robot, linear=linear, angular=angular)

    def set_actions(
        self,
        robot: str,
        actions: int,
    ) -> Reply:
        """Switch actions of a robot on or off, which are published for other programs.

        Args:
            robot: robot with actuators.
            actions: bit mask of the actions that are on, from 0, to 2.14748e+09.

        Returns:
            `actions` (int, bit mask of the actions that are on), `frame_id`, `time`.
        """
        return self.call("set_actions", robot=robot, actions=actions)

    def set_gains(
        self,
        robot: str,
        kp: Mapping[str, float] | None = None,
        kd: Mapping[str, float] | None = None,
        limit: Mapping[str, float] | None = None,
        rest: Mapping[str, float] | None = None,
    ) -> Reply:
        """Change gains of a robot's PD law, and switch it on; those that are not named stay.

        Args:
            robot: robot with actuators.
            kp: values by joint or actuator.
            kd: values by joint or actuator.
            limit: values by joint or actuator.
            rest: values of all others, by kind.

        Returns:
            `gains` (map, `kp`, `kd` and `limit` of each actuator, by name), `frame_id`, `time`.
        """
        return self.call("set_gains", robot=robot, kp=kp, kd=kd, limit=limit, rest=rest)

    def play_sequence(
        self,
        robot: str,
        sequence: str,
    ) -> Reply:
        """Move a robot through a pose sequence.

        Args:
            robot: robot with actuators.
            sequence: pose sequence of `find_presets`.

        Returns:
            `poses` (string[], names of its poses), `frame_id`, `time`.
        """
        return self.call("play_sequence", robot=robot, sequence=sequence)

    def stop_sequence(
        self,
        robot: str,
    ) -> Reply:
        """Return a robot to the owner that it had before its pose sequence; its targets stay.

        Args:
            robot: robot with actuators.

        Returns:
            `owner` (string, client whose targets take effect), `frame_id`, `time`.
        """
        return self.call("stop_sequence", robot=robot)

    def list_keyframes(
        self,
        robot: str,
    ) -> Reply:
        """Return the names of the keyframes for a robot.

        Args:
            robot: robot.

        Returns:
            `keyframes` (string[], names, those of the robot first), `frame_id`, `time`.
        """
        return self.call("list_keyframes", robot=robot)

    def apply_keyframe(
        self,
        robot: str,
        keyframe_name: str = "",
        root: Literal["keep", "placed", "authored"] = "keep",
    ) -> Reply:
        """Set the positions and velocities of one robot to a keyframe; end a replay.

        Args:
            robot: robot.
            keyframe_name: keyframe; the first one if empty.
            root: pose of a free root.

        Returns:
            `ended_replay` (string, session of the replay that this ended; empty for none),
            `frame_id`, `time`.
        """
        return self.call("apply_keyframe", robot=robot, keyframe_name=keyframe_name, root=root)

    def hold_keyframe(
        self,
        robot: str,
        keyframe_name: str = "",
    ) -> Reply:
        """Keep the joints of a robot, except a free root, at a keyframe; end a replay.

        Args:
            robot: robot.
            keyframe_name: keyframe; the first one if empty.

        Returns:
            `ended_replay` (string, session of the replay that this ended; empty for none),
            `frame_id`, `time`.
        """
        return self.call("hold_keyframe", robot=robot, keyframe_name=keyframe_name)

    def stop_hold(
        self,
        robot: str,
    ) -> Reply:
        """Stop holding a robot; the previous owner owns it again.

        Args:
            robot: robot.
        """
        return self.call("stop_hold", robot=robot)
