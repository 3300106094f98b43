// Box on the page of a lab: which program drives, and taking over from it.
// It talks to the lab's WebSocket; `drive_box.js` asks it for the right to drive.
window.labNetwork ||= (port => {
  const RETRY_MS = 2000;
  const RATE_MS = 2000;
  const LOST = "Another program has taken over.";
  let socket = null, session = "", waiting = [], status = {}, error = "", last = "", rate = "";
  let taken = [], counted = null;

  const add = (parent, tag, style = "", text = "") => {
    const node = document.createElement(tag);
    node.style.cssText = style;
    node.textContent = text;
    return parent.appendChild(node);
  };
  let stack = document.getElementById("lab-boxes");
  if (!stack) {
    stack = add(document.body, "div", "position:fixed;left:12px;bottom:12px;z-index:1000;" +
      "display:flex;flex-direction:column;gap:8px;align-items:flex-start;max-width:300px");
    stack.id = "lab-boxes";
  }
  const box = add(stack, "div", "padding:.5em .7em;border-radius:6px;color:#212529;" +
    "background:rgba(255,255,255,.92);font:13px/1.45 system-ui,sans-serif;" +
    "box-shadow:0 1px 4px rgba(0,0,0,.3);overflow-wrap:anywhere");
  box.id = "lab-network";
  const who = add(box, "div", "font-weight:600");
  const clients = add(box, "div", "opacity:.65");
  const news = add(box, "div", "opacity:.65");
  const wrong = add(box, "div", "color:#c92a2a");
  const row = add(box, "div", "margin-top:.3em;display:flex;gap:.4em;align-items:center");
  const button = (text, action) => {
    const node = add(row, "button", "font:inherit;padding:.1em .6em;cursor:pointer", text);
    node.onclick = () => { node.blur(); action(); };
    return node;
  };
  const take = button("Take over", () => mine() ? giveBack() : takeOver());

  const mine = () => session && (status.driver || "").endsWith(" " + session.slice(0, 8));
  const show = () => {
    const open = socket && socket.readyState == 1;
    if (open && status.driver && !mine()) window.labDriving?.stop(LOST);
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
    take.disabled = !open;
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
    window.labDriving?.stop();
    for (const name of taken) await order("take_robot", {robot: name, owner: "net"});
    taken = [];
    await order("release_driver");
  };

  const lease = async () => {  // the right to drive, or why not
    if (!socket || socket.readyState != 1 || mine()) return "";
    const reply = await order("take_driver");
    if (reply.op == "error") return reply.message;
    status.driver = " " + session.slice(0, 8);  // the event comes later
    return "";
  };

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
  return {lease};
})
