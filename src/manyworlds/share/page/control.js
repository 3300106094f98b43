// A policy: one ONNX file that maps what MuJoCo holds to controls.

import { fetchBytes } from "./files.js";

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array,
  bool: Uint8Array,
};
const DEFAULT_TYPES = { data: "float64", velocity: "float64", rays: "float64",
  command: "float32", begin: "float32" };

/** Load ONNX Runtime from the vendored package; it computes in one thread. */
export async function loadOnnxRuntime() {
  const [ort, wasmBinary] = await Promise.all([
    import("../vendor/ort.wasm.bundle.min.mjs"),
    fetchBytes("vendor/ort-wasm-simd-threaded.wasm.gz"),
  ]);
  ort.env.wasm.numThreads = 1;  // more need headers that static hosts do not send
  ort.env.wasm.wasmBinary = wasmBinary;
  return ort;
}

/** Return a typed array for a tensor; a row of ORT's int64 holds BigInts. */
function toArray(dtype, values) {
  if (dtype === "int64") return BigInt64Array.from(values, value => BigInt(value));
  return ARRAYS[dtype].from(values);
}

export class Policy {
  /** Open a policy that world.json describes, for a world. */
  static async open(ort, description, physics) {
    const bytes = await fetchBytes(description.file);
    let session;
    try {
      session = await ort.InferenceSession.create(bytes, { graphOptimizationLevel: "basic" });
    } catch (error) {
      throw new Error(`The policy '${description.name}' does not load: ${error.message}`);
    }
    return new Policy(ort, session, description, physics);
  }

  constructor(ort, session, description, physics) {
    this.ort = ort;
    this.session = session;
    this.description = description;
    this.physics = physics;
    /** Outputs that are memories: name of the input that gets them in the next call. */
    this.kept = description.outputs.filter(output => output.kind === "memory");
    this.written = description.outputs.filter(output => output.kind === "data");
    this.readers = new Map();
    for (const input of description.inputs) {
      if (input.kind !== "memory") this.readers.set(input, this.reader(input));
    }
    const difference = Math.abs(physics.timestep - description.timestep);
    if (difference > 1e-6 * description.timestep) {
      throw new Error(`The model's timestep is ${physics.timestep} s, but the policy ` +
        `'${description.name}' was trained with ${description.timestep} s.`);
    }
    this.reset();
  }

  get decimation() {
    return this.description.decimation;
  }

  /** Set all memories to their start. */
  reset() {
    this.memories = {};
    for (const input of this.description.inputs) {
      if (input.kind !== "memory") continue;
      const size = input.shape.reduce((product, n) => product * n, 1);
      const start = input.start === null ? new Array(size).fill(0) : [input.start].flat(Infinity);
      this.memories[input.name] = this.tensor(input.dtype, start, input.shape);
    }
  }

  /** Whether the graph runs in a physics step; `begin` says if it is a control period's first. */
  actsIn(begin) {
    return begin || this.description.calls === "substep";
  }

  /**
   * Compute controls and write them to MjData.
   * @param {boolean} begin whether a control period begins
   * @param {Map<string, number[]>} commands values of commands by name
   */
  async act(begin, commands) {
    const feeds = { ...this.memories };
    for (const [input, read] of this.readers) {
      const values = read(begin, commands);
      const dtype = input.dtype ?? DEFAULT_TYPES[input.kind];
      feeds[input.name] = this.tensor(dtype, values, input.shape ?? [1, values.length]);
    }
    const results = await this.session.run(feeds);
    for (const output of this.kept) this.memories[output.input] = results[output.name];
    for (const output of this.written) {
      const target = this.physics.field(output.field);
      const values = results[output.name].data;
      if (output.indices == null) target.set(values);
      else output.indices.forEach((index, i) => { target[index] = values[i]; });
    }
  }

  tensor(dtype, values, shape) {
    return new this.ort.Tensor(dtype, toArray(dtype, values), shape);
  }

  /** Return the function that reads an input's values. */
  reader(input) {
    const { physics } = this;
    switch (input.kind) {
      case "data":
        if (input.field === "time") return () => [physics.time];
        physics.field(input.field);  // an unknown field is an error now
        return () => physics.field(input.field);
      case "velocity": {
        const index = physics.id(input.object, input.id);
        return () => physics.velocity(input.object, index, input.frame === "local");
      }
      case "rays":
        return () => physics.rays(input.rays);
      case "command":
        return (begin, commands) => commands.get(input.command) ?? new Array(input.size).fill(0);
      case "begin":
        return begin => [begin ? 1 : 0];
      default:
        throw new Error(`The policy's input '${input.name}' is of the unknown kind ` +
          `'${input.kind}': this page is older than the folder's world.json.`);
    }
  }

  dispose() {
    return this.session.release();
  }
}
