"""Networks as actuators, against loops by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import torch

from manyworlds.actuator import LearnedLstmActuatorCfg, LearnedMlpActuatorCfg
from tests.actuator.robots import make, shake

ALL = (".*_(hip|knee)",)
SCALES = {"pos_scale": 2.0, "vel_scale": 0.25, "torque_scale": 10.0}
MOTOR = {"effort_limit": 3.0, "saturation_effort": 4.0, "velocity_limit": 20.0}


class Lstm(torch.nn.Module):
    """Two layers and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(2, 5, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(5, 1)

    def forward(self, x: torch.Tensor, memory: tuple[torch.Tensor, torch.Tensor]):
        """Return one number a row, and the memory."""
        y, memory = self.lstm(x, memory)
        return self.head(y[:, 0]), memory


@pytest.fixture
def mlp_file(tmp_path: Path) -> str:
    """Save a network that sees three steps."""
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    torch.jit.script(network).save(tmp_path / "mlp.pt")
    return str(tmp_path / "mlp.pt")


@pytest.fixture
def lstm_file(tmp_path: Path) -> str:
    """Save a recurrent network."""
    torch.manual_seed(2)
    torch.jit.script(Lstm()).save(tmp_path / "lstm.pt")
    return str(tmp_path / "lstm.pt")


def _clip(effort: float, vel: float) -> float:
    top = min(max(4.0 * (1 - vel / 20.0), -3.0), 3.0)
    bottom = max(min(4.0 * (-1 - vel / 20.0), 3.0), -3.0)
    return min(max(effort, bottom), top)


def _drive(entity, sim, step: int, resets: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Change the state, perhaps reset worlds, and compute controls; return error and velocity."""
    if resets:
        entity.reset(torch.tensor(resets))
    shake(entity, sim, seed=step)
    entity.write_data_to_sim()
    data = entity.data
    return data.joint_pos_target - data.joint_pos, data.joint_vel.clone()


RESETS = {3: [1], 4: [0, 2]}


@pytest.mark.parametrize("order", ["pos_vel", "vel_pos"])
def test_mlp_sees_its_history(mlp_file: str, order: Literal["pos_vel", "vel_pos"]):
    """Feed each joint its last three errors and velocities, the newest first."""
    cfg = LearnedMlpActuatorCfg(
        target_names_expr=ALL, network_file=mlp_file, input_order=order, **SCALES, **MOTOR
    )
    entity, sim = make(cfg)
    network = torch.jit.load(mlp_file)
    histories: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[] for _ in range(3)]
    for step in range(7):
        for world in RESETS.get(step, []):
            histories[world] = []
        error, vel = _drive(entity, sim, step, RESETS.get(step, []))
        for world, history in enumerate(histories):
            now = (error[world] * 2.0, vel[world] * 0.25)
            history[:] = [now, *history][:3]
            seen = history + [history[-1]] * (3 - len(history))
            for joint in range(4):
                errors = [pair[0][joint] for pair in seen]
                vels = [pair[1][joint] for pair in seen]
                row = errors + vels if order == "pos_vel" else vels + errors
                effort = network(torch.stack(row)[None]).item() * 10.0
                expected = _clip(effort, vel[world, joint].item())
                assert sim.data.ctrl[world, joint].item() == pytest.approx(expected, abs=1e-5)


def test_lstm_remembers_each_joint_of_each_world(lstm_file: str):
    """Carry hidden state from step to step, and forget it in the worlds that are reset."""
    cfg = LearnedLstmActuatorCfg(target_names_expr=ALL, network_file=lstm_file, **SCALES, **MOTOR)
    entity, sim = make(cfg)
    network = torch.jit.load(lstm_file)

    def fresh():
        return torch.zeros(2, 1, 5), torch.zeros(2, 1, 5)

    memory = {(world, joint): fresh() for world in range(3) for joint in range(4)}
    for step in range(6):
        for world in RESETS.get(step, []):
            memory |= {(world, joint): fresh() for joint in range(4)}
        error, vel = _drive(entity, sim, step, RESETS.get(step, []))
        for (world, joint), before in memory.items():
            row = torch.stack([error[world, joint] * 2.0, vel[world, joint] * 0.25])
            output, memory[world, joint] = network(row.reshape(1, 1, 2), before)
            expected = _clip(output.item() * 10.0, vel[world, joint].item())
            assert sim.data.ctrl[world, joint].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "lstm"])
def test_memory_is_saved_and_restored(kind: str, mlp_file: str, lstm_file: str):
    """Compute bit for bit the same controls after going back, from another object, too."""
    make_cfg = LearnedMlpActuatorCfg if kind == "mlp" else LearnedLstmActuatorCfg
    file = mlp_file if kind == "mlp" else lstm_file
    cfg = make_cfg(target_names_expr=ALL, network_file=file, **SCALES, **MOTOR)
    entity, sim = make(cfg)
    with torch.inference_mode():
        for step in range(3):
            _drive(entity, sim, step, [])
    state = entity.state_dict()
    _drive(entity, sim, 3, [])
    expected = sim.data.ctrl.clone()
    other, other_sim = make(cfg)
    for again, again_sim in ((entity, sim), (other, other_sim)):
        again.load_state_dict(state)
        _drive(again, again_sim, 3, [])
        assert torch.equal(again_sim.data.ctrl, expected)


def test_networks_that_do_not_fit_are_refused(mlp_file: str, tmp_path: Path):
    """Name the file that is none, the input that is too long, and the missing memory."""
    common = {"target_names_expr": ALL, **SCALES, **MOTOR}
    (tmp_path / "no.pt").write_text("no")
    with pytest.raises(ValueError, match="no TorchScript module"):
        make(LearnedMlpActuatorCfg(network_file=str(tmp_path / "no.pt"), **common))
    with pytest.raises(ValueError, match="refuses its input"):
        make(LearnedMlpActuatorCfg(network_file=mlp_file, history_length=2, **common))
    with pytest.raises(ValueError, match="has no LSTM"):
        make(LearnedLstmActuatorCfg(network_file=mlp_file, **common))
    with pytest.raises(ValueError, match="input_order must be 'pos_vel' or 'vel_pos'"):
        LearnedMlpActuatorCfg(network_file=mlp_file, input_order="vel", **common)
