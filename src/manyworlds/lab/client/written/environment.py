"""Verbs of `manyworlds.lab.verbs.environment`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class EnvironmentVerbs(VerbCaller):
    """Verbs of a live world: environment."""

    def steer_command(
        self,
        term: str,
        values: ArrayLike | None = None,
    ) -> Reply:
        """Hold a command of the environment's task at values.

        Args:
            term: name of a command term of the task.
            values: values; left out, the task samples it again.
        """
        return self.call("steer_command", term=term, values=values)

    def seek_motion(
        self,
        term: str,
        frame: int,
    ) -> Reply:
        """Set the robot to a frame of the motion that a command of the task plays.

        Args:
            term: name of a command term of the task.
            frame: frame of the motion, from 0.
        """
        return self.call("seek_motion", term=term, frame=frame)

    def read_task(self) -> Reply:
        """Return what stays the same about the environment's task.

        Returns:
            `differences` (string[], differences between its settings and those of training),
            `step_dt` (float, duration of a control step), `decimation` (int, physics steps in a
            control step), `most_rewards` (int, number of reward terms for which a bar chart is of
            use), `steered` (map, bounds of the values of each command that can be set, by name),
            `motions` (map, number of frames of each motion that can be sought, by name),
            `own_widgets` (string[], command terms with widgets of their own), `observations` (map,
            shape of each observation, by group and, in some groups, by term), `num_actions` (int,
            number of values of an action), `terrain_cells` (map, number of `levels` and `columns`
            of generated terrain, if any), `entered` (bool, true if the world is one of a running
            training), `frame_id`, `time`.
        """
        return self.call("read_task")

    def read_task_report(self) -> Reply:
        """Return the results of the environment's last control step.

        Returns:
            `report` (map, the last control step: rewards, metrics, commands, ends of episodes),
            `frames` (map, present frame of each motion, by name), `auto_reset` (bool, true if the
            end of an episode resets the world), `substep` (int, physics steps since the control
            step began), `terrain_cell` (map, present `level` and `column` on generated terrain),
            `frame_id`, `time`.
        """
        return self.call("read_task_report")

    def read_task_details(self) -> Reply:
        """Return what the environment's last control step was like, for people.

        Returns:
            `episode_time` (float, time since the episode began), `observations` (map, what the
            policy sees, by `group/term`), `action` (map, unprocessed actions, by term), `deviation`
            (map, their standard deviation while learning, by term; empty if not known), `value`
            (any, sum of discounted rewards that the critic expects; null without a critic),
            `nearness` (map, share of the way to each termination whose measure is known),
            `frame_id`, `time`.
        """
        return self.call("read_task_details")

    def set_terrain_cell(
        self,
        level: int,
        column: int,
    ) -> Reply:
        """Move the world to another cell of generated terrain; all free bodies move along.

        Args:
            level: row of the cell, a level of difficulty, from 0.
            column: column of the cell, from 0.
        """
        return self.call("set_terrain_cell", level=level, column=column)

    def reset_task(
        self,
        seed: int | None = None,
    ) -> Reply:
        """Start a new episode of the environment's task, and return its observations.

        Args:
            seed: seed of all random numbers from now on, from 0, to 4.29497e+09.

        Returns:
            `observations` (map, float32 arrays by group and, in some groups, by term), `log` (map,
            values about finished episodes), `frame_id`, `time`.
        """
        return self.call("reset_task", seed=seed)

    def step_task(
        self,
        action: ArrayLike,
    ) -> Reply:
        """Make one control step of the environment's task, in the mode `direct`.

        Args:
            action: action in place of that of a policy.

        Returns:
            `observations` (map, float32 arrays by group and, in some groups, by term), `reward`
            (float, sum of all reward terms), `terminated` (bool, true if the episode ended),
            `truncated` (bool, true if the time of the episode is over), `final_observations` (map,
            those of the ended episode, if its end reset the world), `log` (map, values about
            finished episodes), `frame_id`, `time`.
        """
        return self.call("step_task", action=action)

    def read_debug_shapes(self) -> Reply:
        """Return the debug shapes of the environment's task: goals, commands, sensors ...

        Returns:
            `shapes` (map, arrays with a row for each shape, and labels; see `pack_shapes`),
            `frame_id`, `time`.
        """
        return self.call("read_debug_shapes")

    def set_auto_reset(
        self,
        on: bool,
    ) -> Reply:
        """Let the end of an episode reset the world, or be shown only.

        Args:
            on: true to reset at the end of an episode.

        Returns:
            `on` (bool), `frame_id`, `time`.
        """
        return self.call("set_auto_reset", on=on)
