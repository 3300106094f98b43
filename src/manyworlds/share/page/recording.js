// A recorded motion, which plays in a loop until physics continues from one of its poses.

import { fetchBytes } from "./files.js";

export class Recording {
  /** Load the motion that a world of world.json names. */
  static async load({ file, period, columns }) {
    const bytes = await fetchBytes(file);
    return new Recording(new Float32Array(bytes.buffer, 0, bytes.byteLength / 4), period, columns);
  }

  constructor(values, period, columns) {
    this.values = values;
    this.period = period;
    this.columns = columns;
    this.rows = values.length / columns;
    /** Time since the first row [s]. */
    this.time = 0;
    /** False once physics has taken over. */
    this.playing = true;
  }

  get duration() {
    return (this.rows - 1) * this.period;
  }

  /** Go to a time; past the end, the motion begins again. */
  seek(time, physics) {
    this.time = this.duration > 0 ? time % (this.duration + this.period) : 0;
    this.playing = true;
    const row = Math.min(Math.floor(this.time / this.period + 1e-6), this.rows - 1);
    const values = this.values.subarray(row * this.columns, (row + 1) * this.columns);
    const { nq } = physics.model;
    physics.field("qpos").set(values.subarray(0, nq));
    physics.field("qvel").set(values.subarray(nq));
    physics.data.time = this.time;
    physics.refresh();
  }
}
