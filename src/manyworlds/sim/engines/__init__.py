"""The physics engines: MuJoCo C on the CPU and MuJoCo Warp, behind one protocol."""
