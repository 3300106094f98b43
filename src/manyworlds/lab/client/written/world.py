"""Verbs of `manyworlds.lab.verbs.world`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class WorldVerbs(VerbCaller):
    """Verbs of a live world: world."""

    def set_sim_options(
        self,
        options: Mapping[str, object],
    ) -> Reply:
        """Change options of MuJoCo from the next step on, all or none.

        Args:
            options: values by their names in mjOption.

        Returns:
            `options` (map, the new values, by name), `frame_id`, `time`.
        """
        return self.call("set_sim_options", options=options)

    def read_sim_options(self) -> Reply:
        """Return MuJoCo's options: the present ones, and the model's own.

        Returns:
            `options` (map, the present values, by name), `model_options` (map, those of the
            compiled model, before all changes), `num_threads` (int, number of further threads for
            one step; 0 for none), `frame_id`, `time`.
        """
        return self.call("read_sim_options")

    def set_threads(
        self,
        num_threads: int,
    ) -> Reply:
        """Let further threads help with each step, which speeds up large worlds.

        Args:
            num_threads: number of further threads for one step; 0 for none, from 0, to 64.

        Returns:
            `num_threads` (int, number of further threads for one step; 0 for none), `frame_id`,
            `time`.
        """
        return self.call("set_threads", num_threads=num_threads)

    def set_sim_flag(
        self,
        flag: str,
        on: bool,
    ) -> Reply:
        """Switch a feature of MuJoCo on or off: contacts, gravity, sleep ...

        Args:
            flag: flag of MuJoCo: constraint, equality, frictionloss, limit, contact, spring,
                damper, gravity, clampctrl, warmstart, filterparent, actuation, refsafe, sensor,
                midphase, eulerdamp, autoreset, nativeccd, island, multiccd, override, energy,
                fwdinv, invdiscrete, sleep, diagexact, ipc, speculative.
            on: true to have the feature.

        Returns:
            `flag` (string, flag of MuJoCo), `on` (bool), `frame_id`, `time`.
        """
        return self.call("set_sim_flag", flag=flag, on=on)

    def set_mocap_pose(
        self,
        body: str | int,
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
    ) -> Reply:
        """Move a mocap body; what is left out stays.

        Args:
            body: mocap body by name or id.
            pos: position in the world [m].
            quat: orientation in the world [wxyz].

        Returns:
            `body` (string, the body), `pos` (float[], position in the world), `quat` (float[],
            orientation in the world), `frame_id`, `time`.
        """
        return self.call("set_mocap_pose", body=body, pos=pos, quat=quat)

    def read_mocap_pose(
        self,
        body: str | int,
    ) -> Reply:
        """Return the pose of a mocap body.

        Args:
            body: mocap body by name or id.

        Returns:
            `body` (string, the body), `pos` (float[], position in the world), `quat` (float[],
            orientation in the world), `frame_id`, `time`.
        """
        return self.call("read_mocap_pose", body=body)

    def grab_body(
        self,
        body: str | int,
        point: ArrayLike,
    ) -> Reply:
        """Take hold of a body at a point of it, for `pull_body` and `turn_body`.

        Args:
            body: body by name or id.
            point: position in the world [m].
        """
        return self.call("grab_body", body=body, point=point)

    def pull_body(
        self,
        target: ArrayLike,
    ) -> Reply:
        """Pull the grabbed point to a position by a spring; renew it while the pull lasts.

        Args:
            target: position in the world [m].
        """
        return self.call("pull_body", target=target)

    def turn_body(
        self,
        quat: ArrayLike,
    ) -> Reply:
        """Turn the grabbed body to an orientation by a spring; renew it while the turn lasts.

        Args:
            quat: orientation in the world [wxyz].
        """
        return self.call("turn_body", quat=quat)

    def drag_body(
        self,
        body: str | int,
        localpos: ArrayLike,
        target: ArrayLike | None = None,
        quat: ArrayLike | None = None,
    ) -> Reply:
        """Pull a point of a body, turn the body, or both, by a spring; renew it while it lasts.

        Args:
            body: body by name or id.
            localpos: point in the body's frame [m].
            target: position in the world [m].
            quat: orientation in the world [wxyz].
        """
        return self.call("drag_body", body=body, localpos=localpos, target=target, quat=quat)

    def push_body(
        self,
        body: str | int,
        force: ArrayLike | None = None,
        torque: ArrayLike | None = None,
    ) -> Reply:
        """Add a force at a body's center of mass during the next step only.

        Args:
            body: body by name or id.
            force: force in the world's frame [N].
            torque: torque in the world's frame [N m].
        """
        return self.call("push_body", body=body, force=force, torque=torque)

    def release_body(self) -> Reply:
        """Let go of the grabbed body: no force is left at the next step."""
        return self.call("release_body")

    def set_qpos(
        self,
        target: str,
        qpos: ArrayLike,
        still: bool = False,
    ) -> Reply:
        """Set positions of a robot's joints in their order, or only of its free base (7 values).

        Args:
            target: robot or other entity.
            qpos: positions of its joints, or of its free base.
            still: true to set the velocities to zero.

        Returns:
            `free_base_shortcut` (bool, true if only the free base was set), `frame_id`, `time`.
        """
        return self.call("set_qpos", target=target, qpos=qpos, still=still)

    def get_contacts(
        self,
        max_contacts: int = 64,
        filter: Mapping[str, object] | None = None,
    ) -> Reply:
        """Return the contacts of the present state; forces are in the frame of the contact.

        Args:
            max_contacts: most contacts to return, from 0, to 100000.
            filter: names: body1, body2, geom1, geom2, in any order, or subtree.

        Returns:
            `n_contacts` (int, number of contacts that match), `truncated` (bool, true if not all of
            them are in the reply), `contacts` (map[], geoms, bodies, position, normal, distance and
            force of each), `frame_id`, `time`.
        """
        return self.call("get_contacts", max_contacts=max_contacts, filter=filter)

    def pick_body(
        self,
        origin: ArrayLike,
        direction: ArrayLike,
        groups: ArrayLike | None = None,
    ) -> Reply:
        """Find the body that a ray hits first.

        Args:
            origin: position in the world [m].
            direction: direction of the ray.
            groups: 1 for each visible group of geoms, else 0.

        Returns:
            `body` (string, name of the body), `body_id` (int, its id; 0 for none), `distance`
            (float, distance to it; -1 for none), `frame_id`, `time`.
        """
        return self.call("pick_body", origin=origin, direction=direction, groups=groups)
