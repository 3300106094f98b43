"""Small MJCF scenes that several tests share."""

# Things that fall on each other and on an arm, with every kind of input that a world takes.
CLUTTER = """
<mujoco model="clutter">
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="target" mocap="true" pos=".8 0 .5">
      <geom size=".05" contype="0" conaffinity="0"/>
    </body>
    <body name="box" pos="0 0 .25" euler="10 20 0">
      <freejoint/>
      <geom name="box" type="box" size=".1 .08 .06"/>
    </body>
    <body name="pill" pos=".05 .02 .5" euler="0 70 0">
      <freejoint/>
      <geom name="pill" type="capsule" size=".05 .1"/>
      <site name="pill"/>
    </body>
    <body name="ball" pos="-.08 .03 .7">
      <freejoint/>
      <geom name="ball" size=".06"/>
    </body>
    <body name="arm" pos=".5 0 .3">
      <joint name="shoulder" axis="0 1 0" damping=".2" armature=".01"/>
      <geom name="arm" type="capsule" fromto="0 0 0 -.4 0 0" size=".03"/>
      <site name="tip" pos="-.4 0 0"/>
    </body>
  </worldbody>
  <equality>
    <connect name="leash" body1="ball" body2="target" anchor="0 0 0" active="false"/>
  </equality>
  <actuator>
    <motor name="shoulder" joint="shoulder" gear="3" ctrlrange="-1 1"/>
  </actuator>
  <sensor>
    <framepos name="tip_pos" objtype="site" objname="tip"/>
    <framelinvel name="tip_vel" objtype="site" objname="tip"/>
    <accelerometer name="tip_acc" site="tip"/>
    <gyro name="pill_gyro" site="pill"/>
  </sensor>
</mujoco>
"""

# As CLUTTER but with nothing that asks for accelerations: some fields are not computed.
HINGE = """
<mujoco model="hinge">
  <worldbody>
    <body name="link">
      <joint name="hinge" axis="0 1 0"/>
      <geom name="link" type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    </body>
  </worldbody>
  <actuator><motor name="hinge" joint="hinge"/></actuator>
</mujoco>
"""
