"""Physics engines: MuJoCo C on the CPU and MuJoCo Warp, with one protocol."""
