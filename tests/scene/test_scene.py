"""Scenes: attaching, options, origins."""

import warnings

import mujoco
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sensor import BuiltinSensor, BuiltinSensorCfg, ContactSensor, ObjRef, Sensor
from manyworlds.sim import Simulation
from manyworlds.terrains import BoxFlatTerrainCfg, TerrainEntityCfg, TerrainGeneratorCfg

BALL = """<mujoco>{option}<worldbody>
  <body name="b"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def ball(option: str = "") -> EntityCfg:
    """Configure a ball whose file sets an option."""
    return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(BALL.format(option=option)))


def test_entities_are_prefixed_and_compiled_together():
    """Attach each entity under its name; no body becomes a shortcut."""
    model = Scene(SceneCfg(entities={"a": ball(), "b": ball()}), "cpu").compile()
    assert [model.body(i).name for i in range(model.nbody)] == ["world", "a/b", "b/b"]
    assert model.body_simple[1:].tolist() == [0, 0]


def test_spec_fn_edits_the_whole():
    """Run the scene's own edit after all entities are attached."""

    def edit(spec: mujoco.MjSpec) -> None:
        assert spec.body("a/b") is not None
        spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 1))

    model = Scene(SceneCfg(entities={"a": ball()}, spec_fn=edit), "cpu").compile()
    assert model.geom("floor").id >= 0


def test_options_of_entities_are_named_and_ignored():
    """Warn with the option's name, and keep the scene's value."""
    cfg = SceneCfg(entities={"a": ball('<option timestep="0.1"/>')})
    with pytest.warns(UserWarning, match="Entity 'a' sets <option> timestep"):
        model = Scene(cfg, "cpu").compile()
    assert model.opt.timestep == 0.002


@pytest.mark.parametrize(
    "setting",
    [
        '<size nuser_geom="1"/>',
        '<visual><map znear="0.001"/></visual>',
        '<size njmax="900" nconmax="300"/>',
        '<size memory="10K"/>',
    ],
)
def test_memory_and_pictures_are_of_the_scene(setting, capfd, recwarn):
    """Ignore sizes of memory and settings of pictures of an entity, without a warning."""
    model = Scene(SceneCfg(entities={"a": ball(setting)}), "cpu").compile()
    assert model.narena > 2**20
    assert not [str(w.message) for w in recwarn]
    assert capfd.readouterr() == ("", "")


POST = '<mujoco><worldbody><body name="post"><geom size=".1"/></body></worldbody></mujoco>'


def post(**kwargs) -> EntityCfg:
    """Configure something that stands still."""
    return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(POST), **kwargs)


def build(cfg: SceneCfg) -> tuple[Scene, Simulation]:
    """Build a scene and its simulation."""
    scene = Scene(cfg, "cpu")
    sim = Simulation(cfg.num_envs, spec=scene.spec)
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return scene, sim


@pytest.mark.usefixtures("engine")
def test_fixed_bases_stand_where_their_initial_state_says():
    """Place an entity without a free joint through its mocap body."""
    state = EntityCfg.InitialStateCfg(pos=(1.0, 2.0, 3.0))
    scene, sim = build(SceneCfg(entities={"post": post(init_state=state)}))
    sim.forward()
    assert sim.mj_model.body("post/mocap_base").pos.tolist() == [1.0, 2.0, 3.0]
    assert scene["post"].data.body_link_pos_w[0].tolist() == [[1.0, 2.0, 3.0]] * 2


def test_worlds_stand_on_a_spiral():
    """Put each world where its id says, a spacing apart; put all in one place for spacing 0."""
    origins = Scene(SceneCfg(num_envs=6, env_spacing=3.0), "cpu").env_origins
    places = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (-1.0, 0.0)]
    assert origins.tolist() == [[3.0 * x, 3.0 * y, 0.0] for x, y in places]
    many = Scene(SceneCfg(num_envs=81, env_spacing=3.0), "cpu").env_origins
    assert torch.equal(many[:6], origins)
    assert len(many.unique(dim=0)) == 81 and many.abs().max() == 12.0
    assert (many.diff(dim=0).norm(dim=1) == 3.0).all()
    part = Scene(SceneCfg(num_envs=4, env_spacing=3.0, first_world=70, total_envs=81), "cpu")
    assert torch.equal(part.env_origins, many[70:74])
    assert not Scene(SceneCfg(num_envs=9, env_spacing=0.0), "cpu").env_origins.any()


def test_geoms_fixed_to_the_world_keep_the_worlds_together():
    """Say so when worlds cannot stand apart because something would stay behind."""

    def table(spec: mujoco.MjSpec) -> None:
        spec.worldbody.add_geom(name="table", type=mujoco.mjtGeom.mjGEOM_BOX, size=(1, 1, 0.1))

    cfg = SceneCfg(num_envs=4, entities={"a": ball()}, spec_fn=table)
    with pytest.warns(UserWarning, match=r"a geom to the world \(table\), which would stay"):
        assert not Scene(cfg, "cpu").env_origins.any()
    cfg.env_spacing = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Scene(cfg, "cpu")


def test_entities_share_one_initial_keyframe():
    """Merge initial states, also of joints and actuators that spec_fn adds."""

    def add_pendulum(spec: mujoco.MjSpec) -> None:
        body = spec.body("a/b").add_body(name="pendulum")
        body.add_joint(name="swing", ref=0.25, type=mujoco.mjtJoint.mjJNT_SLIDE)
        body.add_geom(size=(0.1, 0, 0))
        spec.add_actuator(name="swing", target="swing", trntype=mujoco.mjtTrn.mjTRN_JOINT)

    state = EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 1.0))
    first, second = ball(), ball()
    first.init_state = state
    cfg = SceneCfg(entities={"a": first, "post": post(), "b": second}, spec_fn=add_pendulum)
    model = Scene(cfg, "cpu").compile()
    key = model.key("init_state")
    assert key.qpos.tolist() == [0, 0, 1, 1, 0, 0, 0, 0.25, 0, 0, 0, 1, 0, 0, 0]
    assert key.ctrl.tolist() == [0.0]


@pytest.mark.slow_on_warp
@pytest.mark.usefixtures("engine")
def test_worlds_stand_on_their_terrain():
    """Share one ground without a prefix; worlds stand where it says, or a spacing apart."""
    generator = TerrainGeneratorCfg(
        size=(4.0, 4.0), num_rows=2, num_cols=2, sub_terrains={"flat": BoxFlatTerrainCfg()}
    )
    terrain = TerrainEntityCfg(terrain_type="generator", terrain_generator=generator)
    cfg = SceneCfg(num_envs=5, entities={"post": post(), "a": ball()}, terrain=terrain)
    scene, sim = build(cfg)
    assert scene["terrain"] is scene.terrain and scene.env_origins is scene.terrain.env_origins
    assert sim.mj_model.body("terrain").id == 1
    origins = {tuple(origin) for origin in scene.terrain.terrain_origins.reshape(-1, 3).tolist()}
    assert {tuple(origin) for origin in scene.env_origins.tolist()} <= origins
    key = sim.mj_model.key("init_state")
    assert key.qpos.tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert scene.terrain.indexing.body_ids.tolist() == [1]
    geoms = [i for i, body in enumerate(sim.mj_model.geom_bodyid) if body == 1]
    assert scene.terrain.indexing.geom_ids.tolist() == geoms
    plane = Scene(
        SceneCfg(num_envs=2, env_spacing=3.0, entities={"ground": TerrainEntityCfg()}), "cpu"
    )
    assert plane.env_origins.tolist() == [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]
    assert cfg.terrain.num_envs == 1
    cfg.entities["terrain"] = terrain
    cfg.terrain = None
    Scene(cfg, "cpu")
    cfg.terrain = TerrainEntityCfg()
    cfg.entities["ground"] = cfg.entities.pop("terrain")
    with pytest.raises(ValueError, match=r"one terrain, but SceneCfg gives \['ground', 'terrain"):
        Scene(cfg, "cpu")


def test_the_config_is_copied():
    """Leave the user's config alone."""
    cfg = SceneCfg(entities={"a": ball()})
    scene = Scene(cfg, "cpu")
    scene.cfg.num_envs = 5
    assert cfg.num_envs == 1


def test_mistakes_are_named():
    """Refuse no worlds and unknown entities."""
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        Scene(SceneCfg(num_envs=0), "cpu")
    with pytest.raises(ValueError, match=r"env_spacing must not be negative or infinite, got -1.0"):
        Scene(SceneCfg(env_spacing=-1.0))
    with pytest.raises(ValueError, match="env_spacing must not be negative or infinite, got inf"):
        Scene(SceneCfg(env_spacing=float("inf")))
    with pytest.raises(KeyError, match=r"Scene element 'x' not found. Available: \['a'\]"):
        Scene(SceneCfg(entities={"a": ball()}), "cpu")["x"]


def test_entities_and_sensors_are_found_by_kind():
    """Return elements with their type, and say what a wrong name or kind should be."""
    clock = BuiltinSensorCfg(name="clock", sensor_type="clock")
    scene = Scene(SceneCfg(entities={"ball": ball()}, sensors=(clock,)), "cpu")
    assert scene.entity("ball") is scene["ball"] is scene.entities["ball"]
    assert scene.sensor("clock", BuiltinSensor) is scene["clock"] is scene.sensor("clock", Sensor)
    with pytest.raises(KeyError, match=r"'bal' not found. Did you mean 'ball'\? Available"):
        scene.entity("bal")
    with pytest.raises(KeyError, match=r"'clok' not found. Did you mean 'clock'\? Available"):
        scene.sensor("clok", BuiltinSensor)
    with pytest.raises(KeyError, match="'clock' is a BuiltinSensor, not an entity: call scene.sen"):
        scene.entity("clock")
    with pytest.raises(KeyError, match="'ball' is an entity, not a sensor: call scene.entity"):
        scene.sensor("ball", BuiltinSensor)
    with pytest.raises(TypeError, match="'clock' is a BuiltinSensor, not a ContactSensor: name an"):
        scene.sensor("clock", ContactSensor)


def test_wrong_scenes_are_refused_in_one_sentence():
    """Name what is no entity, two things of one name, and another number of worlds."""
    terrain = TerrainEntityCfg()
    for cfg, error, message in (
        ({"entities": {"a": mujoco.MjSpec()}}, TypeError, "Entity 'a' must be of type EntityCfg"),
        ({"num_envs": "3"}, ValueError, "num_envs must be a whole number, got '3'"),
        ({"entities": {"terrain": ball()}, "terrain": terrain}, ValueError, "rename the entity"),
    ):
        with pytest.raises(error, match=message):
            Scene(SceneCfg(**cfg), "cpu")
    scene = Scene(SceneCfg(num_envs=3, entities={"a": ball()}), "cpu")
    sim = Simulation(2, spec=scene.spec)
    with pytest.raises(ValueError, match="has 2 worlds, but the scene has 3"):
        scene.initialize(sim.mj_model, sim.model, sim.data)


def test_sensors_that_are_no_tuple_are_refused():
    """Say how a tuple is written."""
    sensor = BuiltinSensorCfg(name="clock", sensor_type="clock")
    with pytest.raises(TypeError, match=r"SceneCfg\.sensors must be a tuple .* write \(value,\)"):
        Scene(SceneCfg(sensors=sensor))


def test_a_sensor_name_of_two_entities_names_neither():
    """Refuse a short name that two sensors have."""
    sensors = tuple(
        BuiltinSensorCfg(
            name="p", sensor_type="framepos", obj=ObjRef(type="body", name="b", entity=entity)
        )
        for entity in "xy"
    )
    scene = Scene(SceneCfg(entities={"x": ball(), "y": ball()}, sensors=sensors), "cpu")
    assert scene["x/p"] is not scene["y/p"]
    with pytest.raises(KeyError, match=r"'p' not found.*'x/p'.*'y/p'"):
        scene["p"]
