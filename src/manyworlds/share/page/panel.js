// The controls: a bar for time, and a panel for what is shown, commands, and random values.

import { makeCard } from "./card.js";
import { make, number } from "./dom.js";

const SPEEDS = [1, 0.5, 0.25, 0.1];

const ICONS = {
  play: "M8 5.5v13l10.5-6.5z",
  pause: "M7.5 5.5h3v13h-3zM13.5 5.5h3v13h-3z",
  step: "M6 5.5v13l8.5-6.5zM15.5 5.5h2.5v13h-2.5z",
  reset: "M12 5a7 7 0 1 0 6.7 5h-2.2a5 5 0 1 1-4.5-3v2.6L16.5 6 12 2.4z",
  follow: "M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z"
    + "M11 2h2v4h-2zM11 18h2v4h-2zM2 11h4v2H2zM18 11h4v2h-4z",
  menu: "M4 6.5h16v2H4zM4 11h16v2H4zM4 15.5h16v2H4z",
  open: "M13 4h7v7h-2V7.4l-8.3 8.3-1.4-1.4L16.6 6H13zM5 6h5v2H7v9h9v-3h2v5H5z",
};

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}

function iconButton(name, title, onclick) {
  return make("button.icon", { title, onclick, type: "button", "aria-label": title }, icon(name));
}

function section(title, ...children) {
  return make("section", {}, make("h2", {}, title), ...children);
}

/** Make a choice among names; null if there is nothing to choose. */
function makeChoice(title, names, chosen, onchange) {
  if (names.length < 2) return null;
  const select = make("select", { "aria-label": title, onchange: () => {
    select.blur();
    onchange(select.selectedIndex);
  } });
  names.forEach(name => select.append(make("option", {}, name)));
  select.selectedIndex = chosen;
  return make("label.choice", {}, make("span", {}, title), select);
}

/** Make a slider; `show` sets it to a value. */
function makeSlider(title, low, high, value, oninput) {
  const output = make("output");
  const range = make("input", { type: "range", min: low, max: high, step: (high - low) / 200 || 1,
    "aria-label": title });
  const show = value => {
    if (document.activeElement !== range || range.dataset.held === undefined) range.value = value;
    output.textContent = number(value);
  };
  range.addEventListener("pointerdown", () => { range.dataset.held = ""; });
  range.addEventListener("pointerup", () => { delete range.dataset.held; });
  range.addEventListener("input", () => {
    output.textContent = number(range.valueAsNumber);
    oninput(range.valueAsNumber);
  });
  show(value);
  const element = make("label.slider", {}, make("span", {}, title), output, range);
  return { element, show };
}

export class Panel {
  /**
   * @param {object} description world.json
   * @param {object} app what the controls do; see main.js
   * @param {boolean} embedded whether only a few controls are shown
   */
  constructor(description, app, embedded) {
    this.description = description;
    this.app = app;
    this.sliders = [];
    this.bar = this.makeBar(embedded);
    this.message = make("div", { id: "message", role: "status", hidden: true });
    document.body.append(this.bar, this.message);
    if (embedded) return;
    this.panel = make("aside", { id: "panel", "aria-label": "Controls" });
    new ResizeObserver(() => this.makeRoom()).observe(this.panel);
    const menu = iconButton("menu", "Show or hide the controls", () => {
      document.documentElement.classList.toggle("panel-closed");
    });
    menu.id = "menu";
    const narrow = window.matchMedia("(max-width: 720px)").matches;
    document.documentElement.classList.toggle("panel-closed", narrow);
    this.heading = make("header", { id: "heading" },
      make("h1", {}, description.title), this.subtitle = make("p"));
    document.body.append(this.heading, this.panel, menu);
  }

  /** Center the picture, and the bar, in the part that the panel leaves free. */
  makeRoom() {
    const { offsetWidth: width, offsetHeight: height } = this.panel;
    const beside = width < 0.5 * window.innerWidth;
    this.app.camera.covered = beside ? [width, 0] : [0, height];
    document.documentElement.style.setProperty("--covered", `${beside ? width : 0}px`);
  }

  makeBar(embedded) {
    const { app } = this;
    this.play = iconButton("pause", "Pause (space)", () => app.toggle());
    this.clock = make("output", { id: "clock", title: "Simulated time" });
    const reset = iconButton("reset", "Reset (R)", () => app.restart());
    const bar = make("div", { id: "bar", role: "toolbar", "aria-label": "Time" }, reset, this.play);
    if (embedded) {
      const whole = make("a.icon", { href: "?full", target: "_blank",
        title: "Open the whole page", "aria-label": "Open the whole page" }, icon("open"));
      bar.append(whole);
      return bar;
    }
    this.follow = iconButton("follow", "Follow with the camera (C)", () => app.toggleFollow());
    this.speeds = make("div.speeds", { role: "group", "aria-label": "Speed" });
    for (const speed of SPEEDS) {
      this.speeds.append(make("button", { type: "button", title: `Speed ${speed} times real time`,
        onclick: () => app.setSpeed(speed) }, `${String(speed).replace(/^0/, "")}×`));
    }
    bar.append(iconButton("step", "One control period (.)", () => app.stepOnce()),
      this.speeds, this.follow, this.clock);
    return bar;
  }

  /** Make the panel for the world and policy that are shown now. */
  build() {
    if (!this.panel) return;
    const { app, description } = this;
    const policy = app.policies[app.policyIndex];
    const world = description.worlds[app.worldIndex];
    this.subtitle.textContent = [policy?.name, world.name]
      .filter(name => name && name !== description.title).join(" · ");
    const parts = [
      makeChoice("World", description.worlds.map(each => each.name), app.worldIndex,
        index => app.choose({ world: index })),
      makeChoice("Policy", app.policies.map(each => each.name), app.policyIndex,
        index => app.choose({ policy: index })),
      this.makeRecording(),
      this.makeCommands(),
      app.player.policy ? null : this.makeActuators(),
      this.makeRandomization(),
      makeCard(description, app.physics.version),
    ];
    this.panel.replaceChildren(...parts.filter(part => part !== null));
    this.refresh();
  }

  /** Make the time line of a recorded motion, and the button that ends it. */
  makeRecording() {
    const { recording } = this.app.player;
    this.moment = null;
    if (!recording) return null;
    this.moment = makeSlider("Time [s]", 0, recording.duration, 0, time => this.app.seek(time));
    const takeOver = make("button.primary", { type: "button", onclick: () => this.app.takeOver() },
      "Continue from here");
    takeOver.title = "Let physics, and the policy if there is one, continue from this pose";
    return section("Recording", this.moment.element, make("div.row", {}, takeOver));
  }

  makeCommands() {
    const { commands } = this.app;
    this.sliders = [];
    const rows = [];
    for (const command of commands.active) {
      command.start.forEach((value, i) => {
        if (command.low[i] === command.high[i]) return;
        const label = command.labels[i] ?? `${command.name} ${i + 1}`;
        const slider = makeSlider(label, command.low[i], command.high[i], value, changed => {
          const values = Array.from(commands.chosen.get(command.name));
          values[i] = changed;
          commands.set(command.name, values);
        });
        this.sliders.push({ slider, command, i });
        rows.push(slider.element);
      });
    }
    if (!rows.length) return null;
    const zero = make("button", { type: "button", onclick: () => commands.restart() },
      "Reset command");
    const hint = make("p.hint", {});
    if (commands.driven?.kind === "velocity" && !commands.driven.keys) {
      hint.textContent = "Drive: W S forward, A D sideways, Q E turn; or a gamepad.";
    }
    return section("Command", ...rows, make("div.row", {}, zero), hint);
  }

  /** Make sliders of the actuators, for worlds without a policy. */
  makeActuators() {
    const { physics } = this.app;
    const { nu, actuator_ctrlrange: range } = physics.model;
    const rows = [];
    for (let i = 0; i < Math.min(nu, 60); i++) {
      const low = range[2 * i];
      const high = range[2 * i + 1];
      if (low >= high) continue;
      const name = physics.name("actuator", i) || `actuator ${i}`;
      const slider = makeSlider(name, low, high, physics.field("ctrl")[i], value => {
        this.app.player.exclusive(() => { physics.field("ctrl")[i] = value; });
      });
      rows.push(slider.element);
    }
    if (!rows.length) return null;
    return make("details.section", {}, make("summary", {}, "Actuators"), ...rows);
  }

  makeRandomization() {
    const { randomization } = this.app;
    if (!randomization.entries.length) return null;
    this.cells = randomization.entries.map(() => make("td"));
    const table = make("table", {}, make("thead", {}, make("tr", {},
      make("th", {}, "Value"), make("th", {}, "Drawn"), make("th", {}, "Range"))));
    randomization.entries.forEach((entry, i) => {
      table.append(make("tr", {}, make("td", {}, entry.label), this.cells[i],
        make("td", {}, rangeOf(entry))));
    });
    return section("Randomization",
      make("div.row", {},
        make("button.primary", { type: "button", onclick: () => this.app.randomize(true) },
          "Draw anew"),
        make("button", { type: "button", onclick: () => this.app.randomize(false) },
          "As compiled")),
      table);
  }

  /** Show the present values. */
  refresh() {
    const { app } = this;
    const { player } = app;
    const title = player.paused ? "Play (space)" : "Pause (space)";
    if (this.play.title !== title) {
      this.play.title = title;
      this.play.setAttribute("aria-label", title);
      this.play.replaceChildren(icon(player.paused ? "play" : "pause"));
    }
    if (!this.panel) return;
    this.clock.textContent = `${player.physics.time.toFixed(1)} s`;
    [...this.speeds.children].forEach((button, i) => {
      button.setAttribute("aria-pressed", String(SPEEDS[i] === player.speed));
    });
    this.moment?.show(player.recording.time);
    this.follow.hidden = app.camera.body < 0;
    this.follow.setAttribute("aria-pressed", String(app.camera.following));
    for (const { slider, command, i } of this.sliders) {
      slider.show(app.commands.values.get(command.name)[i]);
    }
    app.randomization.drawn.forEach((drawn, i) => {
      const [least, most] = drawn ?? [NaN, NaN];
      let text = number(least);
      if (most > least) text += ` … ${number(most)}`;
      if (this.cells?.[i].textContent !== text) this.cells[i].textContent = text;
    });
  }

  /** Hide the sentence that is shown. */
  hush() {
    this.message.hidden = true;
  }

  /** Show a sentence for a while, or until another comes. */
  say(text, { error = false } = {}) {
    clearTimeout(this.timer);
    this.message.textContent = text;
    this.message.classList.toggle("error", error);
    this.message.hidden = false;
    if (!error) this.timer = setTimeout(() => this.hush(), 3500);
  }
}

function rangeOf({ operation, low, high, distribution }) {
  // Axes may have ranges of their own: the table shows the widest.
  const least = number(Math.min(...[low].flat()));
  const most = number(Math.max(...[high].flat()));
  const range = distribution === "gaussian" ? `${least} ± ${most}` : `${least} … ${most}`;
  if (operation === "scale") return `× ${range}`;
  return operation === "add" ? `+ (${range})` : range;
}
