// One world of MuJoCo, compiled to WebAssembly.

import { fetchBytes, folderOf, unpackedName } from "./files.js";
import { castRays } from "./rays.js";

let folders = 0;

/** Load MuJoCo from the vendored package. */
export async function loadMujoco() {
  const [{ default: load }, wasmBinary] = await Promise.all([
    import("../vendor/mujoco.js"),
    fetchBytes("vendor/mujoco.wasm.gz"),
  ]);
  return load({ wasmBinary });
}

/** Write a world's files into MuJoCo's file system; return the path of the model. */
async function writeFiles(mujoco, world) {
  const source = folderOf(world.model);
  const model = world.model.slice(source.length);
  const names = [model, ...world.files];
  const contents = await Promise.all(names.map(name => fetchBytes(source + name)));
  folders += 1;
  const target = `/world${folders}/`;
  names.forEach((name, i) => {
    const path = target + unpackedName(name);
    mujoco.FS.mkdirTree(folderOf(path));
    mujoco.FS.writeFile(path, contents[i]);
  });
  return target + unpackedName(model);
}

function removeFolder(FS, path) {
  for (const name of FS.readdir(path)) {
    if (name === "." || name === "..") continue;
    const child = `${path}/${name}`;
    if (FS.isDir(FS.stat(child).mode)) removeFolder(FS, child);
    else FS.unlink(child);
  }
  FS.rmdir(path);
}

export class Physics {
  /** Load a world that world.json describes. */
  static async load(mujoco, world) {
    const path = await writeFiles(mujoco, world);
    try {
      return new Physics(mujoco, mujoco.MjModel.from_xml_path(path), world);
    } catch (error) {
      throw new Error(`The model of '${world.name}' does not load: ${error.message.trim()}`);
    } finally {
      removeFolder(mujoco.FS, path.slice(0, path.indexOf("/", 1)));
    }
  }

  constructor(mujoco, model, world) {
    this.mujoco = mujoco;
    this.model = model;
    this.data = new mujoco.MjData(model);
    this.velocityBuffer = new mujoco.DoubleBuffer(6);
    /** Functions that run before each physics step. */
    this.beforeStep = new Set();
    this.keyframe = -1;
    if (world.keyframe !== null) this.keyframe = this.id("key", world.keyframe);
  }

  get version() {
    return this.mujoco.mj_versionString();
  }

  get timestep() {
    return this.model.opt.timestep;
  }

  get time() {
    return this.data.time;
  }

  /** Go to the start of an episode, as plain playback in Python does. */
  reset() {
    const { mujoco, model, data, keyframe } = this;
    if (keyframe >= 0) mujoco.mj_resetDataKeyframe(model, data, keyframe);
    else mujoco.mj_resetData(model, data);
    this.refresh();
  }

  step() {
    for (const call of this.beforeStep) call();
    this.mujoco.mj_step(this.model, this.data);
  }

  /** Compute positions, velocities and their sensors at the present state. */
  refresh() {
    this.mujoco.mj_step1(this.model, this.data);
  }

  /** Return a live view of a field of MjData; it must be read anew once memory has grown. */
  field(name) {
    const view = this.data[name];
    if (!ArrayBuffer.isView(view)) throw new Error(`MjData has no array '${name}'.`);
    return view;
  }

  /** Return the index of an element; `type` is MuJoCo's name, such as "body", "xbody" or "site". */
  id(type, name) {
    const index = this.mujoco.mj_name2id(this.model, this.type(type), name);
    if (index < 0) throw new Error(`The model has no ${type} named '${name}'.`);
    return index;
  }

  /** Return an element's name, empty if it has none. */
  name(type, index) {
    return this.mujoco.mj_id2name(this.model, this.type(type), index) || "";
  }

  type(name) {
    const code = this.mujoco.mjtObj[`mjOBJ_${name.toUpperCase()}`];
    if (code === undefined) throw new Error(`MuJoCo has no elements of type '${name}'.`);
    return code.value;
  }

  /** Angular and linear velocity of an element [rad/s, m/s], a copy of 6 numbers. */
  velocity(type, index, local) {
    this.mujoco.mj_objectVelocity(
      this.model, this.data, this.type(type), index, this.velocityBuffer, local ? 1 : 0);
    return this.velocityBuffer.GetView().slice();
  }

  /** Distances along the rays that a sensor's description lists [m], -1 without a hit. */
  rays(description) {
    return castRays(this, description);
  }

  get finite() {
    return this.field("qpos").every(Number.isFinite) && this.field("qvel").every(Number.isFinite);
  }

  dispose() {
    this.velocityBuffer.delete();
    this.data.delete();
    this.model.delete();
  }
}
