"""One world's model fields in a model that is drawn."""

import copy

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import Simulation
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.model_sync import (
    VIEWER_INERTIAL_FIELDS,
    VIEWER_MODEL_FIELDS,
    disable_model_sameframe_shortcuts,
    sync_model_fields,
)
from manyworlds.viewer.offscreen_renderer import OffscreenRenderer
from manyworlds.viewer.world_mirror import WorldMirror

MODEL = """
<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0  .3 0 0  0 .3 0  0 0 .3"/></asset>
  <worldbody>
    <light pos="0 0 3"/>
    <camera name="side" pos="0 -2 .5" xyaxes="1 0 0 0 0 1"/>
    <body name="box" pos="0 0 .5">
      <freejoint/>
      <geom name="box" type="box" size=".2 .2 .2" rgba="1 1 1 1"/>
      <geom name="mesh" type="mesh" mesh="wedge" pos="0 0 .4"/>
      <site name="s"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def sim(engine):
    """Two worlds, the second with a small red box somewhere else."""
    sim = Simulation(2, model=mujoco.MjModel.from_xml_string(MODEL), device="cpu")
    sim.expand_model_fields(("geom_rgba", "geom_size", "geom_pos", "cam_pos", "body_mass"))
    sim.model.geom_rgba[1, 0] = torch.tensor([1.0, 0.0, 0.0, 1.0])
    sim.model.geom_size[1, 0] = 0.1
    sim.model.geom_pos[1, 0] = torch.tensor([0.3, 0.0, 0.0])
    sim.model.cam_pos[1, 0, 1] = -3.0
    return sim


def test_fields_are_fields():
    """Name only fields that models have."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    for name in VIEWER_MODEL_FIELDS | VIEWER_INERTIAL_FIELDS:
        assert isinstance(getattr(model, name), np.ndarray), name


def test_sync(sim):
    """Copy the rows of one world, and leave fields alone that were not named."""
    model = copy.copy(sim.mj_model)
    sync_model_fields(model, sim.model, {"geom_rgba", "geom_size"}, 1)
    np.testing.assert_allclose(model.geom_rgba[0], [1, 0, 0, 1])
    np.testing.assert_allclose(model.geom_size[0], 0.1)
    np.testing.assert_array_equal(model.geom_pos, sim.mj_model.geom_pos)
    sync_model_fields(model, sim.model, {"geom_rgba", "geom_size"}, 0)
    np.testing.assert_allclose(model.geom_rgba, sim.mj_model.geom_rgba, atol=1e-7)


def test_same_frame_is_no_shortcut(sim):
    """Let kinematics follow a geom that shared its body's frame when compiled."""
    model = copy.copy(sim.mj_model)
    data = mujoco.MjData(model)
    model.geom_pos[0] = [0.3, 0, 0]
    mujoco.mj_kinematics(model, data)
    before = data.geom_xpos[0, 0]
    disable_model_sameframe_shortcuts(model)
    mujoco.mj_kinematics(model, data)
    assert (before, data.geom_xpos[0, 0]) == (0.0, pytest.approx(0.3))


def test_absent_mesh_is_not_drawn(sim):
    """Hide a mesh geom without a mesh, and show it again in worlds that have one."""

    class Rows:
        geom_dataid = torch.tensor([[-1, 0], [-1, -1]])
        geom_rgba = torch.ones(1, 2, 4)
        geom_matid = torch.full((1, 2), -1)

    model = copy.copy(sim.mj_model)
    sync_model_fields(model, Rows(), {"geom_dataid"}, 1)
    assert model.geom_rgba[1, 3] == 0.0
    sync_model_fields(model, Rows(), {"geom_dataid"}, 0)
    assert model.geom_rgba[1, 3] == 1.0


def test_drawn_world(sim):
    """Have pose, model and camera of a world as they are in the simulation."""
    sim.data.qpos[1, 2] = 2.0
    world = WorldMirror(sim.mj_model, sim.model, sim.expanded_fields)
    world.load(sim.data, 1)
    np.testing.assert_allclose(world.data.geom_xpos[0], [0.3, 0, 2.0], atol=1e-6)
    np.testing.assert_allclose(world.data.cam_xpos[0], [0, -3, 0.5], atol=1e-6)
    world.load(sim.data, 0, dynamics=True)
    np.testing.assert_allclose(world.data.geom_xpos[0], [0, 0, 0.5], atol=1e-6)
    with pytest.raises(ValueError, match=r"World 2 is out of range.*\[0, 2\)"):
        world.load(sim.data, 2)


@pytest.mark.usefixtures("gl")
def test_pictures_show_the_world(sim):
    """Draw the color that the world has, through a camera of the model, too."""
    cfg = ViewerConfig(height=48, width=64, distance=2.0, lookat=(0, 0, 0.5), enable_shadows=False)
    renderer = OffscreenRenderer(
        sim.mj_model, cfg, sim_model=sim.model, expanded_fields=sim.expanded_fields
    )
    reds = []
    for env_idx in (0, 1):
        renderer.update(sim.data, env_idx=env_idx)
        picture = renderer.render().astype(int)
        reds.append(int((picture[..., 0] > picture[..., 1] + 60).sum()))
        renderer.update(sim.data, camera="side", env_idx=env_idx)
        assert renderer.render().std() > 1
    assert reds[0] == 0
    assert reds[1] > 10
    with pytest.raises(ValueError, match="nowhere"):
        renderer.update(sim.data, camera="nowhere")
    renderer.close()
    renderer.initialize()
    renderer.update(sim.data)
    renderer.close()
