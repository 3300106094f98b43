// Box on the page of a lab: who drives, and driving with keys that are held.
// It talks to the lab's WebSocket, because the page's own one does not tell when a key goes up.
window.labNetwork ||= (port => {
  const KEYS = {  // axis of the velocity, and its sign
    KeyW: [0, 1], KeyS: [0, -1], KeyA: [1, 1], KeyD: [1, -1], KeyQ: [2, 1], KeyE: [2, -1],
  };
  const FASTEST = [0.8, 0.5, 1.57];  // forward, left [m/s], yaw [rad/s]
  const RENEW_MS = 150;  // a held velocity ends by itself after 500 ms
  const RETRY_MS = 2000;
  const RATE_MS = 2000;
  const LOST = "Another program has taken over.";
  let socket = null, session = "", waiting = [], status = {}, error = "", last = "", rate = "";
  let driving = false, robot = "", taken = [], sending = false, again = false, counted = null;
  const held = new Set();

  const add = (parent, tag, style = "", text = "") => {
    const node = document.createElement(tag);
    node.style.cssText = style;
    node.textContent = text;
    return parent.appendChild(node);
  };
  const box = add(document.body, "div",
    "position:fixed;left:12px;bottom:12px;z-index:1000;max-width:300px;padding:.5em .7em;" +
    "border-radius:6px;background:rgba(255,255,255,.92);color:#212529;font:13px/1.45 system-ui," +
    "sans-serif;box-shadow:0 1px 4px rgba(0,0,0,.3);overflow-wrap:anywhere");
  box.id = "lab-network";
  const who = add(box, "div", "font-weight:600");
  const clients = add(box, "div", "opacity:.65");
  const news = add(box, "div", "opacity:.65");
  const wrong = add(box, "div", "color:#c92a2a");
  const hint = add(box, "div", "", "W S A D move, Q E turn, while they are held; Esc ends");
  const row = add(box, "div", "margin-top:.3em;display:flex;gap:.4em;align-items:center");
  const button = (text, action) => {
    const node = add(row, "button", "font:inherit;padding:.1em .6em;cursor:pointer", text);
    node.onclick = () => { node.blur(); action(); };
    return node;
  };
  const take = button("Take over", () => mine() ? giveBack() : takeOver());
  const drive = button("Drive with keys", () => driving ? stop() : start());
  const robots = add(row, "select", "font:inherit;max-width:7em");
  robots.onchange = () => { release(); robot = robots.value; robots.blur(); };
  const speed = add(row, "input", "width:4em");
  Object.assign(speed, {type: "range", min: 0.1, max: 2, step: 0.1, value: 1, title: "Speed"});

  const mine = () => session && (status.driver || "").endsWith(" " + session.slice(0, 8));
  const show = () => {
    const open = socket && socket.readyState == 1;
    if (driving && open && status.driver && !mine()) stop(LOST);
    who.textContent = !open ? "No connection to the lab's server"
      : mine() ? "This page drives" : status.driver ? status.driver + " drives" : "Nobody drives";
    const others = (status.clients || []).filter(name => !name.endsWith(session.slice(0, 8)));
    const pace = status.paused ? "paused" : status.mode;
    clients.textContent = !open ? "" :
      [others.length ? others.join(", ") : "no programs", pace, rate].filter(Boolean).join(" \u00b7 ");
    news.textContent = last;
    wrong.textContent = [error, ...(open && status.port_errors || [])].join("\n");
    wrong.style.whiteSpace = "pre-line";
    take.textContent = mine() ? "Give back" : "Take over";
    drive.textContent = driving ? "Stop driving" : "Drive with keys";
    hint.hidden = speed.hidden = !driving;
    robots.hidden = !driving || robots.options.length < 2;
    take.disabled = drive.disabled = !open;
  };
  const ask = (op, fields = {}) => new Promise(resolve => {
    if (socket.readyState != 1) return resolve({op: "error", message: "The connection is lost."});
    waiting.push(resolve);  // replies come in the order of the requests
    socket.send(JSON.stringify({op, session_id: session, ...fields}));
  });
  const order = async (op, fields) => {  // an action of the user, whose error is shown
    const reply = await ask(op, fields);
    error = reply.op == "error" ? reply.message : "";
    show();
    return reply;
  };
  const takeOver = async () => {
    if ((await order("take_driver")).op == "error") return;
    const known = (await order("read_status")).robots || {};
    taken = Object.keys(known).filter(name => known[name].owner == "net");
    for (const name of taken) await order("take_robot", {robot: name, owner: "panel"});
  };
  const giveBack = async () => {
    stop();
    for (const name of taken) await order("take_robot", {robot: name, owner: "net"});
    taken = [];
    await order("release_driver");
  };

  const start = async () => {
    const known = (await order("read_status")).robots || {};
    const names = Object.keys(known).filter(name => known[name].twist.length);
    if (!names.length) {
      error ||= "No robot takes a velocity: run a policy that does.";
      return show();
    }
    robots.replaceChildren(...names.map(name => new Option(name)));
    robot = robots.value = names.includes(robot) ? robot : names[0];
    if (!mine() && (await order("take_driver")).op == "error") return;
    status.driver = " " + session.slice(0, 8);  // the event comes later
    driving = true;
    show();
  };
  const stop = (text = "") => {
    if (driving && text) error = text;
    driving = false;
    release();
    show();
  };
  const release = () => {
    if (!held.size) return;
    held.clear();
    if (mine()) send();  // otherwise the server has ended the velocity
  };
  const send = async () => {
    if (sending) return void (again = true);  // the newest keys follow when this has its reply
    sending = true;
    do {
      again = false;
      const velocity = [0, 0, 0];
      for (const code of held) velocity[KEYS[code][0]] += KEYS[code][1];
      const [x, y, yaw] = velocity.map((sign, i) => sign * FASTEST[i] * speed.value);
      const fields = {articulation: robot, linear: [x, y, 0], angular: [0, 0, yaw]};
      const reply = await ask("hold_twist", fields);
      if (reply.op == "error") {
        held.clear();
        if (driving) stop(reply.code == "session_expired" ? LOST : reply.message);
      }
    } while (again);
    sending = false;
  };
  const typing = event => event.target.closest?.("input:not([type=range]), textarea, select");
  window.addEventListener("keydown", event => {
    if (!driving || event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
    if (event.code == "Escape") return stop();
    if (!(event.code in KEYS)) return;
    event.stopImmediatePropagation();  // these keys move the camera otherwise
    event.preventDefault();
    if (held.has(event.code)) return;
    held.add(event.code);
    send();
  }, true);
  window.addEventListener("keyup", event => {
    if (held.delete(event.code)) send();
  }, true);
  window.addEventListener("blur", release);
  window.addEventListener("pagehide", release);
  document.addEventListener("visibilitychange", () => document.hidden && release());
  setInterval(() => held.size && send(), RENEW_MS);

  const count = async () => {
    if (document.hidden || !session || socket.readyState != 1) return;
    const ports = (await ask("network_status")).ports || [];
    const now = [performance.now(), ports.reduce((sum, p) => sum + p.messages, 0)];
    if (counted) {
      const perSecond = (now[1] - counted[1]) / (now[0] - counted[0]) * 1000;
      rate = Math.max(0, Math.round(perSecond)) + " messages/s";
    }
    counted = now;
    show();
  };
  setInterval(count, RATE_MS);

  const connect = () => {
    const scheme = location.protocol == "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.hostname}:${port}`);
    socket.onmessage = event => {
      const message = JSON.parse(event.data);
      if (message.op != "event") return waiting.shift()?.(message);
      status = message;
      last = message.texts.at(-1) || last;
      show();
    };
    socket.onopen = async () => {
      session = "";
      const about = {client: "page", role: "observer", encoding: "json", include_model: false};
      const reply = await order("hello", about);
      session = reply.session_id || "";
      await order("subscribe", {topics: ["events"]});
    };
    socket.onclose = () => {
      held.clear();
      driving = false;
      [session, status, taken, counted] = ["", {}, [], null];
      for (const resolve of waiting.splice(0))
        resolve({op: "error", message: "The connection is lost."});
      error = `Port ${port} does not answer: see the messages of the lab.`;
      show();
      setTimeout(connect, RETRY_MS);
    };
  };
  connect();
  show();
  return true;
})
