"""World of a running training that continues in a lab."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab.edits.field_changes import changes_of, edits_of
from manyworlds.lab.lab import LiveLab
from manyworlds.lab.task.env_policies import policy_of_world
from manyworlds.lab.training.entry_stock import EntryStock, sent_policy
from manyworlds.lab.training.futures import TwoFutures, future_of
from manyworlds.lab.training.visitor import Visitor
from manyworlds.lab.world.card import read_card
from manyworlds.live.edits import (
    AddCase,
    AddDisturbance,
    AddStartState,
    EnvironmentEdit,
    RecordedPush,
    SetValue,
    edit_log,
    edits_in,
)
from manyworlds.live.record import WorldRecord, WorldReplay, quick_checksum
from manyworlds.live.snapshot import WorldSnapshot
from manyworlds.live.user_events import StartState
from manyworlds.rl.progress import EditRecord
from manyworlds.rl.run_folder import RunFolder

if TYPE_CHECKING:
    from manyworlds.lab.lab_cfg import LabCfg
    from manyworlds.lab.task.env_policies import EnvironmentPolicy
    from manyworlds.lab.task.env_stepper import EnvironmentStepper


Vector = tuple[float, float, float]


@dataclass
class EnteredWorld:
    """World of a training in a lab."""

    lab: LiveLab
    env_id: int
    """Index of the world in the training."""
    step: int
    """Control steps of the training at the moment."""
    iteration: int | None
    """Iteration of the policy; None without a policy."""
    snapshot: WorldSnapshot = field(repr=False)
    visitor: Visitor = field(repr=False)
    recorded: int = 0
    """Number of following control steps that the training records."""
    pushed: tuple[StartState, RecordedPush] | None = field(default=None, repr=False)
    """State before the last push, and the push; None before the first."""
    sent: dict[int, EnvironmentEdit] = field(default_factory=dict, repr=False)
    """Edits that were sent, by their numbers."""
    _outcomes: dict[int, str] = field(default_factory=dict, repr=False)
    task: str = ""
    """Name of the task; empty if the run folder does not record it."""
    futures: TwoFutures | None = field(default=None, repr=False)
    """Result of the last `compare`; None before the first."""

    def repeat(self, timeout_s: float = 600.0) -> WorldReplay:
        """Go back to the moment, and repeat what the world has done since in the training.

        Its actions and its random numbers are those of the training, so that the steps are equal to
        the bit. Afterwards the policy acts, and random numbers are new ones.

        Args:
            timeout_s: longest time to wait until the training has made the recorded steps [s].

        Raises:
            ValueError: the training records no steps of this world.
        """
        if not self.recorded:
            raise ValueError(
                f"No steps of world {self.env_id} are recorded: enter it with record=200."
            )
        found = self.visitor.record(self.env_id, self.recorded, timeout_s)
        replay = WorldReplay(self._stepper.env, found.steps)
        self._stepper.go_to(found.snapshot.state, replay)
        return replay

    def rewind(
        self, seconds: float, world: int | None = None, end: int = -1, *, follow: bool = True
    ) -> WorldReplay:
        """Go back into what the training remembers of this world, or of another one.

        Until it is disturbed, the world then repeats what it has done in the training, to the
        bit; afterwards the policy acts.

        Args:
            seconds: time before the present of the training, or before the end of an episode [s];
                at most what is remembered.
            world: world of the training; None for this one.
            end: control steps of the training at the end of one of its worst episodes, see
                `Visitor.worst`; -1 for the present episode. The end of the episode is then shown,
                and does not begin another one.
            follow: False to let the policy act at once.

        Raises:
            ConnectionError: the training has ended.
            ValueError: the time is negative, nothing is remembered, or the other world has
                other variants.
        """
        if not seconds >= 0.0:
            raise ValueError(f"A world goes back by at least 0 s, got {seconds:g}.")
        if world is None:
            world = self.env_id
        record = self.visitor.past(world, end)
        if record.snapshot.variants != self.snapshot.variants:
            raise ValueError(
                f"World {world} has other variants than this one: enter it by "
                f"`manyworlds lab --attach RUN --world {world}`."
            )
        own = edit_log(self._stepper.env).applied
        if edits_in(record.snapshot.state)[: len(own)] != own:
            raise ValueError(
                f"An edit has changed the training since: enter that moment of world {world} in a "
                "lab of its own (`manyworlds lab --attach RUN --episode N`, enter_run with end=)."
            )
        return self._go_back(record, seconds, follow=follow, shows_end=end >= 0)

    def _go_back(
        self, record: WorldRecord, seconds: float, *, follow: bool, shows_end: bool
    ) -> WorldReplay:
        stepper = self._stepper
        count = min(len(record.steps), max(1, round(seconds / stepper.env.step_dt)))
        replay = WorldReplay(stepper.env, record.steps, quick_checksum)
        if shows_end:
            stepper.auto_reset = False
        stepper.go_to(record.snapshot.state, replay, len(record.steps) - count)
        if not follow:
            replay.stop("The policy acts.")
        card = read_card(stepper.env, 0)
        num_envs = self.visitor.facts()["num_envs"]
        world = record.snapshot.env_id
        self.lab.world.card = dataclasses.replace(card, env_id=world, num_envs=num_envs)
        self.env_id = world
        self.step = record.snapshot.step + replay.done
        return replay

    def compare(
        self,
        seconds: float = 5.0,
        *,
        checkpoint: str | Path | None = None,
        push: RecordedPush | None = None,
    ) -> TwoFutures:
        """Simulate two futures of the present moment; the world waits meanwhile.

        The first one has the present policy. The second one has that of a checkpoint, or begins
        with a push. Both have the same random numbers.

        Args:
            seconds: duration [s].
            checkpoint: checkpoint of the run, by its name in the run folder or its path.
            push: the push.

        Raises:
            FileNotFoundError: there is no such checkpoint.
            ValueError: neither checkpoint nor push is given, or both.
        """
        if (checkpoint is None) == (push is None):
            raise ValueError("Give a checkpoint or a push: the second future differs by it.")
        snapshot = self._stepper.snapshot()
        stepper = self._stepper
        second = None
        if checkpoint is not None:
            second = sent_policy(self._checkpoint(checkpoint))
        stock = EntryStock(self.visitor.folder)
        with self.lab.lock():
            env, other = stock.take(snapshot, second)
            try:
                own = policy_of_world(stepper.policy, 0, env)
                first = "no policy" if own is None else f"policy of iteration {self.iteration}"
                if push is not None:
                    push.check(env)
                    pairs = ((own, "without push", None), (own, "with push", push))
                else:
                    assert second is not None
                    older = f"policy of iteration {second['iteration']}"
                    pairs = ((own, first, None), (other, older, None))
                found = []
                for policy, label, wrench in pairs:
                    mine = policy_of_world(policy, 0, env)
                    found.append(future_of(env, snapshot, mine, label, seconds, wrench))
            finally:
                env.close()
        self.futures = TwoFutures(found[0], found[1], copy.copy(self.lab.model))
        return self.futures

    def _checkpoint(self, name: str | Path) -> Path:
        path = self.visitor.folder / name
        if not path.is_file():
            known = sorted(found.name for found in self.visitor.folder.glob("model_*.pt"))
            raise FileNotFoundError(
                f"There is no checkpoint '{name}' in '{self.visitor.folder}': it has "
                f"{', '.join(known) or 'none yet'}."
            )
        return path

    def start_state(self) -> StartState:
        """Return the present state, from which episodes can begin."""
        return StartState.of(self._stepper.snapshot(), self._stepper.env)

    def push(
        self,
        body: str,
        force: Vector,
        torque: Vector = (0.0, 0.0, 0.0),
        duration_s: float = 0.1,
    ) -> RecordedPush:
        """Push a body from now on, and keep the push and the state before it, to be sent.

        Args:
            body: the body, `entity/body`.
            force: force in the world, at the body's center of mass [N].
            torque: torque in the world [N m].
            duration_s: duration of the push [s].

        Raises:
            ValueError: there is no such body, or a number is out of range.
        """
        push = RecordedPush(body=body, force=force, torque=torque, duration_s=duration_s)
        push.check(self._stepper.env)
        self.pushed = self.start_state(), push
        self.lab.perturbation.push_for(
            self.lab.model.body(body).id, np.array([*force, *torque]), duration_s
        )
        return push

    def send(self, edit: EnvironmentEdit, timeout_s: float = 600.0) -> EditRecord:
        """Send an edit to the training, and wait until it has applied it; see `Visitor.send`."""
        return self.visitor.send(edit, timeout_s)

    def set_value(self, path: str, value: object) -> EditRecord:
        """Set a value of the training's task; see `SetValue`."""
        return self.send(SetValue(path=path, value=value))

    def post(self, edit: EnvironmentEdit) -> int:
        """Send an edit without waiting for the training; return its number, for `outcomes`."""
        number = self.visitor.post(edit)
        self.sent[number] = edit
        return number

    def outcomes(self) -> list[dict[str, str]]:
        """Return what has become of the edits that `post` has sent, the latest last."""
        for number in self.sent.keys() - self._outcomes.keys():
            try:
                state = self.visitor.outcome(number)
            except ConnectionError:
                self._outcomes[number] = "the training has ended before"
                continue
            if state["record"] is not None:
                self._outcomes[number] = f"after iteration {state['record']['after']}"
            elif state["done"]:
                self._outcomes[number] = state["refusal"]
        waits = "waits for the end of the iteration"
        return [
            {"edit": edit.text, "outcome": self._outcomes.get(number, waits)}
            for number, edit in self.sent.items()
        ]

    def randomization(self) -> list[EnvironmentEdit]:
        """Return edits that make worlds have values up to those that `set_model` has set here.

        An event that draws a field already gets a wider range; else a new event draws it, between
        the compiled and the changed value.

        Raises:
            ValueError: nothing was changed, or a changed field cannot be randomized.
        """
        changes = changes_of(self.lab)
        if not changes:
            raise ValueError(
                "No field of the model was changed: change one in the tab World, or by "
                "`lab.set_model`."
            )
        return edits_of(self._stepper.env, changes)

    def send_randomization(self) -> list[EditRecord]:
        """Send the edits of `randomization`; they apply to each world at its next reset."""
        return [self.send(edit) for edit in self.randomization()]

    def send_start_state(self, weight: float = 1.0, share: float = 0.1) -> EditRecord:
        """Let a share of the training's episodes begin in the present state; see `AddStartState`.

        Args:
            weight: frequency relative to the other states that were sent.
            share: share of the episodes that begin in a state that was sent.
        """
        return self.send(AddStartState(state=self.start_state(), weight=weight, share=share))

    def send_disturbance(
        self,
        name: str,
        pause_s: tuple[float, float] = (2.0, 6.0),
        scale: tuple[float, float] = (1.0, 1.0),
        any_direction: bool = False,
    ) -> EditRecord:
        """Repeat the last push in all worlds of the training; see `AddDisturbance`.

        Raises:
            ValueError: nothing was pushed, or the training refuses.
        """
        return self.send(
            AddDisturbance.of(self.last_push()[1], name, pause_s, scale, any_direction)
        )

    def send_case(self, name: str, seconds: float = 5.0, with_push: bool = False) -> EditRecord:
        """Test policies in the present moment, or with the last push; see `AddCase`.

        Args:
            name: name of the case.
            seconds: duration of the case [s].
            with_push: begin in the state before the last push, and repeat the push.

        Raises:
            ValueError: nothing was pushed, or the training refuses.
        """
        if with_push:
            state, push = self.last_push()
        else:
            state = self.start_state()
            push = None
        return self.send(AddCase(name=name, state=state, push=push, seconds=seconds))

    @property
    def _stepper(self) -> EnvironmentStepper:
        stepper = self.lab.environment
        assert stepper is not None
        return stepper

    def last_push(self) -> tuple[StartState, RecordedPush]:
        """Return the state before the last push, and the push.

        Raises:
            ValueError: nothing was pushed.
        """
        if self.pushed is None:
            raise ValueError("Nothing was pushed: call `push` first.")
        return self.pushed


def enter(
    env: ManagerBasedRlEnv,
    env_id: int,
    policy: EnvironmentPolicy | None = None,
    cfg: LabCfg | None = None,
) -> LiveLab:
    """Open one world of a batch in this process as a lab, and start it.

    Args:
        env: the batch, which does not change.
        env_id: index of the world.
        policy: see `LiveLab.walk_into`.
        cfg: settings of the lab.

    Raises:
        ValueError: see `LiveLab.walk_into`.
    """
    lab = LiveLab.walk_into(env, env_id, policy, cfg)
    lab.start()
    return lab


def enter_run(
    folder: Path,
    env_id: int = 0,
    cfg: LabCfg | None = None,
    *,
    record: int = 0,
    end: int = -1,
    stock: EntryStock | None = None,
) -> EnteredWorld:
    """Open one world of a running training of another process as a lab; the caller starts it.

    The lab continues from the world's present state with the present policy. The training runs on
    meanwhile and knows nothing of the lab.

    Args:
        folder: run folder of the training.
        env_id: index of the world.
        cfg: settings of the lab.
        record: number of following control steps to record, for `EnteredWorld.repeat`.
        end: control steps of the training at the end of one of its worst episodes, whose first
            remembered moment is entered instead of the present; see `EnteredWorld.rewind`.
        stock: environment and policy that were built in advance; they are used up.

    Raises:
        ConnectionError: the training has ended.
        ValueError: the training refuses, or its task differs from the one registered here.
    """
    visitor = Visitor(folder)
    content = visitor.enter(env_id, record)
    snapshot = WorldSnapshot.from_bytes(content["snapshot"])
    shown = content["policy"]
    if end >= 0:
        snapshot = visitor.past(env_id, end).snapshot
    if stock is None:
        stock = EntryStock(folder)
    env, policy = stock.take(snapshot, shown)
    try:
        lab = LiveLab.driven_by(env, policy, cfg)
    except Exception:
        env.close()
        raise
    card = read_card(env, 0)
    lab.world.card = dataclasses.replace(card, env_id=env_id, num_envs=content["num_envs"])
    iteration = None if shown is None else int(shown["iteration"])
    entered = EnteredWorld(lab, env_id, snapshot.step, iteration, snapshot, visitor, record)
    entered.task = RunFolder(folder).task or ""
    lab.entered = entered
    return entered
