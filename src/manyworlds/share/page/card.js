// The card: what was trained, how long, how well, and the command that repeats it.

import { make, number } from "./dom.js";

function row(title, value) {
  return [make("dt", {}, title), make("dd", {}, value)];
}

function show(value) {
  if (typeof value === "number") return number(value);
  return String(value);
}

/** Make the sentences about the physics of this page and that in Python. */
function aboutVersions({ trained_with: python, difference }, here, isTrained) {
  if (!python || python === here) return `MuJoCo ${here}, as in Python.`;
  const other = isTrained ? "training used" : "the world was written with";
  const sentence = `Physics here is MuJoCo ${here}, in the browser; ${other} MuJoCo ${python}, `
    + "so motions can differ.";
  if (!difference) return sentence;
  return `${sentence} ${difference}`;
}

/**
 * @param {object} description world.json
 * @param {string} version version of MuJoCo on this page
 */
export function makeCard(description, version) {
  const { card, mujoco } = description;
  const rows = [];
  const task = card?.task ?? description.task;
  if (task) rows.push(...row("Task", task));
  if (card?.trained) rows.push(...row("Trained", card.trained));
  if (card?.iterations != null) rows.push(...row("Iterations", show(card.iterations)));
  for (const [title, value] of Object.entries(card?.evaluation ?? {})) {
    rows.push(...row(title, show(value)));
  }
  const isTrained = description.policies.length > 0;
  rows.push(...row("Physics", aboutVersions(mujoco ?? {}, version, isTrained)));
  const parts = [make("h2", {}, "About"), make("dl", {}, ...rows)];
  if (card?.command) {
    const copy = make("button", { type: "button", onclick: async () => {
      await navigator.clipboard.writeText(card.command);
      copy.textContent = "Copied";
    } }, "Copy");
    parts.push(make("p.hint", {}, "Repeat it:"), make("pre", {}, card.command),
      make("div.row", {}, copy));
  }
  return make("section", { id: "card" }, ...parts);
}
