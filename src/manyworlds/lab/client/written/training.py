"""Verbs of `manyworlds.lab.verbs.training`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class TrainingVerbs(VerbCaller):
    """Verbs of a live world: training."""

    def read_training(self) -> Reply:
        """Return the training that this world belongs to, and what was sent to it.

        Returns:
            `training` (map, task, run, env_id, step and iteration of the moment, and last push),
            `edits` (map[], edits that were sent from here, and what has become of them), `changes`
            (string[], fields of the model that were changed here), `checkpoints` (string[], names
            of the checkpoints of the run, the newest last), `frame_id`, `time`.
        """
        return self.call("read_training")

    def read_worst_episodes(self) -> Reply:
        """Return the worst episodes that the training remembers, the latest last.

        Returns:
            `episodes` (map[], env_id, step of the end, ended_by, length, episode_return and text),
            `frame_id`, `time`.
        """
        return self.call("read_worst_episodes")

    def rewind_training(
        self,
        seconds: float,
        env_id: int | None = None,
        end: int = -1,
        follow: bool = True,
    ) -> Reply:
        """Go back to a moment that the training remembers, and continue from there.

        Args:
            seconds: time before the end or the present [s], from 0.
            env_id: world of the training; this one if left out, from 0.
            end: step of the end of one of the worst episodes; -1: the present one.
            follow: repeat what happened; else the policy acts at once.

        Returns:
            `equal_steps` (int, control steps made so far, equal to those of the training),
            `frame_id`, `time`.
        """
        return self.call("rewind_training", seconds=seconds, env_id=env_id, end=end, follow=follow)

    def push_training(
        self,
        body: str,
        force: ArrayLike,
        torque: ArrayLike | None = None,
        duration_s: float = 0.1,
    ) -> Reply:
        """Push a body, and keep the push and the state before it, to be sent.

        Args:
            body: the body, `entity/body`.
            force: force in the world at the body's center of mass [N].
            torque: torque in the world [N m].
            duration_s: duration [s], from 0.001, to 60.

        Returns:
            `push` (map, body, force, torque and duration_s), `frame_id`, `time`.
        """
        return self.call(
            "push_training", body=body, force=force, torque=torque, duration_s=duration_s
        )

    def compare_futures(
        self,
        seconds: float = 5.0,
        checkpoint: str = "",
        film: bool = True,
    ) -> Reply:
        """Simulate two futures of the present moment: with another policy, or with the last push.

        Args:
            seconds: duration [s], from 0.02, to 60.
            checkpoint: checkpoint for the second future; empty for the last push instead.
            film: whether to draw a film of both, side by side.

        Returns:
            `table` (string, both futures, as a table), `film` (string, path of the film; empty
            without one), `frame_id`, `time`.
        """
        return self.call("compare_futures", seconds=seconds, checkpoint=checkpoint, film=film)

    def send_start_state(
        self,
        weight: float = 1.0,
        share: float = 0.1,
    ) -> Reply:
        """Let a share of the training's episodes begin in the present state.

        Args:
            weight: frequency relative to the other states that were sent, from 0.
            share: share of episodes that begin in such a state, from 0, to 1.

        Returns:
            `edits` (string[], the edits, as the run folder has them; see `read_training` for their
            outcome), `frame_id`, `time`.
        """
        return self.call("send_start_state", weight=weight, share=share)

    def send_disturbance(
        self,
        name: str,
        pause_s: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        any_direction: bool = False,
    ) -> Reply:
        """Let the last push happen in all worlds of the training, after random pauses.

        Args:
            name: name, as of an event or a case.
            pause_s: smallest and largest value.
            scale: smallest and largest value.
            any_direction: turn each push about the vertical.

        Returns:
            `edits` (string[], the edits, as the run folder has them; see `read_training` for their
            outcome), `frame_id`, `time`.
        """
        return self.call(
            "send_disturbance", name=name, pause_s=pause_s, scale=scale, any_direction=any_direction
        )

    def send_case(
        self,
        name: str,
        seconds: float = 5.0,
        with_push: bool = False,
    ) -> Reply:
        """Test each checkpoint from now on in the present moment, or with the last push.

        Args:
            name: name, as of an event or a case.
            seconds: duration of the case [s], from 0.02.
            with_push: begin before the last push, and repeat it.

        Returns:
            `edits` (string[], the edits, as the run folder has them; see `read_training` for their
            outcome), `frame_id`, `time`.
        """
        return self.call("send_case", name=name, seconds=seconds, with_push=with_push)

    def send_randomization(
        self,
        preview: bool = False,
    ) -> Reply:
        """Let worlds of the training have values up to those of the fields that were changed here.

        Args:
            preview: return the edits only, without sending them.

        Returns:
            `edits` (string[], the edits, as the run folder has them; see `read_training` for their
            outcome), `frame_id`, `time`.
        """
        return self.call("send_randomization", preview=preview)

    def send_value(
        self,
        path: str,
        value: object,
    ) -> Reply:
        """Set a weight, a parameter, a range or a stage of a curriculum in the training.

        Args:
            path: path of a value of the task: `rewards.upright.weight` ....
            value: the value, of the type of the present one.

        Returns:
            `edits` (string[], the edits, as the run folder has them; see `read_training` for their
            outcome), `frame_id`, `time`.
        """
        return self.call("send_value", path=path, value=value)

    def send_edit(
        self,
        edit: Mapping[str, object],
    ) -> Reply:
        """Send an edit of any kind to the training.

        Args:
            edit: kind and fields of an edit; see `edit_from_plain`.

        Returns:
            `edits` (string[], the edits, as the run folder has them; see `read_training` for their
            outcome), `frame_id`, `time`.
        """
        return self.call("send_edit", edit=edit)
