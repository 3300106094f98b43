"""Methods and arguments of earlier releases of the reference."""

from __future__ import annotations

import warnings

import pytest
import torch

from tests.envs.mdp.robot import make_env

pytestmark = pytest.mark.usefixtures("alias")


@pytest.fixture
def ramp_cfg(alias):
    """Return a command that counts its updates, without `env_ids`."""
    from mjlab.managers.command_manager import CommandTerm, CommandTermCfg

    class Ramp(CommandTerm):
        def __init__(self, cfg, env):
            super().__init__(cfg, env)
            self.steps = torch.zeros(self.num_envs)

        @property
        def command(self):
            return self.steps.unsqueeze(1)

        def _resample_command(self, env_ids):
            self.steps[env_ids] = 0.0

        def _update_metrics(self):
            pass

        def _update_command(self):
            self.steps = self.steps + 1.0

    class RampCfg(CommandTermCfg):
        def build(self, env):
            return Ramp(self, env)

    return RampCfg(resampling_time_range=(100.0, 100.0))


def test_a_command_may_update_all_worlds(ramp_cfg):
    """Call an update without ids once per step; at resets, other worlds keep their values."""
    env = make_env(commands={"ramp": ramp_cfg})
    ramp = env.command_manager.get_term("ramp")
    assert ramp.steps.tolist() == [1.0] * 4
    for _ in range(2):
        env.step(torch.zeros(4, 2))
    assert ramp.steps.tolist() == [3.0] * 4
    env.reset(env_ids=[1, 3])
    assert ramp.steps.tolist() == [3.0, 1.0, 3.0, 1.0]


def test_it_is_said_once(alias):
    """Tell of the present signature when the class is defined."""
    from mjlab.managers.command_manager import CommandTerm

    body = {"_update_command": lambda self: None}
    with pytest.warns(DeprecationWarning, match="Old._update_command takes no env_ids"):
        type("Old", (CommandTerm,), body)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type("Old", (CommandTerm,), dict(body))


def test_a_subclass_may_call_the_update_of_its_base_without_ids(alias):
    """Call `super()._update_command()` in the form of the subclass."""
    from mjlab.tasks.velocity.mdp import UniformVelocityCommand, UniformVelocityCommandCfg

    class Slow(UniformVelocityCommand):
        def _update_command(self):
            super()._update_command()
            self.vel_command_b[:, 0].clamp_(max=0.1)

    class SlowCfg(UniformVelocityCommandCfg):
        def build(self, env):
            return Slow(self, env)

    cfg = SlowCfg(
        asset_name="robot",
        resampling_time_range=(1.0, 1.0),
        ranges=UniformVelocityCommandCfg.Ranges(
            lin_vel_x=(1.0, 2.0), lin_vel_y=(0.0, 0.0), ang_vel_z=(0.0, 0.0)
        ),
    )
    env = make_env(commands={"twist": cfg})
    env.step(torch.zeros(4, 2))
    env.reset(env_ids=[2])
    assert env.command_manager.get_command("twist")[:, 0].tolist() == pytest.approx([0.1] * 4)


def test_fields_have_their_earlier_names(alias):
    """Take `asset_name` and `joint_names_expr`, and say how they are named now."""
    from mjlab.actuator import BuiltinPositionActuatorCfg
    from mjlab.envs.mdp.actions import JointPositionActionCfg

    with pytest.warns(DeprecationWarning, match="asset_name: it is named entity_name"):
        cfg = JointPositionActionCfg(asset_name="robot", actuator_names=(".*",))
    assert cfg.entity_name == "robot"
    with pytest.warns(DeprecationWarning, match="it is named target_names_expr"):
        actuator = BuiltinPositionActuatorCfg(joint_names_expr=(".*",), stiffness=1.0, damping=0.1)
    assert actuator.target_names_expr == (".*",)
    with pytest.raises(TypeError, match="asset_nam"):
        JointPositionActionCfg(asset_nam="robot", actuator_names=(".*",))


def test_they_are_gone_with_the_alias():
    """Take only present names without the alias."""
    from manyworlds.compat import mjlab
    from manyworlds.envs.mdp.actions import JointPositionActionCfg

    mjlab.uninstall()
    with pytest.raises(TypeError, match="asset_name"):
        JointPositionActionCfg(asset_name="robot", actuator_names=(".*",))
