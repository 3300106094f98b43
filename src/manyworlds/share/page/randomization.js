// Random values of the model and of the start, from the ranges of the task.

const NUDGE = 0.005;  // of joints at a start [rad or m]

/** Fields of MjModel with the number of their rows, by the first part of a field's name. */
const ROWS = { body: "nbody", geom: "ngeom", site: "nsite", jnt: "njnt", dof: "nv",
  actuator: "nu", tendon: "ntendon", pair: "npair", mat: "nmat", light: "nlight", cam: "ncam",
  qpos0: "nq", qpos: "nq" };

function uniform(low, high) {
  return low + (high - low) * Math.random();
}

/** Draw a number; the range of "gaussian" is the mean and the standard deviation. */
export function draw(distribution, low, high) {
  switch (distribution) {
    case "uniform":
      return uniform(low, high);
    case "log_uniform":
      return Math.exp(uniform(Math.log(low), Math.log(high)));
    case "gaussian": {
      const radius = Math.sqrt(-2 * Math.log(1 - Math.random()));
      return low + high * radius * Math.cos(2 * Math.PI * Math.random());
    }
    default:
      throw new Error(`Randomization has no distribution '${distribution}'.`);
  }
}

function apply(operation, compiled, value) {
  if (operation === "scale") return compiled * value;
  if (operation === "add") return compiled + value;
  return value;
}

/** Values of a model that its task randomizes, drawn anew on request. */
export class Randomization {
  /**
   * @param {Physics} physics
   * @param {object[]} entries `randomization` of world.json
   */
  constructor(physics, entries) {
    this.physics = physics;
    this.entries = entries;
    /** Compiled values by field. */
    this.compiled = new Map();
    for (const { field } of entries) {
      if (!ArrayBuffer.isView(physics.model[field])) {
        throw new Error(`The model has no array '${field}' to randomize.`);
      }
      this.compiled.set(field, physics.model[field].slice());
    }
    /** Smallest and largest drawn number of each entry; null as compiled. */
    this.drawn = entries.map(() => null);
  }

  /** Draw all values; the caller starts an episode afterwards. */
  draw() {
    this.restore();
    this.entries.forEach((entry, i) => { this.drawn[i] = this.drawEntry(entry); });
    this.recompute();
  }

  /** Go back to the compiled values. */
  clear() {
    this.restore();
    this.drawn.fill(null);
    this.recompute();
  }

  restore() {
    for (const [field, values] of this.compiled) this.physics.model[field].set(values);
  }

  recompute() {
    const { mujoco, model, data } = this.physics;
    mujoco.mj_setConst(model, data);
  }

  drawEntry(entry) {
    const { model } = this.physics;
    const target = model[entry.field];
    const rows = model[ROWS[entry.field.split("_")[0]]];
    const width = target.length / rows;
    const axes = entry.axes ?? Array.from({ length: width }, (_, axis) => axis);
    const drawAxes = () => axes.map((_, i) => {
      const low = Array.isArray(entry.low) ? entry.low[i] : entry.low;
      const high = Array.isArray(entry.high) ? entry.high[i] : entry.high;
      return draw(entry.distribution, low, high);
    });
    const shared = entry.shared ? drawAxes() : null;
    let least = Infinity;
    let most = -Infinity;
    for (const id of entry.ids) {
      const values = shared ?? drawAxes();
      axes.forEach((axis, i) => {
        const index = id * width + axis;
        target[index] = apply(entry.operation, target[index], values[i]);
        least = Math.min(least, values[i]);
        most = Math.max(most, values[i]);
      });
    }
    return [least, most];
  }
}

/** Return the product of two quaternions (w, x, y, z). */
function multiply([a, b, c, d], [e, f, g, h]) {
  return [
    a * e - b * f - c * g - d * h,
    a * f + b * e + c * h - d * g,
    a * g - b * h + c * e + d * f,
    a * h + b * g - c * f + d * e,
  ];
}

/** Return the quaternion of rotations about x, then y, then z of the fixed frame [rad]. */
function fromAngles([roll, pitch, yaw]) {
  const about = (axis, angle) => {
    const quaternion = [Math.cos(angle / 2), 0, 0, 0];
    quaternion[1 + axis] = Math.sin(angle / 2);
    return quaternion;
  };
  return multiply(about(2, yaw), multiply(about(1, pitch), about(0, roll)));
}

/**
 * Move joints from their start by random amounts.
 *
 * A range of a free joint has 6 numbers: x, y, z [m], and roll, pitch, yaw [rad] in the world.
 * @param {object[]} ranges `reset.ranges` of world.json
 */
export function randomizeStart(physics, ranges) {
  const { model } = physics;
  const qpos = physics.field("qpos");
  for (const range of ranges) {
    let joint;
    if (range.joint !== undefined) joint = physics.id("joint", range.joint);
    else joint = model.body_jntadr[physics.id("body", range.body)];
    if (joint < 0) throw new Error(`The body '${range.body}' has no joint to randomize.`);
    const address = model.jnt_qposadr[joint];
    const offsets = range.low.map((low, i) => uniform(low, range.high[i]));
    const free = physics.mujoco.mjtJoint.mjJNT_FREE.value;
    const straight = model.jnt_type[joint] === free ? 3 : offsets.length;
    for (let i = 0; i < straight; i++) qpos[address + i] += offsets[i];
    if (offsets.length > straight) {
      const start = Array.from(qpos.slice(address + 3, address + 7));
      qpos.set(multiply(fromAngles(offsets.slice(3)), start), address + 3);
    }
  }
  physics.refresh();
}

/**
 * Move hinges and slides a little from their start.
 *
 * A policy that is mirror-symmetric hops in place from a symmetric start, since nothing tells it
 * which leg goes first; float64 leaves no rounding that would.
 */
export function nudgeStart(physics) {
  const { model, mujoco } = physics;
  const { mjJNT_HINGE: hinge, mjJNT_SLIDE: slide } = mujoco.mjtJoint;
  const qpos = physics.field("qpos");
  for (let joint = 0; joint < model.njnt; joint++) {
    if (![hinge.value, slide.value].includes(model.jnt_type[joint])) continue;
    qpos[model.jnt_qposadr[joint]] += uniform(-NUDGE, NUDGE);
  }
  physics.refresh();
}
