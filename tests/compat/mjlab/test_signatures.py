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


def test_configs_of_a_project_have_them_too(alias):
    """Take, read and set earlier names in dataclasses that derive from ours, and copy these."""
    import copy
    import dataclasses

    from mjlab.actuator import IdealPdActuatorCfg
    from mjlab.envs.mdp.actions import JointPositionActionCfg
    from mjlab.tasks.velocity.mdp import UniformVelocityCommandCfg
    from mjlab.viewer import ViewerConfig

    @dataclasses.dataclass(kw_only=True)
    class ClippedActionCfg(JointPositionActionCfg):
        limit: float = 1.0

    @dataclasses.dataclass(kw_only=True)
    class TwiceClippedActionCfg(ClippedActionCfg):
        other_limit: float = 2.0

    @dataclasses.dataclass(kw_only=True)
    class SoftActuatorCfg(IdealPdActuatorCfg):
        softness: float = 0.5

    class PlainCommandCfg(UniformVelocityCommandCfg):
        pass

    @dataclasses.dataclass(kw_only=True)
    class OwnNameCfg(JointPositionActionCfg):
        asset_name: str = "mine"

    with pytest.warns(DeprecationWarning, match="TwiceClippedActionCfg has asset_name"):
        cfg = TwiceClippedActionCfg(asset_name="robot", actuator_names=(".*",), limit=0.5)
    assert (cfg.entity_name, cfg.asset_name, cfg.limit, cfg.other_limit) == ("robot",) * 2 + (
        0.5,
        2.0,
    )
    cfg.asset_name = "dog"
    assert cfg.entity_name == "dog" and "asset_name" not in vars(cfg)
    for other in (copy.deepcopy(cfg), dataclasses.replace(cfg), copy.copy(cfg)):
        assert other == cfg and other.asset_name == "dog"
    with pytest.raises(AttributeError, match="no attribute 'asset_nam'"):
        _ = cfg.asset_nam
    actuator = SoftActuatorCfg(joint_names_expr=("a",), stiffness=1.0, damping=1.0, softness=0.1)
    assert actuator.target_names_expr == actuator.joint_names_expr == ("a",)
    ranges = UniformVelocityCommandCfg.Ranges((0.0, 1.0), (0.0, 0.0), (0.0, 0.0))
    command = PlainCommandCfg(asset_name="robot", resampling_time_range=(1.0, 1.0), ranges=ranges)
    assert command.asset_name == "robot" and ViewerConfig(asset_name="robot").asset_name == "robot"
    own = OwnNameCfg(entity_name="robot", actuator_names=(".*",))
    assert (own.asset_name, own.entity_name) == ("mine", "robot")


def test_they_are_gone_with_the_alias():
    """Take only present names without the alias."""
    from mjlab.envs.mdp.actions import JointPositionActionCfg

    from manyworlds.compat import mjlab

    JointPositionActionCfg(asset_name="robot", actuator_names=(".*",))
    mjlab.uninstall()
    with pytest.raises(TypeError, match="asset_name"):
        JointPositionActionCfg(asset_name="robot", actuator_names=(".*",))
    cfg = JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))
    assert not hasattr(cfg, "asset_name")
