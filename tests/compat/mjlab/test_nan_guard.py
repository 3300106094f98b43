"""The guard of a user's own steps: what it sees, and what its files restore."""

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.compat.mjlab.facades.utils.nan_guard import NanGuard, NanGuardCfg
from manyworlds.sim import Simulation
from tests.robots import robot_on_floor


@pytest.fixture(params=["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def sim(request, engine):
    """Simulate four worlds of a robot."""
    return Simulation(4, model=robot_on_floor(request.param), device="cpu")


def _guard(sim, folder, **options):
    cfg = NanGuardCfg(**{"enabled": True, "buffer_size": 3, "output_dir": str(folder)} | options)
    return NanGuard(cfg, 4, sim.mj_model)


@pytest.mark.slow_on_warp
def test_states_before_the_event_are_written(sim, tmp_path):
    """Write the last states of the bad worlds, such that MuJoCo restores them bit for bit."""
    guard = _guard(sim, tmp_path)
    for _ in range(5):
        with guard.watch(sim.data):
            sim.step()
    before = {name: getattr(sim.data, name)[1].clone() for name in ("qpos", "qvel")}
    assert not any(tmp_path.iterdir())
    with guard.watch(sim.data):
        sim.data.qvel[1, 0] = torch.nan
    with np.load(tmp_path / "nan_dump_latest.npz", allow_pickle=True) as file:
        arrays = dict(file)
    about = arrays.pop("_metadata").item()
    assert about["nan_env_ids"] == about["dumped_env_ids"] == [1]
    assert (about["num_envs_total"], about["buffer_size"], about["detection_step"]) == (4, 3, 6)
    assert sorted(arrays) == [f"states_step_{i:06d}" for i in (3, 4, 5)]
    model = mujoco.MjModel.from_binary_path(str(tmp_path / "model_latest.mjb"))
    assert (tmp_path / about["model_file"]).samefile(tmp_path / "model_latest.mjb")
    data = mujoco.MjData(model)
    (row,) = arrays["states_step_000005"]
    assert len(row) == about["state_size"]
    mujoco.mj_setState(model, data, row.astype(np.float64), about["state_spec"])
    for name, expected in before.items():
        np.testing.assert_array_equal(getattr(data, name).astype(np.float32), expected)


def test_one_event_is_written(sim, tmp_path):
    """Report each bad state, but write the first only, and no more worlds than asked for."""
    guard = _guard(sim, tmp_path, max_envs_to_dump=2)
    sim.data.qacc[:3] = torch.inf
    guard.capture(sim.data)
    assert NanGuard.detect_nans(sim.data).tolist() == [True, True, True, False]
    assert guard.check_and_dump(sim.data)
    files = sorted(tmp_path.iterdir())
    assert guard.check_and_dump(sim.data) and sorted(tmp_path.iterdir()) == files
    about = np.load(tmp_path / "nan_dump_latest.npz", allow_pickle=True)["_metadata"].item()
    assert (about["nan_env_ids"], about["dumped_env_ids"]) == ([0, 1, 2], [0, 1])


def test_a_guard_that_is_off_does_nothing(sim, tmp_path):
    """Record, check and write nothing."""
    guard = _guard(sim, tmp_path, enabled=False)
    sim.data.qpos[0, 0] = torch.nan
    with guard.watch(sim.data):
        pass
    assert not guard.check_and_dump(sim.data) and not any(tmp_path.iterdir())


def test_data_of_mujoco_warp_are_read(tmp_path):
    """Read the arrays that MuJoCo Warp's own data hold."""
    pytest.importorskip("mujoco_warp", reason="needs the extra 'gpu'")
    from manyworlds.sim import SimulationCfg

    model = robot_on_floor("i2rt_yam/yam.xml")
    sim = Simulation(4, SimulationCfg(engine="warp"), model=model, device="cpu")
    guard = _guard(sim, tmp_path)
    with guard.watch(sim.wp_data):
        sim.step()
    sim.data.qpos[2] = torch.nan
    assert guard.check_and_dump(sim.wp_data)
    assert NanGuard.detect_nans(sim.wp_data).tolist() == [False, False, True, False]


def test_sizes_are_checked():
    """Refuse an empty buffer."""
    with pytest.raises(ValueError, match="buffer_size must be a whole number of at least 1"):
        NanGuard(NanGuardCfg(buffer_size=0), 1, mujoco.MjModel.from_xml_string("<mujoco/>"))
