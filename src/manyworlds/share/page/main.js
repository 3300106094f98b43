// The page: loads a folder's world, runs it in real time, and offers `window.manyworlds`.
//
// `window.manyworlds`, for pages that embed this one and for tests:
//   ready                     promise that resolves once the world runs; rejects with the reason
//   pause(), play()           stop and continue real time
//   reset()                   go to the start of an episode, without random values
//   setCommand(name, values)  set what a command has while nothing is held
//   stepControl(n)            pause, advance by n control periods without drawing; state()
//   state()                   time, qpos, qvel and ctrl, as plain arrays
//   screenOf(point)           where a point of the world is on the screen, [x, y] in pixels
//   choose({world, policy})   show another world, or another policy of the world, by index, at a
//                             start as the button Reset draws it
// All functions return promises.
//
// In the address, ?embed shows few controls, ?full all of them, and ?world=2 the third world first.

import { Camera } from "./camera.js";
import { Commands } from "./commands.js";
import { loadOnnxRuntime, Policy } from "./control.js";
import { make } from "./dom.js";
import { fetchJson } from "./files.js";
import { Goals } from "./goals.js";
import { listenToKeys, listenToPointers, makePads } from "./input.js";
import { Panel } from "./panel.js";
import { loadMujoco, Physics } from "./physics.js";
import { Player } from "./player.js";
import { Push } from "./push.js";
import { nudgeStart, Randomization, randomizeStart } from "./randomization.js";
import { Recording } from "./recording.js";
import { Scene } from "./scene.js";
import { makeTerminations } from "./terminations.js";

const VERSION = 1;  // of world.json

const asked = new URLSearchParams(location.search);

class App {
  constructor(description, mujoco, ort) {
    this.description = description;
    this.mujoco = mujoco;
    this.ort = ort;
    const canvas = document.getElementById("view");
    this.camera = new Camera(canvas);
    this.push = new Push(this.camera);
    this.scene = new Scene(canvas);
    this.player = new Player();
    this.player.afterPeriod = () => this.afterPeriod();
    this.commands = new Commands(description.commands ?? []);
    this.worldIndex = -1;
    this.policyIndex = 0;
    this.goals = new Goals(this.commands, this.camera, this.scene.scene);
    this.panel = new Panel(description, this, document.documentElement.matches(".embed"));
    this.pads = null;
    const exclusive = call => this.player.exclusive(call);
    listenToPointers(canvas, this.camera, this.goals, this.push, exclusive);
    listenToKeys(() => this.commands, {
      Space: () => this.toggle(),
      Period: () => this.stepOnce(),
      KeyR: () => this.restart(),
      KeyC: () => this.toggleFollow(),
    });
  }

  get physics() {
    return this.player.physics;
  }

  /** Policies that fit the world which is shown. */
  get policies() {
    return this.description.policies.filter(
      policy => policy.world == null || policy.world === this.worldIndex);
  }

  /** Show another world, or another policy, by index. */
  choose({ world = this.worldIndex, policy = null }) {
    return this.player.exclusive(() => this.show(world, policy))
      .catch(error => { this.fail(error); throw error; });
  }

  async show(world, policy) {
    const { player, description } = this;
    if (!(world in description.worlds)) throw new Error(`There is no world ${world}.`);
    if (world !== this.worldIndex) {
      const physics = await Physics.load(this.mujoco, description.worlds[world]);
      const before = this.physics;
      const { camera = description.camera, recording } = description.worlds[world];
      player.recording = recording ? await Recording.load(recording) : null;
      this.worldIndex = world;
      player.physics = physics;
      physics.reset();
      this.randomization = new Randomization(physics, this.entries("randomization"));
      this.ended = makeTerminations(this.entries("terminations"), physics);
      this.push.use(physics);
      this.scene.show(physics);
      this.camera.place(physics, camera);
      before?.dispose();
      policy ??= 0;
      this.policyIndex = -1;
    }
    if (policy !== null && policy !== this.policyIndex) {
      await player.policy?.dispose();
      player.policy = null;
      const chosen = this.policies[policy];
      if (chosen) player.policy = await Policy.open(this.ort, chosen, this.physics);
      this.policyIndex = policy;
    }
    player.commands = this.commands.values;
    this.commands.use(this.policies[this.policyIndex]);
    this.goals.build();
    this.pads?.remove();
    this.pads = makePads(this.commands);
    if (this.pads) document.body.append(this.pads);
    this.begin({ random: true });
    this.panel.build();
  }

  /** Entries of world.json that hold in the world which is shown. */
  entries(name) {
    const own = this.description.worlds[this.worldIndex][name];
    return own ?? this.description[name] ?? [];
  }

  /** Start an episode, where the task varies the start. */
  restart() {
    this.panel.hush();
    return this.player.exclusive(() => this.begin({ random: true }));
  }

  begin({ random }) {
    this.push.end();
    this.player.begin();
    if (this.player.recording) random = false;
    const reset = this.description.worlds[this.worldIndex].reset ?? this.description.reset;
    if (random) randomizeStart(this.physics, reset?.ranges ?? []);
    if (random && this.player.policy) nudgeStart(this.physics);
    this.scene.drawn = null;
  }

  /** Draw the model's values anew, or go back to the compiled ones, and start an episode. */
  randomize(anew) {
    return this.player.exclusive(() => {
      if (anew) this.randomization.draw();
      else this.randomization.clear();
      this.begin({ random: true });
      this.scene.show(this.physics);  // sizes and colors may have changed
    });
  }

  afterPeriod() {
    if (!this.physics.finite) {
      this.panel.say("The simulation became unstable, and starts again.");
      this.begin({ random: true });
      return;
    }
    const reason = this.ended();
    if (reason === null || this.push.active) return;
    this.panel.say(`The episode ended: ${reason}.`);
    this.begin({ random: true });
  }

  /** Go to a time of the recorded motion [s]. */
  seek(time) {
    return this.player.exclusive(() => this.player.recording.seek(time, this.physics));
  }

  /** Continue the recorded motion with physics. */
  takeOver() {
    return this.player.exclusive(() => this.player.takeOver());
  }

  toggle() {
    this.player.paused = !this.player.paused;
  }

  toggleFollow() {
    this.camera.following = !this.camera.following;
  }

  setSpeed(speed) {
    this.player.speed = speed;
  }

  stepOnce() {
    this.player.paused = true;
    return this.player.exclusive(() => this.player.stepPeriods(1));
  }

  /** Run and draw until the page closes. */
  async run() {
    let last = performance.now();
    for (;;) {
      const now = await new Promise(requestAnimationFrame);
      if (this.stopped) return;
      this.commands.update();
      try {
        await this.player.exclusive(() => this.player.follow(now));
      } catch (error) {
        this.fail(error);
      }
      await this.player.exclusive(() => {
        this.camera.follow((now - last) / 1000);
        this.scene.showSpring(this.push.ends);
        this.scene.draw(this.camera, this.goals.update());
        this.panel.refresh();
      });
      last = now;
    }
  }

  state() {
    const state = { time: this.physics.time };
    for (const name of ["qpos", "qvel", "ctrl"]) state[name] = Array.from(this.physics.field(name));
    return state;
  }

  /** Stop, and say why. */
  fail(error) {
    console.error(error);
    this.player.paused = true;
    this.panel.say(error.message, { error: true });
  }
}

/** Say in place of the page why it cannot run. */
function showFailure(error) {
  console.error(error);
  document.getElementById("loading")?.remove();
  document.body.append(make("div", { id: "failure", role: "alert" },
    make("b", {}, "This world cannot be shown."), make("p", {}, error.message)));
}

function checkBrowser() {
  if (typeof DecompressionStream === "undefined" || typeof WebAssembly === "undefined") {
    throw new Error("This browser lacks WebAssembly or DecompressionStream: use one from 2023 or " +
      "newer.");
  }
  const canvas = document.createElement("canvas");
  if (!canvas.getContext("webgl2")) {
    throw new Error("This browser has no WebGL 2, which draws the world: turn on hardware " +
      "acceleration, or use another browser.");
  }
}

async function start() {
  checkBrowser();
  const description = await fetchJson("world.json");
  if (description.version > VERSION) {
    throw new Error(`world.json is of version ${description.version}, but this page reads ` +
      `versions up to ${VERSION}: write the folder again with a newer manyworlds.`);
  }
  document.title = description.title;
  const needsPolicies = description.policies.length > 0;
  const [mujoco, ort] = await Promise.all([loadMujoco(), needsPolicies ? loadOnnxRuntime() : null]);
  const app = new App(description, mujoco, ort);
  await app.choose({ world: Number(asked.get("world") ?? 0), policy: 0 });
  document.getElementById("loading").remove();
  app.run().catch(error => app.fail(error));
  return app;
}

if (asked.has("embed")) document.documentElement.classList.add("embed");
if (asked.has("full")) document.documentElement.classList.remove("embed");
const starting = start();
window.manyworlds = {
  ready: starting.then(() => {}),
  pause: async () => { (await starting).player.paused = true; },
  play: async () => { (await starting).player.paused = false; },
  reset: async () => {
    const app = await starting;
    await app.player.exclusive(() => app.begin({ random: false }));
  },
  setCommand: async (name, values) => (await starting).commands.set(name, values),
  stepControl: async count => {
    const app = await starting;
    app.player.paused = true;
    return app.player.exclusive(async () => {
      await app.player.stepPeriods(count);
      return app.state();
    });
  },
  state: async () => {
    const app = await starting;
    return app.player.exclusive(() => app.state());
  },
  screenOf: async point => (await starting).camera.screenOf(point),
  choose: async choice => (await starting).choose(choice),
};
starting.catch(showFailure);
