"""Verbs of `manyworlds.lab.verbs.status`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from manyworlds.lab.client.caller import Reply, VerbCaller


class StatusVerbs(VerbCaller):
    """Verbs of a live world: status."""

    def read_status(self) -> Reply:
        """Return the state of the loop, the robots' owners, recordings, and all failures.

        Returns:
            `state` (string), `fault` (string, reason why the world stopped; empty if it can
            advance), `paused` (bool), `mode` (string), `driver` (map, name and owner of the driver
            that advances the world), `has_task` (bool, true if a task's environment drives the
            world, or is replaced for now), `percent` (float, requested speed), `real_time_factor`
            (float, achieved speed over the last second), `behind_s` (float, delay behind the wall
            clock), `model_version` (int, number of changes of the model), `model_hash` (string,
            hash of the compiled model, before later changes), `drawings` (int, number of shapes
            that programs draw into the view), `rebuild_notes` (string[], sentences about what the
            last rebuild did not keep), `warnings` (map, MuJoCo's warnings since the last reset, by
            type), `left_out` (map, reasons why entities of the scene were left out, by name),
            `world_warnings` (string[], sentences about what is probably wrong with the world's
            file), `failures` (string[], sentences about callbacks and drawing that failed, and
            ports in use), `robots` (map, owner, targets and controller by robot, and why it does
            not move), `held` (string[], robots that are held in a keyframe), `states` (string[],
            names of the saved states), `recording` (map, progress of the recording), `replay` (map,
            progress of the replay), `timeline` (map, length, moment that is shown, and marks of the
            timeline), `frame_id`, `time`.
        """
        return self.call("read_status")

    def read_server(self) -> Reply:
        """Return the state of the server for programs; nothing is in it if there is none.

        Returns:
            `ports` (map[], use, number, state and number of messages of each), `clients` (map[],
            name, role and encoding of each), `driver` (string, client that drives; empty if none
            does), `events` (string[], sentences about who drove, the newest last), `requests` (map,
            number of requests by operation), `errors` (map, number of errors by code), `problems`
            (string[], sentences about ports in use, and about the end of the server), `frame_id`,
            `time`.
        """
        return self.call("read_server")

    def release_client(self) -> Reply:
        """Let the client of the network that drives observe from now on."""
        return self.call("release_client")

    def read_robot(
        self,
        robot: str,
    ) -> Reply:
        """Return the controls of a robot; they change only with a rebuild.

        Args:
            robot: robot with actuators.

        Returns:
            `actuators` (string[], name of each control, as in targets), `controls` (float[], index
            of each in MjData.ctrl), `actuator_ids` (float[], actuator of each in the model),
            `neutral` (float[], targets before the first write and after a reset), `types`
            (string[], element of MJCF that each was written as: position, motor ...), `frame_id`,
            `time`.
        """
        return self.call("read_robot", robot=robot)

    def describe_world(self) -> Reply:
        """Return the robots of the world, and the batch that it is from.

        Returns:
            `robots` (map, prefix, controls and gains by robot, also of those without actuators),
            `model_version` (int, number of changes of the model), `model_hash` (string, hash of the
            compiled model, before later changes), `environment` (bool, true if the environment of a
            task drives the world), `option_sources` (map, robot that set each option that is not
            MuJoCo's default), `batch` (map, index, variants, terrain, randomized values; empty if
            it is from no batch), `frame_id`, `time`.
        """
        return self.call("describe_world")

    def export_model(
        self,
        sources: bool = False,
    ) -> Reply:
        """Return the model as files.

        Args:
            sources: true to include the XML and its files.

        Returns:
            `mjb` (bytes, the present model in MuJoCo's binary format), `mjcf` (string, XML of the
            scene; empty unless `sources`), `files` (map, content of each file that the XML refers
            to, by name), `frame_id`, `time`.
        """
        return self.call("export_model", sources=sources)
