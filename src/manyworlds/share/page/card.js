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
function aboutVersions({ mujoco, policies }, here) {
  const { trained_with: python, difference } = mujoco ?? {};
  if (!python || python === here) return `Physics is MuJoCo ${here}, as in Python.`;
  const other = policies.length ? "training used" : "the world was written with";
  const sentence = `Physics here is MuJoCo ${here}, in the browser; ${other} MuJoCo ${python}, `
    + "so motions can differ.";
  return difference ? `${sentence} ${difference}` : sentence;
}

/**
 * @param {object} description world.json
 * @param {string} version version of MuJoCo on this page
 */
export function makeCard(description, version) {
  const { card } = description;
  const rows = [];
  const task = card?.task ?? description.task;
  if (task) rows.push(...row("Task", task));
  if (card?.trained) rows.push(...row("Trained", card.trained));
  if (card?.iterations != null) rows.push(...row("Iterations", show(card.iterations)));
  for (const [title, value] of Object.entries(card?.evaluation ?? {})) {
    rows.push(...row(title, show(value)));
  }
  const parts = [make("h2", {}, "About"), make("dl", {}, ...rows),
    make("p.hint", {}, aboutVersions(description, version))];
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
