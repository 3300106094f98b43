"""Draws for worlds that hold variants start from what each variant was compiled with."""

import mujoco
import pytest
import torch

from manyworlds.entity import VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg

SOME = torch.tensor([0, 1])
# Size [m], mass [kg] and friction by variant.
PROPS = {"small": (0.1, 1.0, 0.5), "large": (0.2, 3.0, 0.8)}


def prop(size: float, mass: float, friction: float):
    """Return a function that makes a box."""
    return lambda: mujoco.MjSpec.from_string(
        "<mujoco><worldbody><body name='prop'><freejoint/><geom name='prop' type='box' "
        f"size='{size} {size} {size}' mass='{mass}' friction='{friction}'/>"
        "</body></worldbody></mujoco>"
    )


@pytest.mark.filterwarnings("ignore:dr.body_mass")
def test_draws_start_from_the_variant():
    """Scale what the world's variant has, also after the world became another variant."""
    cfg = VariantEntityCfg(
        variants={name: prop(*values) for name, values in PROPS.items()},
        assignment=lambda count: [i % 2 for i in range(count)],
    )
    drawn = {dr.geom_friction: 2.0, dr.body_mass: 1.5, dr.geom_size: 1.5}
    events = {
        func.__name__: EventTermCfg(
            func=func,
            mode="step",
            params={
                "asset_cfg": SceneEntityCfg("prop"),
                "ranges": (factor, factor),
                "operation": "scale",
            },
        )
        for func, factor in drawn.items()
    }
    scene = SceneCfg(num_envs=4, entities={"prop": cfg})
    env = ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(decimation=1, scene=scene, events=events), device="cpu"
    )

    def expect(*worlds: tuple[str, bool]) -> None:
        model = env.sim.model
        for world, (name, is_drawn) in enumerate(worlds):
            size, mass, friction = PROPS[name]
            grown = 1.5 if is_drawn else 1.0
            got = [model.geom_size[world, 0, 0], model.geom_rbound[world, 0]]
            got += [model.body_mass[world, -1], model.body_subtreemass[world, 0]]
            got += [model.geom_friction[world, 0, 0]]
            expected = [grown * size, grown * size * 3**0.5, grown * mass, grown * mass]
            expected += [(2.0 if is_drawn else 1.0) * friction]
            torch.testing.assert_close(torch.stack(got), torch.tensor(expected))

    for _ in range(3):
        env.event_manager.apply("step", SOME, dt=env.step_dt)
        expect(("small", True), ("large", True), ("small", False), ("large", False))
    env.sim.assign_variants("prop", [0], [1])
    expect(("large", False), ("large", True), ("small", False), ("large", False))
    env.event_manager.apply("step", SOME, dt=env.step_dt)
    expect(("large", True), ("large", True), ("small", False), ("large", False))
