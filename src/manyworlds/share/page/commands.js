// Commands of the user: values of sliders, and what is held on keys, sticks and pads.

const DEAD = 0.1;  // share of a stick's way that counts as rest

/** Component and amount of keys that drive velocities: forward, left, counter-clockwise. */
const VELOCITY_KEYS = {
  KeyW: [0, 1], KeyS: [0, -1], ArrowUp: [0, 1], ArrowDown: [0, -1],
  KeyA: [1, 1], KeyD: [1, -1],
  KeyQ: [2, 1], KeyE: [2, -1], ArrowLeft: [2, 1], ArrowRight: [2, -1],
};
/** Axes of a gamepad with the component of a velocity that each drives, backwards. */
const VELOCITY_AXES = [[1, 0], [0, 1], [2, 2]];

export class Commands {
  /** @param {object[]} descriptions `commands` of world.json */
  constructor(descriptions) {
    this.descriptions = descriptions;
    /** Values of sliders by command. */
    this.chosen = new Map();
    /** What policies read, by command. */
    this.values = new Map();
    /** Commands that the present policy reads. */
    this.active = descriptions;
    this.keys = new Set();
    /** Position of the pads on the screen by component, from -1 to 1. */
    this.pads = new Map();
    for (const { name, start } of descriptions) {
      this.chosen.set(name, Array.from(start));
      this.values.set(name, Array.from(start));
    }
  }

  /** The command that keys, pads and gamepads drive, if there is one. */
  get driven() {
    return this.active.find(command => Object.keys(keysOf(command)).length);
  }

  /** Whether a key drives. */
  drives(code) {
    return this.driven !== undefined && code in keysOf(this.driven);
  }

  /** Offer the commands that a policy of world.json reads; none without a policy. */
  use(policy) {
    const inputs = policy?.inputs ?? [];
    const names = inputs.filter(({ kind }) => kind === "command").map(({ command }) => command);
    this.active = this.descriptions.filter(({ name }) => names.includes(name));
    this.keys.clear();
    this.pads.clear();
    this.update();
  }

  /** Set the values that a command has while nothing is held. */
  set(name, values) {
    const known = this.chosen.get(name);
    if (!known) {
      const names = [...this.chosen.keys()].join(", ") || "none";
      throw new Error(`There is no command '${name}'; there are: ${names}.`);
    }
    const numbers = Array.from(values, Number);
    if (numbers.length !== known.length || !numbers.every(Number.isFinite)) {
      throw new Error(`The command '${name}' takes ${known.length} numbers, got [${values}].`);
    }
    this.chosen.set(name, numbers);
    this.update();
  }

  restart() {
    for (const { name, start } of this.descriptions) this.chosen.set(name, Array.from(start));
    this.update();
  }

  /** Compute what policies read from what is set and held now. */
  update() {
    for (const { name } of this.descriptions) {
      this.values.set(name, Array.from(this.chosen.get(name)));
    }
    const { driven } = this;
    if (!driven) return;
    const values = this.values.get(driven.name);
    this.amounts(driven).forEach((amount, i) => {
      if (amount > 0) values[i] = amount * driven.high[i];
      if (amount < 0) values[i] = -amount * driven.low[i];
    });
  }

  /** How far each component is driven, from -1 to 1; 0 where nothing is held. */
  amounts(command) {
    const amounts = new Array(command.start.length).fill(0);
    const keys = keysOf(command);
    for (const code of this.keys) {
      if (!(code in keys)) continue;
      const [component, amount] = keys[code];
      amounts[component] += amount;
    }
    for (const [component, amount] of this.pads) amounts[component] += amount;
    if (command.kind === "velocity") {
      for (const gamepad of navigator.getGamepads?.() ?? []) {
        for (const [axis, component] of VELOCITY_AXES) {
          const amount = gamepad?.axes[axis] ?? 0;
          if (Math.abs(amount) > DEAD && component < amounts.length) amounts[component] -= amount;
        }
      }
    }
    return amounts.map(amount => Math.min(Math.max(amount, -1), 1));
  }
}

function keysOf(command) {
  if (command.keys) return command.keys;
  if (command.kind !== "velocity") return {};
  const size = command.start.length;
  return Object.fromEntries(
    Object.entries(VELOCITY_KEYS).filter(([, [component]]) => component < size));
}
