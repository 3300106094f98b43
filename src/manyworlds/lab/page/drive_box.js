// Box on the page of a lab that drives a robot with held keys, pads on the screen, and gamepads.
// It talks to the page's own WebSocket, because viser does not tell when a key goes up.
(window.labDriving ||= (() => {
  const {add, button, connect} = window.labBoxes;
  const KEYS = {  // axis of the velocity, and its sign: forward, left, counter-clockwise
    KeyW: [0, 1], KeyS: [0, -1], KeyA: [1, 1], KeyD: [1, -1], KeyQ: [2, 1], KeyE: [2, -1],
  };
  const STICKS = [[1, 0], [0, 1], [2, 2]];  // axis of a gamepad, and of the velocity
  const POLL_MS = 40;
  const RENEW_MS = 150;  // what is held ends by itself after 500 ms
  const LIST_MS = 2000;  // period in which the robots that can be driven are read
  const TRIGGER = 0.5;  // an axis that rests beyond this is a trigger, if the gamepad has no layout
  const DEAD = 0.1;  // share of a stick's way that counts as rest
  const PAD_PX = 92;
  const LOST = "The connection to the lab is lost: the robot stops.";
  let line = null, address = "", error = "", robot = "", robots = {};
  let driving = false, sending = false, sent = "", sentAt = 0, gamepad = "", away = false;
  let rests = [];  // values of the axes of the gamepad when it was first seen
  const held = new Set(), pads = {move: [0, 0], turn: [0, 0]}, shown = new Set();

  const box = labBoxes.box("lab-drive", "max-width:300px;user-select:none");
  const hint = add(box, "div", "opacity:.65");
  const speed = add(box, "div", "font-variant-numeric:tabular-nums");
  const plate = add(box, "div", "display:flex;gap:12px;margin:.4em 0");
  const buttons = add(box, "div", "display:flex;flex-wrap:wrap;gap:.3em;margin:.3em 0");
  const stick = add(box, "div", "opacity:.65");
  const wrong = add(box, "div", "color:#c92a2a");
  const row = add(box, "div", "display:flex;gap:.4em;align-items:center");
  const toggle = button(row, "Drive", () => driving ? stop() : start());
  const choice = add(row, "select", "font:inherit;max-width:9em");
  choice.onchange = () => { choice.blur(); leave(); robot = choice.value; show(); };

  const pad = (name, title, flat) => {
    const ring = add(plate, "div", `width:${PAD_PX}px;height:${PAD_PX}px;border-radius:50%;` +
      "position:relative;background:rgba(0,0,0,.08);touch-action:none;cursor:grab");
    ring.title = title;
    ring.id = "lab-pad-" + name;
    const knob = add(ring, "div", "width:36%;height:36%;left:32%;top:32%;border-radius:50%;" +
      "position:absolute;background:#4263eb;pointer-events:none");
    add(ring, "div", "position:absolute;inset:auto 0 4px;text-align:center;opacity:.65;" +
      "font-size:11px;pointer-events:none", title);
    const put = (x, y) => {  // right and up, in [-1, 1]
      const far = Math.max(1, Math.hypot(x, y));
      pads[name] = [x / far, flat ? 0 : y / far];
      knob.style.transform =
        `translate(${pads[name][0] * 0.32 * PAD_PX}px,${-pads[name][1] * 0.32 * PAD_PX}px)`;
    };
    const follow = event => {
      const place = ring.getBoundingClientRect();
      const half = place.width / 2;
      put((event.clientX - place.left) / half - 1, 1 - (event.clientY - place.top) / half);
      tick();
    };
    ring.onpointerdown = event => {
      event.preventDefault();
      ring.setPointerCapture(event.pointerId);
      away = false;
      follow(event);
    };
    ring.onpointermove = event => ring.hasPointerCapture(event.pointerId) && follow(event);
    ring.onlostpointercapture = ring.onpointercancel = () => { put(0, 0); tick(); };
    return () => put(0, 0);
  };
  const centers = [pad("move", "move", false), pad("turn", "turn", true)];

  const bound = () => Object.keys(robots[robot]?.inputs || {});
  const label = input => input.replace(/^(Key|Digit|Arrow)/, "").replace(/(\d+)$/, " $1").trim();
  const showButtons = () => {
    const wanted = bound().filter(input => !input.startsWith("Axis"));
    if (wanted.join() == [...shown].join()) return;
    shown.clear();
    buttons.replaceChildren();
    for (const input of wanted) {
      shown.add(input);
      const key = add(buttons, "button",
        "font:inherit;padding:.2em .6em;touch-action:none;border:1px solid #adb5bd;" +
        "border-radius:4px;background:#f8f9fa");
      add(key, "b", "", label(input));
      add(key, "span", "opacity:.7;margin-left:.4em", robots[robot].inputs[input]);
      key.onpointerdown = event => {
        key.setPointerCapture(event.pointerId);
        held.add(input);
        tick();
      };
      key.onlostpointercapture = () => { held.delete(input); tick(); };
    }
  };
  const show = () => {
    const velocity = driving && robots[robot]?.velocity;
    toggle.textContent = driving ? "Stop driving" : "Drive";
    const open = line?.open;
    const names = Object.keys(robots);
    // Another page may be shown now, or a world in which nothing can be driven.
    box.style.display = open && names.length || error ? "" : "none";
    toggle.disabled = !open;
    const walks = names.filter(name => robots[name].velocity);
    const keys = names.flatMap(name => Object.keys(robots[name].inputs).map(label));
    const ways = [];
    if (walks.length) ways.push("W S A D and Q E");
    if (keys.length) ways.push([...new Set(keys)].join(" "));
    hint.textContent = !driving ? "Press Drive, then " + ways.join(", ")
      : velocity ? "W S forward and back, A D left and right, Q E turn, while held; Esc ends"
      : "Hold a key or a button; Esc ends";
    plate.style.display = velocity ? "flex" : "none";
    speed.style.display = velocity ? "" : "none";
    buttons.style.display = driving && bound().length ? "flex" : "none";
    if (driving) showButtons();
    stick.textContent = driving && gamepad ? "Gamepad: " + gamepad : "";
    wrong.textContent = error;
    choice.hidden = !driving || choice.options.length < 2;
  };

  const ask = message => line.ask(message);
  const list = async () => {
    const reply = await ask({ask: "list"});
    robots = reply.robots || {};
    return reply;
  };
  setInterval(async () => {
    if (driving || document.hidden || !line?.open) return;
    await list();
    show();
  }, LIST_MS);
  const start = async () => {
    error = "";
    const reply = await list();
    const names = Object.keys(robots);
    error = reply.error || (names.length ? "" :
      "No robot takes a velocity, and no input is bound: run a policy, or bind inputs.");
    error ||= await window.labNetwork?.lease?.() || "";
    if (!error) {
      choice.replaceChildren(...names.map(name => new Option(name)));
      robot = choice.value = names.includes(robot) ? robot : names[0];
      driving = true;
      sent = "";
      tick();
    }
    show();
  };
  const release = () => {
    held.clear();
    for (const center of centers) center();
  };
  const leave = () => {  // the robot stops
    release();
    sent = "";
    if (driving) ask({ask: "stop", robot});
  };
  const stop = (text = "") => {
    if (!driving) return;
    leave();
    driving = false;
    error = text;
    show();
  };
  const readGamepad = () => {
    const all = [...navigator.getGamepads?.() || []].filter(pad => pad?.connected);
    const found = all.find(pad => pad.id == gamepad) || all[0];
    const name = found?.id || "";
    if (gamepad && !found) error = `The gamepad '${gamepad}' is gone: its robot stops.`;
    else if (name && name != gamepad) error = "";
    if (name != gamepad) {
      gamepad = name;
      rests = [];
      show();
    }
    return away || document.hidden ? undefined : found;
  };
  const read = () => {  // what is held now
    const velocity = [0, 0, 0], inputs = {}, mine = bound();
    let actions = 0;
    for (const code of held) {
      if (mine.includes(code)) inputs[code] = 1;
      else if (code in KEYS) velocity[KEYS[code][0]] += KEYS[code][1];
      else if (code.startsWith("Digit")) actions |= 1 << (+code.at(-1) + 9) % 10;
    }
    velocity[0] += pads.move[1];
    velocity[1] -= pads.move[0];
    velocity[2] -= pads.turn[0];
    const found = readGamepad();
    const axis = i => Math.abs(found.axes[i] || 0) < DEAD ? 0 : found.axes[i];
    if (found) {
      // Axes in the order of no layout may be triggers, which rest at -1: those do not steer.
      if (!rests.length) rests = [...found.axes];
      const steers = i => found.mapping == "standard" || !(rests[i] < -TRIGGER);
      for (const [i, part] of STICKS)
        if (!mine.includes("Axis" + i) && steers(i)) velocity[part] -= axis(i);
      for (const input of mine) {
        const [, kind, i] = /^(Axis|Button)(\d+)$/.exec(input) || [];
        const value = kind == "Axis" ? axis(i) : kind && found.buttons[i]?.value;
        if (value) inputs[input] = Math.max(-1, Math.min(1, value));
      }
    }
    const twist = velocity.map(share => +Math.max(-1, Math.min(1, share)).toFixed(3) + 0);
    return {ask: "drive", robot, twist, inputs, actions};
  };
  const tick = async () => {
    if (!driving || sending) return;  // the newest inputs follow when this has its reply
    const message = read(), text = JSON.stringify(message), now = performance.now();
    if (text == sent && now < sentAt + RENEW_MS) return;
    [sending, sent, sentAt] = [true, text, now];
    const reply = await ask(message);
    sending = false;
    if (!driving || message.robot != robot) return;
    if (reply.error) return stop(reply.error);
    const [ahead, left, turn] = reply.twist.map(value => value.toFixed(2));
    speed.textContent = `Ahead ${ahead} m/s, left ${left} m/s, turn ${turn} rad/s`;
    robots[robot].inputs = reply.inputs;
    showButtons();
  };
  setInterval(tick, POLL_MS);

  const typing = event => event.target.closest?.("input:not([type=range]), textarea, select");
  window.addEventListener("keydown", event => {
    if (!driving || event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
    if (event.code == "Escape") return stop();
    if (!(event.code in KEYS || /^Digit\d$/.test(event.code) || bound().includes(event.code)))
      return;
    event.stopImmediatePropagation();  // these keys move the camera otherwise
    event.preventDefault();
    if (event.repeat || held.has(event.code)) return;
    away = false;
    held.add(event.code);
    tick();
  }, true);
  window.addEventListener("keyup", event => { if (held.delete(event.code)) tick(); }, true);
  const goAway = () => { away = true; release(); tick(); };
  window.addEventListener("blur", goAway);
  window.addEventListener("focus", () => { away = false; });
  window.addEventListener("pagehide", goAway);
  document.addEventListener("visibilitychange", () => document.hidden && goAway());

  const opened = async () => {
    if (error == LOST) error = "";
    await list();
    show();
  };
  const closed = () => { stop(LOST); robots = {}; show(); };
  const use = fresh => {
    if (fresh == address) return;
    address = fresh;
    stop();
    line?.end();
    line = connect(address, {opened, closed, lost: {error: LOST}});
    show();
  };
  return {use, stop, get driving() { return driving; }};
})()).use
