// Rays of sensors, as plain playback in Python casts them.

const SINGULAR = 0.05;  // within this sine of the vertical, the x axis defines no heading

/** Return the rotation matrix of the rays of a frame, row by row. */
function axesOfRays(frame, alignment) {
  if (alignment === "world") return [1, 0, 0, 0, 1, 0, 0, 0, 1];
  if (alignment !== "yaw") return frame;
  let x = frame[0];
  let y = frame[3];
  if (x * x + y * y <= SINGULAR ** 2) {
    x = frame[4];
    y = -frame[1];
  }
  const length = Math.sqrt(x * x + y * y);
  x /= length;
  y /= length;
  return [x, -y, 0, y, x, 0, 0, 0, 1];
}

/** Return matrix @ vector. */
function rotate(m, [x, y, z]) {
  return [
    m[0] * x + m[1] * y + m[2] * z,
    m[3] * x + m[4] * y + m[5] * z,
    m[6] * x + m[7] * y + m[8] * z,
  ];
}

/** Fields of MjData that hold the positions and rotations of a type of frame. */
const POSES = { body: ["xpos", "xmat"], geom: ["geom_xpos", "geom_xmat"],
  site: ["site_xpos", "site_xmat"] };

/**
 * Return the distances along rays [m], ordered by frame; -1 without a hit.
 * @param {Physics} physics
 * @param {object} rays what `RayCastSensor.describe` returns
 */
export function castRays(physics, rays) {
  const { mujoco, model, data } = physics;
  let groups = null;
  if (rays.geom_groups !== null) {
    groups = Array.from({ length: 6 }, (_, group) => Number(rays.geom_groups.includes(group)));
  }
  const distances = [];
  for (const frame of rays.frames) {
    const index = physics.id(frame.type, frame.name);
    const [positions, rotations] = POSES[frame.type];
    const position = physics.field(positions).slice(3 * index, 3 * index + 3);
    const rotation = physics.field(rotations).slice(9 * index, 9 * index + 9);
    const axes = axesOfRays(rotation, rays.alignment);
    const exclude = frame.exclude === null ? -1 : physics.id("body", frame.exclude);
    for (let i = 0; i < rays.offsets.length; i++) {
      const offset = rotate(axes, rays.offsets[i]);
      const origin = offset.map((value, axis) => position[axis] + value);
      const direction = rotate(axes, rays.directions[i]);
      distances.push(mujoco.mj_ray(
        model, data, origin, direction, groups, true, exclude, null, null));
    }
  }
  return Float64Array.from(distances);
}
