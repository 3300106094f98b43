// What hands do: keys, pads on the screen, and the mouse or fingers on the picture.

import { make } from "./dom.js";

/** Whether a key was typed into a field or onto a button. */
function isTyped(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  return event.target.closest?.("input, select, textarea, button, summary")
    && (event.code === "Space" || event.code === "Enter" || event.code.startsWith("Arrow"));
}

/**
 * Listen to keys.
 * @param {() => Commands} commands
 * @param {Object<string, () => void>} actions by the code of their key
 */
export function listenToKeys(commands, actions) {
  window.addEventListener("keydown", event => {
    if (isTyped(event)) return;
    if (commands()?.drives(event.code)) {
      event.preventDefault();
      commands().keys.add(event.code);
    } else if (event.code in actions) {
      event.preventDefault();
      if (!event.repeat || event.code === "Period") actions[event.code]();
    }
  });
  window.addEventListener("keyup", event => commands()?.keys.delete(event.code));
  // The end of a key is not told while another window has the focus.
  window.addEventListener("blur", () => commands()?.keys.clear());
}

/** Let pointers drag goals, push bodies, and move the camera everywhere else. */
export function listenToPointers(canvas, camera, goals, push, exclusive) {
  canvas.addEventListener("pointerdown", event => {
    canvas.focus({ preventScroll: true });
    const pushes = event.button === 0 && !event.shiftKey && push.physics
      && camera.pointers.size === 0 && !push.active;
    camera.grab(event);
    if (!pushes) return;
    if (goals.begin(event)) {
      camera.pointers.delete(event.pointerId);
      return;
    }
    exclusive(() => {
      if (camera.pointers.has(event.pointerId) && push.begin(event)) {
        camera.pointers.delete(event.pointerId);
      }
    });
  });
  canvas.addEventListener("pointermove", event => {
    goals.move(event);
    if (push.active) push.move(event);
  });
  for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) {
    canvas.addEventListener(type, event => {
      goals.end(event);
      exclusive(() => push.active && push.end(event));
    });
  }
}

/**
 * Make a round pad that drives components of a command.
 * @param {Commands} commands
 * @param {string} title
 * @param {?number} across component that the way to the left drives
 * @param {?number} along component that the way up drives
 */
export function makePad(commands, title, across, along) {
  const knob = make("div.knob");
  const pad = make("div.pad", { title, "aria-label": title }, knob, make("span", {}, title));
  const put = (x, y) => {  // right and up, from -1 to 1
    const far = Math.max(1, Math.hypot(x, y));
    const right = across === null ? 0 : x / far;
    const up = along === null ? 0 : y / far;
    if (across !== null) commands.pads.set(across, -right);
    if (along !== null) commands.pads.set(along, up);
    knob.style.transform = `translate(${90 * right}%, ${-90 * up}%)`;
  };
  const follow = event => {
    const box = pad.getBoundingClientRect();
    put(2 * (event.clientX - box.left) / box.width - 1,
      1 - 2 * (event.clientY - box.top) / box.height);
  };
  pad.addEventListener("pointerdown", event => {
    event.preventDefault();
    pad.setPointerCapture(event.pointerId);
    follow(event);
  });
  pad.addEventListener("pointermove", event => {
    if (pad.hasPointerCapture(event.pointerId)) follow(event);
  });
  pad.addEventListener("lostpointercapture", () => put(0, 0));
  return pad;
}

/** Make the pads for a command; null if none is driven. */
export function makePads(commands) {
  const { driven } = commands;
  if (driven?.kind !== "velocity") return null;
  const size = driven.start.length;
  const pads = make("div");
  pads.id = "pads";
  pads.append(makePad(commands, "move", size > 1 ? 1 : null, 0));
  if (size > 2) pads.append(makePad(commands, "turn", 2, null));
  return pads;
}
