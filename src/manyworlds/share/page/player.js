// Time: control periods and physics steps in their order, in real time or one by one.

const MOST_BEHIND_S = 0.1;  // wall time that the world catches up in one picture

/**
 * Steps a world under a policy.
 *
 * ONNX Runtime answers later, so that everything that touches the world waits in one queue, and
 * no two steps overlap.
 */
export class Player {
  constructor() {
    this.physics = null;
    this.policy = null;
    /** Recorded motion of the world, or null. */
    this.recording = null;
    this.commands = new Map();
    this.paused = false;
    /** Simulated seconds a second. */
    this.speed = 1;
    /** Physics steps that the present control period has had. */
    this.substep = 0;
    this.owed = 0;
    this.last = null;
    this.queue = Promise.resolve();
    /** Called after each control period that passes in real time; may reset the world. */
    this.afterPeriod = () => {};
  }

  /** Run a function alone, after all that was asked before; return its result. */
  exclusive(call) {
    const result = this.queue.then(call);
    this.queue = result.catch(() => {});
    return result;
  }

  /** Physics steps of a control period. */
  get decimation() {
    if (this.policy) return this.policy.decimation;
    return Math.max(1, Math.round(0.02 / this.physics.timestep));
  }

  /** Start an episode. */
  begin() {
    this.physics.reset();
    this.policy?.reset();
    this.recording?.seek(0, this.physics);
    this.substep = 0;
    this.owed = 0;
  }

  /** Continue a recorded motion with physics and the policy. */
  takeOver() {
    this.recording.playing = false;
    this.policy?.reset();
    this.substep = 0;
    this.owed = 0;
  }

  /** Advance by one physics step; return whether a control period ended. */
  async step() {
    const { physics, policy } = this;
    const begins = this.substep === 0;
    if (policy?.actsIn(begins)) await policy.act(begins, this.commands);
    physics.step();
    this.substep += 1;
    if (this.substep < this.decimation) return false;
    this.substep = 0;
    physics.refresh();
    return true;
  }

  /** Advance by whole control periods, without regard to real time. */
  async stepPeriods(count) {
    if (this.recording?.playing) {
      const { time } = this.recording;
      const passed = count * this.decimation * this.physics.timestep;
      this.recording.seek(time + passed, this.physics);
      return;
    }
    for (let done = 0; done < count;) {
      if (await this.step()) done += 1;
    }
  }

  /** Advance to what the clock says; `now` is the time of a picture [ms]. */
  async follow(now) {
    const passed = this.last === null ? 0 : (now - this.last) / 1000;
    this.last = now;
    if (this.paused || !this.physics) return;
    if (this.recording?.playing) {
      const { time } = this.recording;
      this.recording.seek(time + this.speed * Math.min(passed, MOST_BEHIND_S), this.physics);
      return;
    }
    // A slow machine, or a page that was hidden, falls behind instead of freezing.
    this.owed += this.speed * Math.min(passed, MOST_BEHIND_S);
    const deadline = performance.now() + 1000 * MOST_BEHIND_S;
    const { timestep } = this.physics;
    while (this.owed >= timestep) {
      this.owed -= timestep;
      const ended = await this.step();
      if (ended) await this.afterPeriod();
      if (performance.now() > deadline) this.owed = 0;
    }
  }
}
