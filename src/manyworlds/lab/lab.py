"""The lab: one live world."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import mujoco
from numpy.typing import ArrayLike

from manyworlds.lab.edits.model_edits import ModelEdits
from manyworlds.lab.facts import LabFacts, changes_facts
from manyworlds.lab.lab_cfg import LabCfg
from manyworlds.lab.loop.commands import CommandFuture
from manyworlds.lab.loop.modes import Modes
from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.moments.frames import StepRows
from manyworlds.lab.moments.history import EditHistory
from manyworlds.lab.moments.states import SavedStates
from manyworlds.lab.moments.timeline import Timeline
from manyworlds.lab.moments.timeline_parts import TimedEdits
from manyworlds.lab.pictures.film.filmer import Filmer
from manyworlds.lab.pictures.lab_cameras import LabCamera, LabCameras
from manyworlds.lab.play.contact_events import ContactEvents
from manyworlds.lab.play.drawings import UserDrawings
from manyworlds.lab.play.launcher import Launcher
from manyworlds.lab.play.perturb import Perturbation
from manyworlds.lab.play.series import StepSeries
from manyworlds.lab.readers.server_view import ServerView
from manyworlds.lab.recording.recorder import Recorder
from manyworlds.lab.recording.replay import Replay
from manyworlds.lab.robots.control import NOBODY, RobotControl, controls_of
from manyworlds.lab.robots.driving import Driving
from manyworlds.lab.robots.keyframes import Keyframes
from manyworlds.lab.robots.presets import start_sequence
from manyworlds.lab.robots.sequence import Pose, PoseSequencer
from manyworlds.lab.scene import SceneEditor
from manyworlds.lab.scene.conversions import Conversions
from manyworlds.lab.scene.rebuild import Rebuilt, Replacement, Transition, keep_names
from manyworlds.lab.verb_methods import LabVerbs
from manyworlds.lab.verbs import Reply, describe_verbs, find_verb
from manyworlds.lab.verbs.gathered_facts import GatheredFacts
from manyworlds.lab.world.diagnostics import LabDiagnostics
from manyworlds.lab.world.options import changed_options, check_option, read_options, set_option
from manyworlds.lab.world.views import ElementView, make_view
from manyworlds.lab.world.world import World, world_from_env
from manyworlds.utils.newton import avoid_sparse_newton

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.lab.robots.policy import PolicyController
    from manyworlds.lab.task.env_policies import EnvironmentPolicy
    from manyworlds.lab.task.env_stepper import EnvironmentStepper
    from manyworlds.lab.training.entered_world import EnteredWorld

_T = TypeVar("_T")


class LiveLab(LabDiagnostics):
    """One world that runs in real time, to be observed, perturbed, controlled and recorded.

    It only connects its parts: `loop` advances the world, `controls` have the owner and the targets
    of each robot, `states` are saved states, `keyframes` those of the model, `perturbation` pulls
    bodies, `recorder` and `replay` record and play. Use it as a context manager, or call `stop`.

    Args:
        world: the world to run.
        cfg: settings; not modified.

    Raises:
        ValueError: MuJoCo has no option of a given name.
    """

    def __init__(self, world: World, cfg: LabCfg | None = None) -> None:
        if cfg is None:
            cfg = LabCfg()
        self.verbs = LabVerbs(self.call)
        """Verbs, as the page and network clients call them: each replies with plain data."""
        self.phases = ["compiled"]
        """Steps of starting and stopping, in the order in which they were carried out."""
        self.last_compile_error = ""
        """Reason why the last `rebuild` failed; empty if it did not."""
        self.rebuild_notes: tuple[str, ...] = ()
        """Sentences about what the last rebuild did not keep, see `Rebuilt.notes`."""
        self.environment: EnvironmentStepper | None = None
        """The task's environment that steps the world; None in plain MuJoCo."""
        self.entered: EnteredWorld | None = None
        """The world of a running training that goes on here; None for another world."""
        self.cameras = LabCameras(self)
        """Cameras of the model, and those added at run time."""
        self.conversions = Conversions(self)
        """Conversions of meshes to props, which take a while."""
        self.filmer = Filmer(self)
        """Films of the world, and the camera path."""
        self.film = self.filmer.start
        """Starts a film of the last or next seconds, of the present state, or of a recording."""
        self.history = EditHistory()
        """Edits of the world by its scene editor and by `set_model`, for undo and redo."""
        self.edits = ModelEdits(self)
        """Edits of fields of the model; see `set_model`."""
        self.drawings = UserDrawings()
        """Shapes that programs draw into the view."""
        self.scene = SceneEditor(self)
        """Editor of the scene: adds, moves, renames and removes robots and props."""
        self.source: Callable[[], LiveLab] | None = None
        """Opens a lab of the same model file, task or run, for `reload`; None if not known."""
        self.server = ServerView()
        """Server for programs, if one serves this lab."""
        self.gathered = GatheredFacts(self)
        """Keeps `facts` for all readers."""
        self._cfg = dataclasses.replace(cfg)
        self._rebuild_calls: list[Callable[[], None]] = []
        self._views: weakref.WeakSet[ElementView] = weakref.WeakSet()
        self._set_options(world)
        data = world.new_data()
        loop = self.loop = PhysicsLoop(
            world.model, data, controls_of(world, data), world.reset, cfg.start_paused
        )
        loop.mode = cfg.mode
        loop.speed = cfg.speed
        loop.mode_locked = cfg.mode_lock
        rows = StepRows(loop)  # the recorder must not refer to the lab
        cameras = self.cameras
        self.timeline = Timeline(loop, rows, TimedEdits(self), cfg.timeline)
        self.recorder = Recorder(loop, world.model_hash, cfg.recorder, cameras, rows)
        self.modes = Modes(loop)
        self.bind_world(world, SavedStates(loop, world))
        self.driving = Driving(self)
        """Driving of robots by keys, pads and gamepads that are held."""
        self.bindings = self.driving.bindings
        """Inputs that move actuators while a robot is driven."""
        self.launcher = Launcher(self)
        """Launches of free bodies at targets."""
        self.contacts = ContactEvents(self)
        """Watches of contacts, and the log of what they saw."""
        self.on_contact = self.contacts.watch
        """Registers a function to call when a contact begins or ends."""
        self.series = StepSeries(self)
        """Numbers after each step, for plots."""
        for robot in self.controls:
            robot.take(cfg.start_owner)
        self.phases.append("bound")

    def bind_world(self, world: World, states: SavedStates) -> None:
        """Create the parts that depend on the model; views of another model expire."""
        for view in self._views:
            view.expire()
        self._views.clear()
        loop = self.loop
        self.world = world
        self.controls = loop.controls
        self.keyframes = Keyframes(loop, world.elements, world.reset)
        self.perturbation = Perturbation(loop)
        self.states = states
        self.replay = Replay(loop, self.recorder, self.states, world.robots, world.reset)
        self.timeline.bind(world, self.perturbation)
        self.replay.before_start = self.timeline.return_to_present
        give_way = self.timeline.before(self.replay.give_way)
        states.before_restore = self.keyframes.before_put = give_way

    @classmethod
    def from_env(
        cls, env: ManagerBasedRlEnv, env_id: int = 0, cfg: LabCfg | None = None
    ) -> LiveLab:
        """Open one world of a batch as a lab that continues from its present state.

        Robots keep their present controls, and have no owner at first. The batch does not change. A
        reset returns to the present state.

        Args:
            env: the environment.
            env_id: index of the world.
            cfg: settings of the lab; None starts in direct mode.

        Raises:
            ValueError: there is no such world.
        """
        if cfg is None:
            cfg = LabCfg(mode="direct", start_owner=NOBODY)
        return cls(world_from_env(env, env_id), cfg)

    @classmethod
    def driven_by(
        cls,
        env: ManagerBasedRlEnv,
        policy: EnvironmentPolicy | None = None,
        cfg: LabCfg | None = None,
    ) -> LiveLab:
        """Open an environment of one world as a lab that the environment drives.

        The world then has the task's commands, rewards, terminations and randomization; see
        `EnvironmentStepper`. The owner of all robots is `policy`.

        Args:
            env: the environment; `stop` closes it.
            policy: maps observations to actions; None takes actions of zero.
            cfg: settings of the lab.

        Raises:
            ValueError: the environment has several worlds, or its engine is not bit-exact.
        """
        from manyworlds.lab.task.env_stepper import EnvironmentStepper, world_of_environment

        stepper = EnvironmentStepper(env, policy)
        lab = cls(world_of_environment(env), cfg)
        stepper.start(lab.loop)
        lab.environment = stepper
        return lab

    @classmethod
    def walk_into(
        cls,
        env: ManagerBasedRlEnv,
        env_id: int,
        policy: EnvironmentPolicy | None = None,
        cfg: LabCfg | None = None,
    ) -> LiveLab:
        """Open one world of a batch as a lab that goes on with its task and its policy.

        With the same actions and random draws, the world goes on as in the batch, bit for bit: see
        `fork_env`. The batch does not change.

        Args:
            env: the batch.
            env_id: index of the world.
            policy: policy of the batch; one with a memory has `of_world(env_id, env)`, which
                returns it with the memory of one world, for an environment of that world. None
                takes actions of zero.
            cfg: settings of the lab.

        Raises:
            ValueError: there is no such world, it cannot go on alone, or the policy cannot.
        """
        from manyworlds.lab.task.env_policies import policy_of_world
        from manyworlds.lab.world.card import read_card
        from manyworlds.live import fork_env

        alone = fork_env(env, env_id)
        try:
            lab = cls.driven_by(alone, policy_of_world(policy, env_id, alone), cfg)
        except Exception:
            alone.close()
            raise
        lab.world.card = read_card(env, env_id)
        return lab

    def __enter__(self) -> LiveLab:
        """Start the lab."""
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        """Stop the lab; where that takes too long after an error, raise the first error."""
        try:
            self.stop()
        except TimeoutError:
            if error is None:
                raise

    def __getitem__(self, name: str) -> RobotControl:
        """Return the controls of a robot.

        Raises:
            KeyError: there is no such robot.
        """
        return self.controls[name]

    def start(self) -> None:
        """Start the physics thread; all other parts exist before the first step."""
        if self.recorder.cfg.auto_record:
            self.recorder.start()
            self.phases.append("recording")
        atexit.register(self.stop)
        self.loop.start()
        self.phases.append("running")

    def stop(self) -> None:
        """End the physics thread and the recording; a second call does nothing."""
        try:
            self.conversions.close()
            self.loop.stop()
        finally:
            self.recorder.stop()
            self.filmer.cancel()
            self.cameras.close()
            self.leave_environment()
            atexit.unregister(self.stop)
        if self.phases[-1] != "stopped":
            self.phases.append("stopped")

    def rebuild(
        self,
        world: World | Callable[[], World],
        *,
        keep_history: bool = False,
        transition: Transition | None = None,
    ) -> Rebuilt:
        """Replace the world by a changed one that continues from the present state.

        Joints, actuators and mocap bodies of the same name keep their state; robots keep their
        names, owners, targets, controllers and holds; callbacks, steppers, time, mode and speed
        stay. Saved states are converted by name, see `SavedStates.convert`, and a recording
        continues in a new segment. A replay ends, and element views expire. A task's environment
        stops driving: plain MuJoCo advances the new world.

        Args:
            world: the new world, or a function that builds it.
            keep_history: whether this is an edit of the present world, such as of its scene: names
                of robots are those of the new world, options that were changed stay changed, and
                edits in `history` can still be undone.
            transition: state that an edit sets, besides what continues by name.

        Returns:
            The joints that were kept, new and removed, and what else did not continue; or the error
            if the new world cannot be read or does not compile, in which case the old one
            continues, with everything in it.
        """

        def build() -> tuple[World, None]:
            if callable(world):
                return world(), None
            return world, None

        return self._rebuild(build, keep_history, transition)

    def reload(self) -> Rebuilt:
        """Rebuild the world from its `source`: model file, task or run.

        A task's environment is built again, too, and starts a new episode.

        Raises:
            RuntimeError: the source is not known.
        """
        source = self.source
        if source is None:
            raise RuntimeError(
                "The source of this lab is not known: set LiveLab.source, or call rebuild."
            )

        def build() -> tuple[World, EnvironmentStepper | None]:
            fresh = source()
            stepper = fresh.environment
            fresh.environment = None  # `stop` would close it
            fresh.stop()
            return fresh.world, stepper

        return self._rebuild(build)

    def _rebuild(
        self,
        build: Callable[[], tuple[World, EnvironmentStepper | None]],
        is_edit: bool = False,
        transition: Transition | None = None,
    ) -> Rebuilt:
        self.last_compile_error = ""
        with self.history.lock:  # not while an edit is made
            try:
                fresh, stepper = build()
            except (ValueError, OSError, mujoco.FatalError) as error:
                self.last_compile_error = str(error)
                return Rebuilt(error=str(error))
            changed = {}
            if is_edit:
                changed = changed_options(self.model.opt, self.model_options)
            else:
                fresh = keep_names(self.world, fresh)
            self._set_options(fresh)
            for name, value in changed.items():
                set_option(fresh.model.opt, name, value)
            replacement = Replacement(self, fresh, stepper, transition)
            known = {robot.name for robot in self.controls}
            result = replacement.run()
            self.last_compile_error = result.error
            if not result:
                return result
            if is_edit:
                for robot in self.controls:
                    if robot.name not in known and not replacement.renames(robot.name):
                        robot.take(self._cfg.start_owner)
            else:
                self.history.clear()
        for call in list(self._rebuild_calls):
            self.loop.reports.attempt(call)
        self.gathered.expire()
        return result

    @property
    def paused(self) -> bool:
        """True while the world is paused."""
        return self.loop.paused

    def pause(self) -> None:
        """Pause the world."""
        self.loop.paused = True

    def play(self) -> None:
        """Let the world run."""
        self.loop.paused = False

    def reset(self) -> str:
        """Return to the initial state; clear all targets and a fault, and end a replay.

        Returns:
            The session of the replay that the reset ended; empty if there was none.
        """
        ended = self.replay.active_session
        self.loop.reset()
        return ended

    def step(self, num_steps: int = 1) -> Snapshot:
        """Advance the world by some steps, paused or not; see `PhysicsLoop.step`."""
        return self.loop.step(num_steps)

    def post(self, command: Callable[[mujoco.MjModel, mujoco.MjData], _T]) -> CommandFuture[_T]:
        """Queue a change of the world by a program, which may also change the model.

        It raises `Snapshot.model_version`, because nothing else knows what it changes; see
        `PhysicsLoop.post`.
        """
        return self.loop.post(command)

    def read(self, command: Callable[[mujoco.MjModel, mujoco.MjData], _T]) -> CommandFuture[_T]:
        """Queue a function that reads the world between two steps and changes nothing."""
        return self.loop.post(command, edits_model=False)

    def call(self, verb: str, **fields: object) -> Reply:
        """Carry out a verb by its name, as protocols do; `verbs` has each as a method.

        Args:
            verb: name of the verb.
            **fields: its fields.

        Returns:
            The fields of the reply, among them the `frame_id` of a snapshot with the effect.

        Raises:
            VerbError: there is no such verb, a field is missing or wrong, or the lab refuses.
        """
        try:
            return find_verb(verb)(self, fields)
        finally:
            if changes_facts(verb):
                self.gathered.expire()

    def describe_verbs(self) -> list[dict[str, object]]:
        """Return the catalogue of the verbs as plain data."""
        return describe_verbs()

    def lock(self) -> contextlib.AbstractContextManager[object]:
        """Prevent iterations while the lock is held; see `PhysicsLoop.lock`."""
        return self.loop.lock()

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot of the world."""
        return self.loop.snapshot

    @property
    def facts(self) -> LabFacts:
        """The state that snapshots do not contain, at most 0.1 s old; see `LabFace.facts`."""
        return self.gathered.read()

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model; a rebuild replaces it."""
        return self.world.model

    @property
    def robots(self) -> Mapping[str, str]:
        """Prefix of the elements of each robot in the model, by the robot's name."""
        return self.world.robots

    def sync_model(self) -> None:
        """Return at once: `model` is the one that is simulated."""

    def run_policy(
        self,
        path: str | Path,
        robot: str = "",
        commands: Mapping[str, ArrayLike] | None = None,
        *,
        adopt: bool | None = None,
    ) -> PolicyController:
        """Control a robot by a trained policy, from the initial state.

        Args:
            path: the policy, exported (`.onnx`) or a checkpoint in its run folder (`.pt`).
            robot: name of the robot; the only one if empty.
            commands: values of the command terms, by name; 0 by default.
            adopt: whether the world takes the gains of training where they differ, as it always
                takes the timestep; None does so except in a world of a batch, whose gains may be
                randomized.

        Returns:
            The controller, whose `commands` may be changed at any time; its `differences` describe
            how the world differed from that of training.

        Raises:
            KeyError: there is no such robot.
            ValueError: the policy does not fit it, or there are several robots and none is named.
            FileNotFoundError: there is no such policy.
            MissingExtraError: the extra 'train' is not installed.
            RuntimeError: a task's environment steps the world.
        """
        from manyworlds.lab.robots.policy import start_policy

        return start_policy(self, path, self.only_robot(robot), commands, adopt)

    def run_sequence(
        self,
        poses: str | tuple[Pose, ...],
        robot: str = "",
        *,
        loop: bool = True,
        delay: float = 0.5,
        autoplay: bool = True,
    ) -> PoseSequencer:
        """Move a robot through a pose sequence.

        Args:
            poses: the poses, or a name of `find_presets`.
            robot: name of the robot; the only one if empty.
            loop: whether to restart after the last pose.
            delay: time before the first transition [s].
            autoplay: whether to start at once; otherwise with `play`.

        Returns:
            The sequence, which can be stopped and moved to any of its poses.

        Raises:
            KeyError: there is no such robot or preset, or a pose names an actuator that the robot
                does not have.
            ValueError: there is no pose, or there are several robots and none is named.
        """
        return start_sequence(self.only_robot(robot), poses, loop, delay, autoplay)

    def view(self, kind: str, name: str) -> ElementView:
        """Return an element's arrays in the model and the data, by name with or without prefix.

        The arrays share memory with the loop: read them under `lock`, write them in a command.

        Raises:
            KeyError: there is no such element.
            ValueError: there is no such kind.
        """
        view = make_view(self.world.model, self.loop.data, kind, name, self.world.robots)
        self._views.add(view)
        return view

    def camera(self, name: str) -> LabCamera:
        """Return a camera by name; see `LabCameras`.

        Raises:
            VerbError: there is no such camera.
        """
        return self.cameras[name]

    def ask_for_images(
        self, request: dict[str, Any], descriptor: int | None = None
    ) -> dict[str, Any]:
        """Carry out a request of a reader of images; see `LabCameras.answer`."""
        return self.cameras.answer(request, descriptor)

    def owner_of(self, body: int) -> str | None:
        """Return the robot that a body belongs to, or None."""
        return self.world.elements.owners["body"][body]

    def set_option(self, name: str, value: ArrayLike) -> None:
        """Change one of MuJoCo's options from the next step on.

        Raises:
            ValueError: MuJoCo has no such option, or the value is invalid.
            TypeError: the value has the wrong type.
        """
        check_option(name, value)
        self.loop.do(lambda model, data: set_option(model.opt, name, value))

    def set_model(self, element: str | tuple[str, str], field: str, value: object) -> object:
        """Change a field of an element of the model, from the next step on and in later rebuilds.

        What follows from it is computed again; the state stays; `history` can undo it.

        Args:
            element: `body:cup` or `("body", "cup")`, with or without the robot's prefix.
            field: name of a field in MJCF or MuJoCo; `docs/lab.md` lists them.
            value: numbers as the compiled model has them (radians, frames of bodies), or a name.

        Returns:
            The new value.

        Raises:
            KeyError: there is no such element, or no such field that can change.
            ValueError: the value is not valid, or MuJoCo refuses it.
        """
        return self.edits.set(element, field, value)

    def on_reset(self, call: Callable[[], None]) -> None:
        """Register a function to call after each reset, in the physics thread."""

        @functools.wraps(call)
        def after(model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
            call()

        self.loop.on_reset(after)

    def on_rebuild(self, call: Callable[[], None]) -> None:
        """Register a function to call after each `rebuild`, in the thread that requested it."""
        self._rebuild_calls.append(call)

    def leave_environment(self) -> None:
        """End and close the task's environment, if one steps the world."""
        stepper, self.environment = self.environment, None
        if stepper is not None:
            stepper.close()

    def only_robot(self, robot: str = "") -> RobotControl:
        """Return the controls of the named robot, or of the only one.

        Raises:
            KeyError: there is no such robot.
            ValueError: there are several robots and none is named, or none has actuators.
        """
        names = [control.name for control in self.controls]
        if not names:
            raise ValueError("No robot of this world has actuators: none can be controlled.")
        if not robot and len(names) > 1:
            raise ValueError(f"Name one of the robots: {', '.join(names)}.")
        return self[robot or names[0]]

    def _set_options(self, world: World) -> None:
        self.model_options = read_options(world.model.opt)
        for name, value in self._cfg.options.items():
            set_option(world.model.opt, name, value)
        avoid_sparse_newton(world.model)
