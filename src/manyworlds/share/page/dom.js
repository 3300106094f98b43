// Elements of the page.

/**
 * Make an element.
 * @param {string} tag name of the element, with classes behind dots: "button.round"
 * @param {object} properties properties and event handlers of the element
 * @param {...(Node|string)} children
 */
export function make(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("aria-") || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
}

/** Format a number for people: three digits, a true minus sign. */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size < 0.001 || size >= 1e5)) text = value.toExponential(1);
  else text = String(Number(value.toPrecision(3)));
  return text.replace("-", "−");
}
