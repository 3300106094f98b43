"""World of a running training that goes on in a lab."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.envs import ManagerBasedRlEnv, environment_of_moment
from manyworlds.envs.edits import (
    AddCase,
    AddDisturbance,
    AddStartState,
    EnvironmentEdit,
    RecordedPush,
    SetValue,
)
from manyworlds.envs.environment_of_world import restore_moment
from manyworlds.envs.mdp.sent_back import StartState
from manyworlds.envs.world_moment import WorldMoment
from manyworlds.envs.world_record import WorldReplay
from manyworlds.lab.entry.visitor import Visitor
from manyworlds.lab.lab import LiveLab
from manyworlds.lab.world_card import read_card
from manyworlds.rl.run_edits import EditRecord
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks.run_configs import configs_of_run

if TYPE_CHECKING:
    from manyworlds.lab.env_driver import EnvironmentDriver
    from manyworlds.lab.env_policies import EnvironmentPolicy
    from manyworlds.lab.lab_cfg import LabCfg
    from manyworlds.rl.entered_policy import SentPolicy


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
    moment: WorldMoment = field(repr=False)
    visitor: Visitor = field(repr=False)
    recorded: int = 0
    """Number of following control steps that the training records."""
    pushed: tuple[StartState, RecordedPush] | None = field(default=None, repr=False)
    """State before the last push, and the push; None before the first."""

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
        replay = WorldReplay(self._driver.env, found.steps)
        self._driver.go_to(found.moment.state, replay)
        return replay

    def start_state(self) -> StartState:
        """Return the present state, from which episodes can begin."""
        return StartState.of(self._driver.moment(), self._driver.env)

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
        push.check(self._driver.env)
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
        push = self._last_push()[1]
        return self.send(
            AddDisturbance(
                name=name,
                body=push.body,
                force=push.force,
                torque=push.torque,
                duration_s=push.duration_s,
                pause_s=pause_s,
                scale=scale,
                any_direction=any_direction,
            )
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
        state, push = self._last_push() if with_push else (self.start_state(), None)
        return self.send(AddCase(name=name, state=state, push=push, seconds=seconds))

    @property
    def _driver(self) -> EnvironmentDriver:
        driver = self.lab.environment
        assert driver is not None
        return driver

    def _last_push(self) -> tuple[StartState, RecordedPush]:
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
    stock: EntryStock | None = None,
) -> EnteredWorld:
    """Open one world of a training that runs in another process as a lab; the caller starts it.

    The lab goes on from the world's present state with the present policy. The training goes on
    meanwhile and knows nothing of the lab.

    Args:
        folder: run folder of the training.
        env_id: index of the world.
        cfg: settings of the lab.
        record: number of following control steps to record, for `EnteredWorld.repeat`.
        stock: environment and policy that were built in advance; they are used up.

    Raises:
        ConnectionError: the training has ended.
        ValueError: the training refuses, or its task differs from the one registered here.
    """
    visitor = Visitor(folder)
    content = visitor.enter(env_id, record)
    moment, shown = WorldMoment.from_bytes(content["moment"]), content["policy"]
    stock = EntryStock(folder) if stock is None else stock
    env, policy = stock.take(moment, shown)
    try:
        lab = LiveLab.driven_by(env, policy, cfg)
    except Exception:
        env.close()
        raise
    card = read_card(env, 0)
    lab.world.card = dataclasses.replace(card, env_id=env_id, num_envs=content["num_envs"])
    iteration = None if shown is None else int(shown["iteration"])
    entered = EnteredWorld(lab, env_id, moment.step, iteration, moment, visitor, record)
    lab.entered = entered
    return entered


class EntryStock:
    """Environment and policy of a run's task for one world, built in advance to be used once.

    Args:
        folder: run folder of the training.

    Raises:
        ValueError: the folder does not name a task that is registered here.
    """

    def __init__(self, folder: Path) -> None:
        self._run = RunFolder(folder)
        task = self._run.task
        if task is None:
            raise ValueError(f"'{folder}' does not name its task: name a run folder.")
        self._task: str = task
        self._env_cfg, self._rl_cfg = configs_of_run(self._run)
        self._ready: tuple[dict[str, int], ManagerBasedRlEnv, Any] | None = None

    def prepare(self, moment: WorldMoment) -> None:
        """Build for a world like this one, whose state is replaced when the stock is used."""
        self.close()
        env = environment_of_moment(moment, self._env_cfg)
        self._ready = moment.variants, env, self._runner(env)

    def prepare_any(self) -> None:
        """Ask the training for its first world, and prepare for it.

        Raises:
            ConnectionError: the training has ended.
        """
        self.prepare(WorldMoment.from_bytes(Visitor(self._run.path).enter(0)["moment"]))

    def take(
        self, moment: WorldMoment, shown: SentPolicy | None
    ) -> tuple[ManagerBasedRlEnv, EnvironmentPolicy | None]:
        """Return an environment at a moment, and the policy that the training has sent.

        Raises:
            ValueError: the moment is of another model, or the policy of other networks.
        """
        ready, self._ready = self._ready, None
        if ready is not None and ready[0] == moment.variants:
            _, env, runner = ready
            restore_moment(env, moment)
        else:
            if ready is not None:
                ready[1].close()
            env, runner = environment_of_moment(moment, self._env_cfg), None
        if shown is None:
            return env, None
        return env, self._policy(runner or self._runner(env), shown)

    def close(self) -> None:
        """Close what was not used."""
        if self._ready is not None:
            self._ready[1].close()
            self._ready = None

    def _runner(self, env: ManagerBasedRlEnv) -> Any:
        from manyworlds.rl.runner import OnPolicyRunner
        from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
        from manyworlds.tasks import load_runner_cls

        make = load_runner_cls(self._task) or OnPolicyRunner
        return make(RslRlVecEnvWrapper(env), asdict(self._rl_cfg), log_dir=None, device="cpu")

    def _policy(self, runner: Any, shown: SentPolicy) -> EnvironmentPolicy:
        weights = shown["actor"]
        checkpoint = {"actor_state_dict": weights, "student_state_dict": weights}
        try:
            runner.alg.load(checkpoint, {"actor": True}, True)
        except (KeyError, RuntimeError) as error:
            raise ValueError(
                "The policy of the training does not fit the networks that its run folder "
                f"describes: {str(error).splitlines()[-1].strip()}"
            ) from None
        policy = runner.get_inference_policy()
        policy.clip_actions = self._rl_cfg.clip_actions
        policy.load_state_dict({"hidden": shown["hidden"]} if shown["hidden"] else {})
        return policy
