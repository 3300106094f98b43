// Box on the page of a lab: which program drives, and taking over from it.
// It talks to the lab's WebSocket; `drive_box.js` asks it for the right to drive.
window.labNetwork ||= (address => {
  const {add, button, connect} = window.labBoxes;
  const RATE_MS = 2000;
  const LOST = "Another program has taken over.";
  let session = "", status = {}, error = "", last = "", rate = "";
  let taken = [], counted = null;

  const box = labBoxes.box("lab-network");
  const who = add(box, "div", "font-weight:600");
  const clients = add(box, "div", "opacity:.65");
  const news = add(box, "div", "opacity:.65");
  const wrong = add(box, "div", "color:#c92a2a");
  const row = add(box, "div", "margin-top:.3em;display:flex;gap:.4em;align-items:center");
  const take = button(row, "Take over", () => mine() ? giveBack() : takeOver());

  const mine = () => session && (status.driver || "").endsWith(" " + session.slice(0, 8));
  const show = () => {
    const open = line?.open;
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
  const ask = (op, fields = {}) => line.ask({op, session_id: session, ...fields});
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
    if (!line?.open || mine()) return "";
    const reply = await order("take_driver");
    if (reply.op == "error") return reply.message;
    status.driver = " " + session.slice(0, 8);  // the event comes later
    return "";
  };

  const count = async () => {
    if (document.hidden || !session || !line.open) return;
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

  const opened = async () => {
    session = "";
    const about = {client: "page", role: "observer", encoding: "json", include_model: false};
    const reply = await order("hello", about);
    session = reply.session_id || "";
    await order("subscribe", {topics: ["events"]});
  };
  const closed = () => {
    [session, status, taken, counted] = ["", {}, [], null];
    error = "The lab's server does not answer: see the messages of the lab.";
    show();
  };
  const heard = message => {
    if (message.op != "event") return false;
    status = message;
    last = message.texts.at(-1) || last;
    show();
    return true;
  };
  const lost = {op: "error", message: "The connection is lost."};
  const line = connect(address, {opened, closed, lost, heard});
  show();
  return {lease};
})
