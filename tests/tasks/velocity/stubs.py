"""An environment of sensors that show what a test says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch


class StubScene(dict):
    """Sensors and entities by name, on a terrain."""

    terrain: Any = None
    env_origins: Any = None

    def entity(self, name: str) -> Any:
        """Return an entity by name."""
        return self[name]

    def sensor(self, name: str, kind: type) -> Any:
        """Return a sensor by name, whatever its kind."""
        return self[name]


class Contacts(SimpleNamespace):
    """A contact sensor: `landed` is what touched down in the last step."""

    def compute_first_contact(self, dt: float) -> torch.Tensor:
        """Return what the test says, for one control step."""
        assert dt == 0.02
        return self.landed


def contacts(landed: Any = None, **data: Any) -> Contacts:
    """Make a contact sensor; fields that are not given are None."""
    names = ("found", "force", "force_history", "current_air_time", "current_contact_time")
    fields = {name: None if data.get(name) is None else torch.tensor(data[name]) for name in names}
    landed = None if landed is None else torch.tensor(landed)
    return Contacts(data=SimpleNamespace(**fields), landed=landed)


def stub_env(command: Any = None, **scene: Any) -> Any:
    """Make an environment with a command "twist" and a scene of sensors and entities."""
    command = torch.tensor([[1.0, 0.0, 0.0]] if command is None else command)
    manager = SimpleNamespace(
        get_command=lambda name: {"twist": command}[name],
        get_term=lambda name: SimpleNamespace(command={"twist": command}[name]),
    )
    return SimpleNamespace(
        scene=StubScene(scene),
        command_manager=manager,
        step_dt=0.02,
        num_envs=len(command),
        device=command.device,
        random=None,
        reset_buf=torch.zeros(len(command), dtype=torch.bool),
    )


def entity(**data: Any) -> Any:
    """Make an entity whose data are tensors."""
    tensors = {name: torch.as_tensor(value) for name, value in data.items()}
    return SimpleNamespace(data=SimpleNamespace(**tensors))
