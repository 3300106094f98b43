"""Configuration of the learner, in the structure of rsl_rl's settings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SPATIAL_SOFTMAX_CNN = "manyworlds.rl.spatial_softmax:SpatialSoftmaxCNNModel"
"""Class name of a CNN model whose features are the image positions of activations."""

JOINT_ACTOR = "manyworlds.rl.joint_network:JointActorModel"
"""Class name of a policy that all joints share, for robots with other numbers of joints."""
JOINT_CRITIC = "manyworlds.rl.joint_network:JointCriticModel"
"""Class name of a value network that all joints share."""

MASKED_MLP = "manyworlds.rl.masked_actions:MaskedMLPModel"
"""Class name of an MLP policy for robots with different numbers of actions."""

SYMMETRIC_MLP = "manyworlds.rl.symmetry:SymmetricMLPModel"
"""Class name of an MLP model whose action for a mirrored observation is the mirrored action."""
MIRROR_BATCH = "manyworlds.rl.symmetry:mirror_batch"
"""Function that appends the mirror images of a batch of observations and actions."""

Settings = dict[str, Any]
"""Settings in the form that rsl_rl takes: plain data by name."""


def gaussian_distribution() -> dict[str, str | float]:
    """Return settings of a Gaussian policy with a state-independent standard deviation."""
    return {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}


def masked_gaussian_distribution(shared_std: bool = False) -> Settings:
    """Return settings of a Gaussian policy whose padded actions do not count.

    Args:
        shared_std: use one standard deviation for all actions, as `JOINT_ACTOR` needs it.
    """
    name = "manyworlds.rl.masked_actions:MaskedGaussianDistribution"
    return {**gaussian_distribution(), "class_name": name, "shared_std": shared_std}


@dataclass
class RslRlModelCfg:
    """Configuration of a network."""

    hidden_dims: tuple[int, ...] = (128, 128, 128)
    """Widths of the hidden layers."""
    activation: str = "elu"
    obs_normalization: bool = False
    """Normalize observations by their running mean and standard deviation."""
    cnn_cfg: Settings | None = None
    """Settings of convolutions over image groups, for `CNNModel` and `SPATIAL_SOFTMAX_CNN`."""
    distribution_cfg: Settings | None = None
    """Settings of the action distribution; None for a network without one (a critic)."""
    rnn_type: str | None = None
    """`lstm` or `gru`, for `RNNModel`."""
    rnn_hidden_dim: int = 256
    rnn_num_layers: int = 1
    class_name: str = "MLPModel"
    """`MLPModel`, `RNNModel`, `CNNModel`, or `module:class` of another model, such as
    `SYMMETRIC_MLP` and `JOINT_ACTOR`."""


@dataclass(kw_only=True)
class RslRlSymmetryCfg:
    """Configuration of rsl_rl's symmetry extension; off unless one of its uses is on."""

    use_data_augmentation: bool = False
    """Learn from each batch and from its mirror image."""
    use_mirror_loss: bool = False
    """Penalize the squared difference between the mean action for a mirrored observation and the
    mirrored mean action."""
    mirror_loss_coeff: float = 1.0
    """Weight of this penalty."""
    data_augmentation_func: str = MIRROR_BATCH
    """Name `module:function` of the function that appends mirror images to a batch."""


@dataclass(kw_only=True)
class RslRlRndCfg:
    """Configuration of random network distillation: rewards for observations that are new.

    Two networks observe the groups `obs_groups["rnd_state"]`, by default those of the actor. One
    keeps its random weights, and the other learns to predict its output; the error is the reward.
    """

    weight: float = 0.0
    """Weight of this reward per second, as of the rewards of the environment; 0 for none."""
    weight_schedule: Settings | None = None
    """Change of the weight with the number of control steps: `mode` ("constant", "step" or
    "linear"), `final_step` and `final_value`, and for "linear" `initial_step`."""
    reward_normalization: bool = False
    """Divide the reward by the standard deviation of its discounted sum."""
    state_normalization: bool = False
    """Normalize the observations."""
    learning_rate: float = 0.001
    num_outputs: int = 1
    """Size of the predicted output."""
    predictor_hidden_dims: tuple[int, ...] = (128, 128)
    target_hidden_dims: tuple[int, ...] = (128, 128)
    activation: str = "elu"


@dataclass
class RslRlPpoAlgorithmCfg:
    """Configuration of PPO."""

    num_learning_epochs: int = 5
    num_mini_batches: int = 4
    learning_rate: float = 0.001
    schedule: Literal["adaptive", "fixed"] = "adaptive"
    """`adaptive` adjusts the learning rate to reach the desired KL divergence between policies."""
    gamma: float = 0.99
    lam: float = 0.95
    entropy_coef: float = 0.005
    desired_kl: float = 0.01
    max_grad_norm: float = 1.0
    value_loss_coef: float = 1.0
    use_clipped_value_loss: bool = True
    clip_param: float = 0.2
    normalize_advantage_per_mini_batch: bool = False
    optimizer: Literal["adam", "adamw", "sgd", "rmsprop"] = "adam"
    share_cnn_encoders: bool = False
    """Share the actor's convolutions with the critic."""
    class_name: str = "PPO"
    """`PPO`, or `module:class` of another algorithm."""
    use_mixed_precision: bool = field(default=False, kw_only=True)
    """Multiply matrices in bfloat16 while learning, which is faster on some processors only."""
    critic_learning_rate: float | None = field(default=None, kw_only=True)
    """Constant learning rate of the critic; None for that of the actor. The adaptive rate becomes
    small for policies with many joints or little noise, and the critic learns slowly with it."""
    entropy_stages: tuple[tuple[int, float], ...] = field(default=(), kw_only=True)
    """Iterations from which on other entropy coefficients apply, such as `((200, 0.002),)`: the
    bonus keeps the noise that finds a gait, and later slows its refinement."""
    learning_rate_stages: tuple[tuple[int, float], ...] = field(default=(), kw_only=True)
    """Iterations from which on other learning rates of a fixed schedule apply: a policy with little
    noise changes much with the rate that it learned to walk with."""
    averaged_iterations: float = field(default=0.0, kw_only=True)
    """Time constant [iterations] of an exponential average of the policy's parameters, which
    playback, evaluation and export use; 0 for the last parameters, with which training goes on."""
    capture_update: bool = field(default=False, kw_only=True)
    """Repeat the update by a mini-batch as one CUDA graph, with its learning rate in a tensor. The
    learner is on an NVIDIA GPU, with feed-forward networks and Adam. It has not run there yet."""
    symmetry_cfg: RslRlSymmetryCfg = field(default_factory=RslRlSymmetryCfg, kw_only=True)
    """Uses of the robot's mirror symmetry; none by default."""
    rnd_cfg: RslRlRndCfg = field(default_factory=RslRlRndCfg, kw_only=True)
    """Rewards for new observations; none by default."""


@dataclass(kw_only=True)
class RslRlDistillationAlgorithmCfg:
    """Configuration of distillation: a student imitates the mean actions of a teacher."""

    num_learning_epochs: int = 5
    gradient_length: int = 15
    """Number of control steps that a gradient goes back in time, for a recurrent student."""
    learning_rate: float = 0.001
    max_grad_norm: float | None = None
    loss_type: Literal["mse", "huber"] = "mse"
    optimizer: Literal["adam", "adamw", "sgd", "rmsprop"] = "adam"
    class_name: str = "Distillation"


@dataclass
class RslRlBaseRunnerCfg:
    """Configuration of a training run."""

    seed: int = 42
    num_steps_per_env: int = 24
    """Number of control steps in each world between two updates."""
    max_iterations: int = 300
    """Total number of updates."""
    max_minutes: float | None = field(default=None, kw_only=True)
    """Time limit [min]; training stops with a checkpoint before it is exceeded. None for no
    limit."""
    device: str | None = field(default=None, kw_only=True)
    """Torch device of the learner, such as cuda for worlds on the CPU; None for that of the
    worlds."""
    obs_groups: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"actor": ("actor",), "critic": ("critic",)}
    )
    """Observation groups of each network."""
    save_interval: int = 50
    """Number of iterations between checkpoints."""
    experiment_name: str = "exp1"
    """Name of the folder for the runs of this experiment."""
    run_name: str = ""
    """Suffix of the run folder's name."""
    logger: Literal["tensorboard", "wandb"] = "tensorboard"
    """Destination of the curves: local files for TensorBoard, or these and Weights & Biases."""
    wandb_project: str = "manyworlds"
    wandb_tags: tuple[str, ...] = ()
    resume: bool = False
    """Continue from an earlier run of the task."""
    load_run: str = ".*"
    """Run to resume: the newest whose folder name this regular expression matches as a whole."""
    load_checkpoint: str = r"model_.*.pt"
    """Checkpoint of that run: the last whose file name this regular expression matches as a
    whole."""
    clip_actions: float | None = None
    """Bound on the magnitude of raw actions; None for no bound."""
    upload_model: bool = True
    """Upload checkpoints to Weights & Biases."""


@dataclass
class RslRlOnPolicyRunnerCfg(RslRlBaseRunnerCfg):
    """Configuration of a PPO training run."""

    class_name: str = "OnPolicyRunner"
    actor: RslRlModelCfg = field(
        default_factory=lambda: RslRlModelCfg(distribution_cfg=gaussian_distribution())
    )
    critic: RslRlModelCfg = field(default_factory=RslRlModelCfg)
    algorithm: RslRlPpoAlgorithmCfg = field(default_factory=RslRlPpoAlgorithmCfg)


@dataclass(kw_only=True)
class RslRlDistillationRunnerCfg(RslRlBaseRunnerCfg):
    """Configuration of a distillation run.

    Observation groups and network of the teacher are those of the actor of its own run. The student
    acts, with the noise of its distribution, which stays as it is.
    """

    class_name: str = "DistillationRunner"
    obs_groups: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"student": ("actor",), "teacher": ("actor",)}
    )
    """Observation groups of both networks."""
    teacher_checkpoint: str | None = None
    """Checkpoint of the run that trained the teacher."""
    student: RslRlModelCfg = field(
        default_factory=lambda: RslRlModelCfg(
            distribution_cfg={**gaussian_distribution(), "init_std": 0.1}
        )
    )
    teacher: RslRlModelCfg = field(
        default_factory=lambda: RslRlModelCfg(distribution_cfg=gaussian_distribution())
    )
    algorithm: RslRlDistillationAlgorithmCfg = field(default_factory=RslRlDistillationAlgorithmCfg)


NETWORKS = ("actor", "critic", "student", "teacher")
"""Networks of rsl_rl's algorithms."""
_RNN_TYPES = ("lstm", "gru")
_WEIGHT_SCHEDULES = {
    "constant": (),
    "step": ("final_step", "final_value"),
    "linear": ("initial_step", "final_step", "final_value"),
}


def runner_settings(cfg: RslRlBaseRunnerCfg | Mapping[str, object]) -> Settings:
    """Return a copy of a configuration in rsl_rl's format, which rsl_rl may modify.

    Raises:
        ValueError: a recurrent network has a model that does not support it or an unknown type, or
            the schedule of a weight is incomplete.
    """
    if not isinstance(cfg, Mapping):
        cfg = asdict(cfg)
    settings: Settings = copy.deepcopy(dict(cfg))
    for name in NETWORKS:
        _clean_model(name, settings.get(name, {}))
    algorithm = settings.get("algorithm", {})
    symmetry = algorithm.get("symmetry_cfg") or {}
    if not (symmetry.get("use_data_augmentation") or symmetry.get("use_mirror_loss")):
        algorithm.pop("symmetry_cfg", None)  # rsl_rl would compute the loss to log it
    rnd = algorithm.get("rnd_cfg") or {}
    if not rnd.get("weight"):
        algorithm.pop("rnd_cfg", None)
    elif rnd.get("weight_schedule") is not None:
        _check_schedule(rnd["weight_schedule"])
    return settings


def _clean_model(name: str, model: Settings) -> None:
    """Remove the settings that a network does not use, which its class does not accept."""
    rnn_type = model.get("rnn_type")
    if rnn_type is None:
        for key in ("rnn_type", "rnn_hidden_dim", "rnn_num_layers"):
            model.pop(key, None)
    elif model.get("class_name") == "MLPModel":
        raise ValueError(
            f"{name}.rnn_type is '{rnn_type}', but {name}.class_name is 'MLPModel', which has no "
            "memory: set it to 'RNNModel', or leave out rnn_type."
        )
    elif rnn_type not in _RNN_TYPES:
        raise ValueError(f"{name}.rnn_type is '{rnn_type}', which must be one of {_RNN_TYPES}.")
    if model.get("cnn_cfg") is None:
        model.pop("cnn_cfg", None)


def _check_schedule(schedule: Settings) -> None:
    mode = schedule.get("mode")
    wanted = _WEIGHT_SCHEDULES.get(str(mode))
    if wanted is None or not set(wanted) <= schedule.keys():
        raise ValueError(
            f"algorithm.rnd_cfg.weight_schedule is {dict(schedule)}, but needs a mode of "
            f"{list(_WEIGHT_SCHEDULES)}, 'final_step' and 'final_value' for 'step' and 'linear', "
            "and 'initial_step' for 'linear'."
        )
