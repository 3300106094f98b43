// Parts that the boxes on the page of a lab share.
window.labBoxes ||= (() => {
  const RETRY_MS = 1000, LONGEST_RETRY_MS = 30000;
  const FIT_MS = 300;

  const add = (parent, tag, style = "", text = "") => {
    const node = document.createElement(tag);
    node.style.cssText = style;
    node.textContent = text;
    return parent.appendChild(node);
  };
  const button = (parent, text, action, style = "") => {
    const node = add(parent, "button", "font:inherit;padding:.1em .6em;cursor:pointer;" + style, text);
    node.onclick = () => { node.blur(); action(); };
    return node;
  };

  // The boxes lie above each other over the lower end of the view, which gets all other clicks.
  const stack = add(document.body, "div", "position:fixed;bottom:0;z-index:45;padding:12px;" +
    "box-sizing:border-box;display:flex;flex-direction:column;gap:8px;align-items:flex-start;" +
    "pointer-events:none");
  stack.id = "lab-boxes";
  const fit = () => {  // the panel beside the view may be hidden, or made wider
    const view = document.querySelector("canvas")?.getBoundingClientRect();
    const left = view?.left || 0, right = view?.right || window.innerWidth;
    stack.style.left = left + "px";
    stack.style.width = right - left + "px";
    stack.style.bottom = window.innerHeight - (view?.bottom || window.innerHeight) + "px";
  };
  setInterval(fit, FIT_MS);
  window.addEventListener("resize", fit);
  fit();
  const box = (id, style = "max-width:300px") => {
    const node = add(stack, "div", "padding:.5em .7em;border-radius:6px;color:#212529;" +
      "background:rgba(255,255,255,.92);font:13px/1.45 system-ui,sans-serif;pointer-events:auto;" +
      "box-shadow:0 1px 4px rgba(0,0,0,.3);overflow-wrap:anywhere;box-sizing:border-box;" + style);
    node.id = id;
    return node;
  };

  // Address of a further server of the page: `:PORT` under its host, or a path of its server,
  // which a proxy may show below a path of its own.
  const url = address => (location.protocol == "https:" ? "wss://" : "ws://") +
    (address.startsWith(":") ? location.hostname
      : location.host + location.pathname.replace(/\/[^/]*$/, "")) + address;

  // Connection that is opened again when it ends. Replies come in the order of the messages;
  // `heard` returns true for a message that is no reply, and `lost` is the reply to what has none.
  const connect = (address, {opened, closed, lost, heard = () => false}) => {
    let socket, waiting = [], retry = RETRY_MS, ended = false;
    const open = () => {
      socket = new WebSocket(url(address));
      socket.onmessage = event => {
        const message = JSON.parse(event.data);
        heard(message) || waiting.shift()?.(message);
      };
      socket.onopen = () => {
        retry = RETRY_MS;
        opened();
      };
      socket.onclose = () => {
        for (const resolve of waiting.splice(0)) resolve(lost);
        if (ended) return;
        closed();
        window.labLost?.();
        setTimeout(() => ended || open(), retry);
        retry = Math.min(2 * retry, LONGEST_RETRY_MS);
      };
    };
    open();
    return {
      ask: message => new Promise(resolve => {
        if (socket.readyState != 1) return resolve(lost);
        waiting.push(resolve);
        socket.send(JSON.stringify(message));
      }),
      end: () => { ended = true; socket.close(); },
      get open() { return socket.readyState == 1; },
    };
  };
  return {add, button, box, connect};
})();
