"""Settings of the learner, as rsl_rl understands them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def gaussian_distribution() -> dict[str, Any]:
    """Settings of a Gaussian policy whose standard deviation does not depend on observations."""
    return {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}


@dataclass(kw_only=True)
class RslRlModelCfg:
    """A network."""

    hidden_dims: tuple[int, ...] = (128, 128, 128)
    """Widths of the hidden layers."""
    activation: str = "elu"
    obs_normalization: bool = False
    """Normalise observations by their running mean and standard deviation."""
    distribution_cfg: dict[str, Any] | None = None
    """Settings of the action distribution; None for a network without one (a critic)."""
    class_name: str = "MLPModel"


@dataclass(kw_only=True)
class RslRlPpoAlgorithmCfg:
    """PPO."""

    num_learning_epochs: int = 5
    num_mini_batches: int = 4
    learning_rate: float = 0.001
    schedule: Literal["adaptive", "fixed"] = "adaptive"
    """`adaptive` follows the desired KL divergence between policies."""
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
    class_name: str = "PPO"


def _obs_groups() -> dict[str, tuple[str, ...]]:
    return {"actor": ("actor",), "critic": ("critic",)}


@dataclass(kw_only=True)
class RslRlBaseRunnerCfg:
    """A training run."""

    seed: int = 42
    num_steps_per_env: int = 24
    """Control steps in each world between two updates."""
    max_iterations: int = 300
    """Updates in total."""
    obs_groups: dict[str, tuple[str, ...]] = field(default_factory=_obs_groups)
    """Which observation groups each network sees."""
    save_interval: int = 50
    """Iterations between checkpoints."""
    experiment_name: str = "exp1"
    """Folder for the runs of this experiment."""
    run_name: str = ""
    """Appended to the name of the run's folder."""
    logger: Literal["tensorboard", "wandb"] = "tensorboard"
    wandb_project: str = "manyworlds"
    clip_actions: float | None = None
    """Bound on the magnitude of raw actions; None leaves them as they are."""


@dataclass(kw_only=True)
class RslRlOnPolicyRunnerCfg(RslRlBaseRunnerCfg):
    """A training run of PPO."""

    class_name: str = "OnPolicyRunner"
    actor: RslRlModelCfg = field(
        default_factory=lambda: RslRlModelCfg(distribution_cfg=gaussian_distribution())
    )
    critic: RslRlModelCfg = field(default_factory=RslRlModelCfg)
    algorithm: RslRlPpoAlgorithmCfg = field(default_factory=RslRlPpoAlgorithmCfg)
