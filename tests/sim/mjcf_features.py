"""Tiny MJCF models, one for each thing that MJCF can hold."""

from __future__ import annotations

_FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'

# Pairs of a free body, dropped on the floor, for each kind of geom.
_SHAPES = "".join(
    f'<body pos="{i}. 0 .25" euler="10 20 0"><freejoint/><geom type="{kind}" {size}/></body>'
    for i, (kind, size) in enumerate(
        {
            "sphere": 'size=".1" condim="1"',
            "capsule": 'size=".05 .1" condim="3"',
            "ellipsoid": 'size=".1 .08 .06" condim="4"',
            "cylinder": 'size=".1 .08" condim="6"',
            "box": 'size=".1 .08 .06"',
            "mesh": 'mesh="wedge"',
        }.items()
    )
)
_WEDGE = '<mesh name="wedge" vertex="0 0 0  .2 0 0  0 .15 0  0 0 .1  .2 0 .1  0 .15 .1"/>'

_ARM = """
  <body name="arm" pos="0 0 1">
    <joint name="shoulder" {shoulder}/>
    <geom name="upper" type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    <site name="mid" pos=".15 0 .05"/>
    <body name="fore" pos=".3 0 0" gravcomp="{gravcomp}">
      <joint name="elbow" {elbow}/>
      <geom name="fore" type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <site name="tip" pos=".3 0 0"/>
    </body>
  </body>
"""


_HINGE = 'axis="0 1 0"'


def _arm(inside: str = "", shoulder: str = _HINGE, elbow: str = _HINGE, gravcomp: str = "0") -> str:
    body = _ARM.format(shoulder=shoulder, elbow=elbow, gravcomp=gravcomp)
    return f"<mujoco><worldbody>{body}</worldbody>{inside}</mujoco>"


def _shapes(option: str = "") -> str:
    return (
        f"<mujoco><option {option}/><asset>{_WEDGE}</asset>"
        f"<worldbody>{_FLOOR}{_SHAPES}</worldbody></mujoco>"
    )


def _actuated(actuator: str) -> str:
    return _arm(f"<actuator>{actuator}</actuator>")


def _flex(inside: str, kind: str = 'count="4 4 1" dim="2"', extra: str = "") -> str:
    return f"""
    <mujoco>
      <option timestep=".001"/>
      <worldbody>{_FLOOR}
        <flexcomp name="flex" type="grid" {kind} spacing=".05 .05 .05" pos="0 0 .2" radius=".01"
          mass=".1">{inside}</flexcomp>{extra}
      </worldbody>
    </mujoco>"""


_PAIR = f"""
<mujoco>
  <worldbody>{_FLOOR}
    <body name="a" pos="0 0 .2"><freejoint/><geom size=".1"/></body>
    <body name="b" pos=".02 0 .25"><freejoint/><geom size=".1"/></body>
    <body pos="1 0 .11"><freejoint/>
      <geom name="ghost" size=".1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <contact>
    <exclude body1="a" body2="b"/>
    <pair geom1="floor" geom2="ghost" condim="1" margin=".02" gap=".005" adhesion=".1"/>
  </contact>
</mujoco>"""

_HFIELD = """
<mujoco>
  <asset><hfield name="hill" nrow="3" ncol="3" size="1 1 .3 .1" elevation="0 .4 0 .3 1 .2 0 .5 .1"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hill"/>
    <body pos=".2 .1 .4"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="-.3 .1 .5"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>"""

_SDF = """
<mujoco>
  <extension>
    <plugin plugin="mujoco.sdf.torus"><instance name="torus">
      <config key="radius1" value="0.35"/><config key="radius2" value="0.15"/>
    </instance></plugin>
  </extension>
  <option sdf_iterations="10" sdf_initpoints="20"/>
  <asset><mesh name="torus"><plugin instance="torus"/></mesh></asset>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .2"><freejoint/>
      <geom type="sdf" mesh="torus"><plugin instance="torus"/></geom>
    </body>
    <body pos=".3 0 .6"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>"""

_PID = """
<mujoco>
  <extension><plugin plugin="mujoco.pid"><instance name="pid">
    <config key="kp" value="40"/><config key="ki" value="9"/><config key="slewmax" value="3"/>
  </instance></plugin></extension>
  <worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body></worldbody>
  <actuator><plugin joint="j" plugin="mujoco.pid" instance="pid" actdim="2"/></actuator>
</mujoco>"""

_TOUCH_GRID = """
<mujoco>
  <extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .12"><freejoint/><geom size=".1"/><site name="s" pos="0 0 -.1"/></body>
  </worldbody>
  <sensor>
    <plugin name="touch" plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">
      <config key="size" value="4 4"/><config key="fov" value="45 45"/>
      <config key="gamma" value="0"/><config key="nchannel" value="3"/>
    </plugin>
  </sensor>
</mujoco>"""

_PULLEY = """
<mujoco>
  <worldbody>
    <geom name="wheel" type="cylinder" size=".1 .05" pos="0 0 1" euler="90 0 0"/>
    <geom name="knob" size=".05" pos=".6 0 1"/>
    <site name="side" pos="0 0 1.2"/>
    <site name="a" pos="-.2 0 1"/><site name="top" pos=".4 0 1.3"/>
    <body pos=".25 0 .6"><joint type="slide" axis="0 0 1"/><geom size=".05"/><site name="b"/></body>
    <body pos=".8 0 .6"><joint type="slide" axis="0 0 1"/><geom size=".05"/><site name="c"/></body>
  </worldbody>
  <tendon>
    <spatial name="rope" {}>
      <site site="a"/><geom geom="wheel" sidesite="side"/><site site="b"/>
      <pulley divisor="2"/>
      <site site="top"/><geom geom="knob"/><site site="c"/>
    </spatial>
  </tendon>
</mujoco>"""

_TIED = """
<mujoco>
  <worldbody>
    <body name="post" mocap="true" pos="0 0 1"><geom size=".02" contype="0" conaffinity="0"/></body>
    <body name="a" pos="0 0 .7"><freejoint/><geom size=".05"/><site name="a"/></body>
    <body name="b" pos=".3 0 .7"><freejoint/><geom type="box" size=".05 .04 .03"/>
      <site name="b"/></body>
  </worldbody>
  <equality>{}</equality>
</mujoco>"""

_FIXED = """
<tendon>
  <fixed name="mix" {}><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-.7"/></fixed>
  <fixed name="two"><joint joint="elbow" coef="1"/></fixed>
</tendon>"""

_DIPPED = """
<mujoco>
  <option density="50" viscosity=".1" wind="1 .2 0"/>
  <worldbody>
    <body pos="0 0 1"><freejoint/><geom type="ellipsoid" size=".1 .05 .02" {}/></body>
  </worldbody>
</mujoco>"""

_SUCKER = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1" euler="180 0 0" pos="0 0 1"/>
    <body name="pad" pos="0 0 .949"><freejoint/><geom type="box" size=".05 .05 .05" {}/></body>
  </worldbody>
  {}
</mujoco>"""

_BALL = """
<mujoco>
  <worldbody>
    <body pos="0 0 1">
      <joint name="ball" type="ball" range="0 40" damping=".01" stiffness=".2"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><site name="hand" pos=".3 0 0"/>
    </body>
    <site name="frame" pos="0 0 1"/>
  </worldbody>
  <actuator>{}</actuator>
</mujoco>"""

FEATURES = {
    # Shapes and contacts; each row of _SHAPES has a contact dimension of its own.
    "shapes": _shapes(),
    "elliptic cone": _shapes('cone="elliptic" impratio="3" noslip_iterations="3"'),
    "contact pair": _PAIR,
    "surface velocity": _shapes().replace("plane", 'plane" surfacevel="1 0 0 0 0 1'),
    "height field": _HFIELD,
    "sdf": _SDF,
    "adhesive geoms": _SUCKER.format('adhesion="30"', ""),
    # Joints, bodies, forces.
    "joint limits and friction": _arm(
        shoulder=f'{_HINGE} range="-20 20" frictionloss=".3" damping=".1"',
        elbow='type="slide" axis="1 0 0" range="-.02 .02" stiffness="9" springref=".1"',
    ),
    "ball joint": _BALL.format(""),
    "gravity compensation": _arm(
        shoulder=f'{_HINGE} actuatorgravcomp="true" actuatorfrcrange="-.1 .1"', gravcomp=".8"
    ),
    "fluid, inertia model": _DIPPED.format(""),
    "fluid, ellipsoid model": _DIPPED.format('fluidshape="ellipsoid"'),
    # Integrators and solvers.
    **{
        f"integrator {name}": _shapes(f'integrator="{name}"')
        for name in ("RK4", "implicit", "implicitfast", "discrete")
    },
    **{
        f"solver {name}": _shapes(f'solver="{name}" jacobian="{jacobian}"')
        for name, jacobian in (("PGS", "dense"), ("CG", "sparse"))
    },
    # Tendons.
    "spatial tendon": _PULLEY.format('limited="true" range="0 1.2" stiffness="4" damping=".2"'),
    "spatial tendon with friction": _PULLEY.format('frictionloss=".5"'),
    "fixed tendon": _arm(_FIXED.format('limited="true" range="-.3 .4" frictionloss=".1"')),
    # Equality.
    "connect": _TIED.format('<connect body1="post" body2="a" anchor="0 0 -.1"/>'),
    "connect sites": _TIED.format('<connect site1="a" site2="b"/>'),
    "weld": _TIED.format('<weld body1="a" body2="b" torquescale=".5"/>'),
    "equal joints": _arm('<equality><joint joint1="elbow" joint2="shoulder"/></equality>'),
    "equal tendons": _arm(
        _FIXED.format("") + '<equality><tendon tendon1="mix" tendon2="two"/></equality>'
    ),
    # Deformables.
    "cloth": _flex('<edge equality="true"/><contact selfcollide="none"/>'),
    "elastic cloth": _flex(
        '<elasticity young="3e4" poisson="0" thickness="8e-3" elastic2d="both"/>'
    ),
    "soft body": _flex(
        '<elasticity young="2e3" poisson=".2" damping=".005"/><contact selfcollide="none"/>',
        'count="3 3 3" dim="3"',
    ),
    "strained body": _flex(
        '<edge equality="strain"/><contact selfcollide="none"/>',
        'count="3 3 3" dim="3" dof="trilinear"',
    ),
    "rope": _flex('<edge equality="true"/>', 'count="6 1 1" dim="1"'),
    # Actuators.
    "motor": _actuated('<motor joint="shoulder" gear="3" ctrlrange="-1 1"/>'),
    "servos": _actuated(
        '<position joint="shoulder" kp="5" kv=".3" timeconst=".05" forcerange="-3 3"/>'
        '<velocity joint="elbow" kv="2" delay=".008" nsample="4"/>'
    ),
    "integrated velocity": _actuated('<intvelocity joint="elbow" kp="4" actrange="-.2 .2"/>'),
    "damper": _actuated('<damper joint="elbow" kv="2" ctrlrange="0 1"/>'),
    "cylinder": _actuated('<cylinder joint="elbow" timeconst=".1" area=".5"/>'),
    "muscle": _actuated('<muscle joint="elbow" lengthrange="-1 1" force="8"/>'),
    "exact filter": _actuated('<general joint="elbow" dyntype="filterexact" dynprm=".1"/>'),
    "direct current motor": _actuated(
        '<dcmotor joint="elbow" motorconst=".05 .05" resistance="2" inductance=".01"/>'
    ),
    "pid": _actuated('<pid joint="elbow" kp="5" kv=".3" ki="2" imax="1" slewmax="3"/>'),
    "orientation servo": _BALL.format('<orientation joint="ball" kp="3" kv=".1"/>'),
    "joint in parent": _BALL.format('<motor jointinparent="ball" gear="0 1 0"/>'),
    "thruster": _BALL.format('<motor site="hand" gear="0 1 0 0 0 .1"/>'),
    "site in frame": _BALL.format(
        '<position site="hand" refsite="frame" gear="0 1 0 0 0 0" kp="2"/>'
    ),
    "slider crank": _BALL.format(
        '<general cranksite="hand" slidersite="frame" cranklength=".5" gainprm="2"/>'
    ),
    "tendon motor": _arm(_FIXED.format("") + '<actuator><motor tendon="mix" gear="2"/></actuator>'),
    "adhesion actuator": _SUCKER.format(
        "", '<actuator><adhesion body="pad" ctrlrange="0 1" gain="60"/></actuator>'
    ),
    # Engine plugins that come with MuJoCo.
    "pid plugin": _PID,
    "touch grid plugin": _TOUCH_GRID,
}

_SENSED_OBJECTS = """
  <asset><mesh name="plate" builtin="plate" params="5 5" scale=".1 .1 .02"/></asset>
  <worldbody>
    <light pos="0 0 3"/>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <camera name="cam" pos="0 -2 1" xyaxes="1 0 0 0 0 1" resolution="64 48"/>
    <body name="pad" pos="0 0 .12"><freejoint name="free"/>
      <geom name="pad" type="box" size=".1 .1 .1"/>
      <geom name="skin" type="mesh" mesh="plate" contype="0" conaffinity="0" pos="0 0 -.1"/>
      <site name="pad" size=".2"/>
    </body>
    <body name="arm" pos=".5 0 .4">
      <joint name="hinge" axis="0 1 0" range="-10 10"/>
      <geom name="arm" type="capsule" fromto="0 0 0 .2 0 0" size=".02"/>
      <site name="arm" pos=".2 0 0" euler="0 180 0"/>
      <body pos=".25 0 0"><joint name="ball" type="ball"/><geom size=".03" pos=".05 0 0"/></body>
    </body>
  </worldbody>
  <tendon><fixed name="ten" limited="true" range="-.1 .1"><joint joint="hinge" coef="1"/></fixed>
  </tendon>
  <actuator><motor name="act" joint="hinge"/><motor tendon="ten"/></actuator>
"""

# What MJCF writes for each sensor type, by its name in mjtSensor.
SENSORS = {
    **{
        name: f'<{name} site="pad"/>'
        for name in (
            *("touch", "accelerometer", "velocimeter", "gyro", "force", "torque"),
            "magnetometer",
        )
    },
    "rangefinder": '<rangefinder site="arm"/>',
    "camprojection": '<camprojection site="pad" camera="cam"/>',
    **{name: f'<{name} joint="hinge"/>' for name in ("jointpos", "jointvel", "jointlimitpos")},
    **{name: f'<{name} joint="hinge"/>' for name in ("jointlimitvel", "jointlimitfrc")},
    "jointactfrc": '<jointactuatorfrc joint="hinge"/>',
    **{name: f'<{name} tendon="ten"/>' for name in ("tendonpos", "tendonvel", "tendonlimitpos")},
    **{name: f'<{name} tendon="ten"/>' for name in ("tendonlimitvel", "tendonlimitfrc")},
    "tendonactfrc": '<tendonactuatorfrc tendon="ten"/>',
    **{n: f'<{n} actuator="act"/>' for n in ("actuatorpos", "actuatorvel", "actuatorfrc")},
    **{name: f'<{name} joint="ball"/>' for name in ("ballquat", "ballangvel")},
    **{
        f"frame{what}": f'<frame{what} objtype="body" objname="pad"/>'
        for what in (
            *("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel", "linacc", "angacc"),
        )
    },
    **{n: f'<{n} body="arm"/>' for n in ("subtreecom", "subtreelinvel", "subtreeangmom")},
    "insidesite": '<insidesite site="pad" objtype="body" objname="arm"/>',
    "geomdist": '<distance geom1="pad" geom2="arm" cutoff="5"/>',
    "geomnormal": '<normal geom1="pad" geom2="arm" cutoff="5"/>',
    "geomfromto": '<fromto geom1="pad" geom2="arm" cutoff="5"/>',
    "contact": '<contact body1="pad" num="4" data="found force dist pos normal"/>',
    "e_potential": "<e_potential/>",
    "e_kinetic": "<e_kinetic/>",
    "clock": '<clock delay=".01" nsample="8"/>',
    "tactile": '<tactile geom="skin" mesh="plate"/>',
    "user": '<user dim="2" needstage="acc"/>',
}
FEATURES["sensors"] = (
    f"<mujoco>{_SENSED_OBJECTS}<sensor>{''.join(SENSORS.values())}</sensor></mujoco>"
)
