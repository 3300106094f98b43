"""Actuators of a model's file beside those of a configuration."""

from __future__ import annotations

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import ActuatorCfg, BuiltinPositionActuatorCfg, XmlActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg, SecondActuatorsWarning
from manyworlds.entity.variants import VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg
from manyworlds.scene import SceneCfg
from tests.cli.test_lab_tasks import write_run

LEG = """
<mujoco>
  <worldbody>
    <body name="leg" pos="0 0 1">
      <joint name="hip_joint" axis="0 1 0" damping="1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass="1e-3"/>
      <body name="shin" pos="0 0 -.2">
        <joint name="knee_joint" axis="0 1 0" damping="1"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass="1e-3"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="hip" joint="hip_joint" kp="50"/>
    <general name="knee" joint="knee_joint" dyntype="filter" dynprm=".1" biastype="affine"
      gainprm="9" biasprm="0 -9"/>
  </actuator>
  <sensor>
    <actuatorpos name="hip_pos" actuator="hip"/><actuatorpos name="knee_pos" actuator="knee"/>
  </sensor>
  <keyframe><key name="home" qpos=".1 .2" ctrl=".3 .4" act=".5"/></keyframe>
</mujoco>
"""
HIP = BuiltinPositionActuatorCfg(target_names_expr=("hip.*",), stiffness=20.0, damping=1.0)


def leg() -> mujoco.MjSpec:
    """Return a leg with an actuator at each joint."""
    return mujoco.MjSpec.from_string(LEG)


def leg_cfg(*actuators: ActuatorCfg, replace: bool = True) -> EntityCfg:
    """Configure a leg with further actuators."""
    info = EntityArticulationInfoCfg(actuators, file_actuators="replace" if replace else "keep")
    return EntityCfg(spec_fn=leg, articulation=info)


def env_cfg(robot: EntityCfg) -> ManagerBasedRlEnvCfg:
    """Configure an environment whose actions are positions of the hip."""
    term = ObservationTermCfg(func=mdp.joint_pos_rel)
    action = mdp.JointPositionActionCfg(entity_name="robot", actuator_names=("hip_joint",))
    return ManagerBasedRlEnvCfg(
        scene=SceneCfg(num_envs=1, entities={"robot": robot}),
        decimation=4,
        episode_length_s=100.0,
        actions={"hip": action},
        observations={"actor": ObservationGroupCfg(terms={"q": term})},
    )


def reached(robot: EntityCfg) -> float:
    """Return the hip's position after two seconds with a target of 1 rad."""
    env = ManagerBasedRlEnv(env_cfg(robot), device="cpu")
    env.reset()
    for _ in range(250):
        env.step(torch.ones(1, 1))
    return float(env.scene.entity("robot").data.joint_pos[0, 0])


def test_a_target_is_reached_only_without_the_second_actuator():
    """Miss the target between two servos, with a warning, and reach it with one."""
    with pytest.warns(SecondActuatorsWarning, match=r"joints \['hip_joint'\] .*='replace' in Ent"):
        assert reached(leg_cfg(HIP, replace=False)) == pytest.approx(20 / 70, abs=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reached(leg_cfg(HIP)) == pytest.approx(1.0, abs=0.01)


def test_only_actuators_of_selected_joints_are_replaced():
    """Keep the other actuators, with their sensors and values in keyframes."""
    entity = leg_cfg(HIP).build()
    assert entity.names("actuator") == ("knee", "hip_joint")
    model = entity.compile()
    assert [model.sensor(i).name for i in range(model.nsensor)] == ["knee_pos"]
    assert model.key_ctrl[0].tolist() == [0.4, 0.0] and model.key_act[0].tolist() == [0.5]
    both = BuiltinPositionActuatorCfg(target_names_expr=(".*",), stiffness=20.0, damping=1.0)
    model = leg_cfg(both).build().compile()
    assert model.nu == 2 and model.na == 0 and model.nsensor == 0
    assert model.actuator_gainprm[:, 0].tolist() == [20.0, 20.0]


def test_actuators_that_are_taken_are_not_replaced():
    """Keep an actuator of the file that a configuration takes."""
    knee = XmlActuatorCfg(target_names_expr=("knee.*",))
    assert leg_cfg(HIP, knee).build().names("actuator") == ("knee", "hip_joint")


def test_variants_replace_actuators():
    """Replace the actuators of all variants."""
    cfg = VariantEntityCfg(
        variants={"one": leg, "other": leg},
        articulation=EntityArticulationInfoCfg((HIP,), file_actuators="replace"),
    )
    assert cfg.build().names("actuator") == ("knee", "hip_joint")


def test_wrong_choices_are_refused():
    """Name both choices."""
    with pytest.raises(ValueError, match="must be 'keep' or 'replace', got 'drop'"):
        EntityArticulationInfoCfg(file_actuators="drop")  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manyworlds.entity.SecondActuatorsWarning")
def test_the_lab_steps_a_run_with_second_actuators_by_its_environment(
    tmp_path: Path, monkeypatch, capsys
):
    """Open a run whose policy does not control all actuators of its robot."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")
    from manyworlds.cli.lab import LabOptions, open_lab
    from manyworlds.rl import RslRlOnPolicyRunnerCfg
    from manyworlds.tasks import register_task, registry

    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    cfg = env_cfg(leg_cfg(HIP, replace=False))
    register_task("Second-Actuators", cfg, cfg, RslRlOnPolicyRunnerCfg(experiment_name="second"))
    run = write_run("Second-Actuators", tmp_path, tmp_path)
    lab = open_lab(LabOptions(target=str(run), paused=True))
    lab.loop.mode = "direct"
    out = capsys.readouterr().out
    assert "it does not control robot/hip, robot/knee.\nThe environment of Second-A" in out
    assert np.isfinite(lab.step(5).qpos).all() and lab.environment is not None
    lab.stop()
    with pytest.raises(ValueError, match="it does not control robot/hip, robot/knee"):
        open_lab(LabOptions(target=str(run), stepper="plain"))
