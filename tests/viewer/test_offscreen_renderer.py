"""Pictures drawn without a window."""

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs import GymEnv, GymVectorEnv, ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg
from manyworlds.utils import gl as gl_module
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.camera import tracked_body_id
from manyworlds.viewer.offscreen_renderer import OffscreenRenderer, attach_renderer

Origin = ViewerConfig.OriginType
CART = ViewerConfig(
    entity_name="cartpole",
    body_name="cart",
    distance=3.0,
    elevation=-15.0,
    height=96,
    width=128,
    enable_shadows=False,
    enable_reflections=False,
)


@pytest.fixture
def env(make_env, gl):
    """Four cart-poles that differ in their state."""
    return make_env(4)


@pytest.fixture
def renderer(env):
    """A renderer that follows the cart."""
    renderer = OffscreenRenderer(env.sim.mj_model, CART)
    yield renderer
    renderer.close()


def _blue_center(image: np.ndarray) -> np.ndarray:
    """The middle of the blue cart, as (row, column) in [0, 1]."""
    red, green, blue = image.astype(int).transpose(2, 0, 1)
    # The sky is bright; the cart is dark and blue.
    rows, columns = np.nonzero((blue > 2 * red) & (blue > green + 30) & (red < 60))
    assert rows.size > 20, "no cart in the picture"
    return np.array([rows.mean() / image.shape[0], columns.mean() / image.shape[1]])


def test_image(env, renderer):
    """Return an RGB image of the size asked for that is not of one color."""
    renderer.update(env.sim.data)
    image = renderer.render()
    assert image.shape == (96, 128, 3)
    assert image.dtype == np.uint8
    assert image.std() > 10


def test_worlds_differ(env, renderer):
    """Draw each world in its own state, and the same state twice alike."""
    images = []
    for env_idx in (0, 3, 0):
        renderer.update(env.sim.data, env_idx=env_idx)
        images.append(renderer.render())
    np.testing.assert_array_equal(images[0], images[2])
    assert np.abs(images[0].astype(int) - images[1]).max() > 50


def test_does_not_touch_the_simulation(env):
    """Leave state and model of the simulation as they are."""
    visual = env.sim.mj_model.vis.global_
    width, fovy, before = visual.offwidth, visual.fovy, env.sim.data.qpos.clone()
    renderer = OffscreenRenderer(env.sim.mj_model, ViewerConfig(width=2 * width, fovy=20.0))
    renderer.update(env.sim.data, env_idx=2)
    renderer.render()
    renderer.close()
    assert (env.sim.data.qpos == before).all()
    assert (visual.offwidth, visual.fovy) == (width, fovy)


@pytest.mark.parametrize("env_idx", [0, 3])
def test_tracked_body_is_centered(env, renderer, env_idx):
    """Keep the body that is followed in the middle wherever it is."""
    renderer.update(env.sim.data, env_idx=env_idx)
    assert np.abs(_blue_center(renderer.render()) - 0.5).max() < 0.05


def test_world_origin_stays(env):
    """Look at a point of the world when told so: the cart then moves in the picture."""
    cfg = ViewerConfig(
        origin_type=Origin.WORLD,
        lookat=(0.0, 0.0, 1.0),
        distance=4.0,
        elevation=-15.0,
        height=96,
        width=128,
        enable_shadows=False,
    )
    renderer = OffscreenRenderer(env.sim.mj_model, cfg)
    columns = []
    for env_idx in (0, 3):
        renderer.update(env.sim.data, env_idx=env_idx)
        columns.append(_blue_center(renderer.render())[1])
    renderer.close()
    assert columns[0] < 0.4 < 0.6 < columns[1]


def test_large_images(env):
    """Draw images larger than the framebuffer that the model asks for."""
    cfg = ViewerConfig(height=500, width=700, enable_shadows=False)
    renderer = OffscreenRenderer(env.sim.mj_model, cfg)
    renderer.update(env.sim.data)
    assert renderer.render().shape == (500, 700, 3)
    renderer.close()


def test_shadows(env):
    """Draw shadows only when the configuration has them."""
    images = []
    for shadows in (True, False):
        cfg = ViewerConfig(**{**vars(CART), "enable_shadows": shadows})
        renderer = OffscreenRenderer(env.sim.mj_model, cfg)
        renderer.update(env.sim.data)
        images.append(renderer.render().astype(int))
        renderer.close()
    # A shadow makes the floor darker.
    assert (images[1] - images[0]).max() > 30


def test_grid(env, renderer):
    """Tile worlds row by row with a thin gap; leave the rest of the last row empty."""
    grid = renderer.render_grid(env.sim.data, [0, 2, 3], columns=2)
    assert grid.shape == (2 * 96 + 2, 2 * 128 + 2, 3)
    places = {0: (0, 0), 2: (0, 130), 3: (98, 0)}
    for env_idx, (row, column) in places.items():
        renderer.update(env.sim.data, env_idx=env_idx)
        np.testing.assert_array_equal(
            grid[row : row + 96, column : column + 128], renderer.render()
        )
    gap = grid[0, 128]
    assert (grid[96:98] == gap).all()
    assert (grid[:, 128:130] == gap).all()
    assert (grid[98:, 130:] == gap).all()


def test_grid_is_square_by_default(env, renderer):
    """Make about as many columns as rows unless told otherwise."""
    assert renderer.render_grid(env.sim.data, range(4)).shape == (194, 258, 3)


def test_grid_needs_worlds(env, renderer):
    """Refuse a grid of no worlds or of no columns."""
    with pytest.raises(ValueError, match="at least one world"):
        renderer.render_grid(env.sim.data, [])
    with pytest.raises(ValueError, match="columns=0"):
        renderer.render_grid(env.sim.data, [0], columns=0)


def test_diverged_world(env, renderer):
    """Draw a world that is not finite without failing."""
    env.sim.data.qpos[1] = float("nan")
    renderer.update(env.sim.data, env_idx=1)
    assert renderer.render().shape == (96, 128, 3)


def test_unknown_world(env, renderer):
    """Refuse a world that there is not."""
    with pytest.raises(ValueError, match=r"World 4 is out of range: there are 4 worlds"):
        renderer.update(env.sim.data, env_idx=4)


def test_closed(env, renderer):
    """Say that the renderer was closed; close twice without harm."""
    renderer.close()
    renderer.close()
    with pytest.raises(RuntimeError, match="was closed"):
        renderer.render()


def test_no_gl(make_env, monkeypatch):
    """Raise the one line that says what to install where nothing can draw."""
    import manyworlds.utils.gl as module

    monkeypatch.setattr(module, "gl_available", lambda: "Cannot render images: install OpenGL.")
    with pytest.raises(RuntimeError, match=r"^Cannot render images: install OpenGL\.$"):
        OffscreenRenderer(make_env(1).sim.mj_model, CART)


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({}, "world"),
        ({"entity_name": "cartpole"}, "cartpole/base"),
        ({"entity_name": "cartpole", "body_name": "pole"}, "cartpole/pole"),
        ({"body_name": "cartpole/cart"}, "cartpole/cart"),
        ({"entity_name": "cartpole", "origin_type": Origin.WORLD}, "world"),
        (
            {"entity_name": "cartpole", "body_name": "pole", "origin_type": Origin.ASSET_ROOT},
            "cartpole/base",
        ),
    ],
)
def test_tracked_body(make_env, fields, body):
    """Follow the body that the configuration names."""
    model = make_env(1).sim.mj_model
    assert model.body(tracked_body_id(model, ViewerConfig(**fields))).name == body


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"entity_name": "robot"}, "no entity 'robot': use one of 'cartpole'"),
        ({"entity_name": "cartpole", "body_name": "arm"}, "no body 'cartpole/arm': use one of"),
        ({"origin_type": Origin.ASSET_ROOT}, "set entity_name"),
        ({"origin_type": Origin.ASSET_BODY}, "set body_name"),
    ],
)
def test_tracked_body_errors(make_env, fields, message):
    """Say which name is wrong and what there is."""
    with pytest.raises(ValueError, match=message):
        tracked_body_id(make_env(1).sim.mj_model, ViewerConfig(**fields))


def test_model_without_bodies():
    """Say that a model has no entities where one is asked for."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(ValueError, match="there are none"):
        tracked_body_id(model, ViewerConfig(entity_name="robot"))


def test_an_environment_draws_with_an_attached_renderer(gl, env_cfg):
    """Draw the task's world, as it is now."""
    real = ManagerBasedRlEnv(env_cfg, render_mode="rgb_array")
    attach_renderer(real, CART)
    first = real.render()
    real.scene["cartpole"].write_joint_position_to_sim(torch.ones(4, 1), [0])
    assert first.shape == (96, 128, 3)
    assert not np.array_equal(first, real.render())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Cartpole-Balance", "Push-Variants", "Velocity-Rough-Quadruped"])
def test_an_environment_draws_without_being_told_how(gl, task):
    """Draw what the task says at once; draw the present state; draw the same for gymnasium."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 2, 1
    env = ManagerBasedRlEnv(cfg, device="cpu", render_mode="rgb_array")
    first = env.render()
    assert first is not None and first.dtype == np.uint8
    assert first.shape == (cfg.viewer.height, cfg.viewer.width, 3) and first.std() > 5
    for _ in range(10):
        env.step(torch.ones(2, env.action_manager.total_action_dim))
    assert not np.array_equal(first, env.render())
    env.close()
    assert env.renderer is None
    single = GymEnv(cfg, "cpu", render_mode="rgb_array")
    (picture,) = GymVectorEnv(cfg, "cpu", render_mode="rgb_array").render()
    assert single.render().shape == picture.shape == first.shape


def test_a_machine_without_opengl_gets_one_sentence(env_cfg, monkeypatch):
    """Say what fails and what to install, at the first picture; all else works."""
    monkeypatch.setattr(gl_module, "_probe", lambda backend: "no driver")
    gl_module._choose.cache_clear()
    try:
        env = ManagerBasedRlEnv(env_cfg, render_mode="rgb_array")
        env.step(torch.zeros(4, 1))
        with pytest.raises(RuntimeError, match="Cannot render images .*no driver.*: install") as e:
            env.render()
    finally:
        gl_module._choose.cache_clear()
    assert "\n" not in str(e.value) and "apt-get install" in str(e.value)
