"""Number and search fields that wait for the end of what a user types.

Viser's inputs report each key. With the script of this module a browser keeps what is typed in a
number field until Enter, Tab or a click elsewhere; Escape restores the value. Until then the page
cannot overwrite the field. Enter and Escape also leave a field, so that keys are those of the page.
Text that is no number flashes red, and the value is restored. The first click into a number or
search field selects its text, so that typing replaces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.viewer.browser.markup import script_html

if TYPE_CHECKING:
    import viser

# Listeners of the window run before those of viser (React), which has its own on the root element.
# React takes a `change` event for the input of a user if the text differs from the one that it has
# set itself, which it notes in its own setter of `value`.
_SCRIPT = """
window.typedFields ||= (() => {
  const numbers = '.mantine-NumberInput-input';
  const texts = numbers + ', .mantine-Select-input';
  const browser = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
  const drafts = new Map();  // fields with uncommitted text, and the text that the page shows
  const guarded = new WeakSet();
  let clicked = null;

  function begin(field) {
    if (drafts.has(field)) return;
    drafts.set(field, field.value);
    if (guarded.has(field)) return;
    guarded.add(field);
    const react = Object.getOwnPropertyDescriptor(field, 'value') || browser;
    Object.defineProperty(field, 'value', {
      configurable: true, enumerable: true, get: react.get,
      set(text) {
        if (!drafts.has(field)) react.set.call(field, text);
        else if (text != field.value) drafts.set(field, text);  // viser also sets the same again
      },
    });
    field.setSelectionRange = (...range) => {
      if (!drafts.has(field)) field.constructor.prototype.setSelectionRange.apply(field, range);
    };
  }
  function restore(field) {
    const shown = drafts.get(field);
    drafts.delete(field);
    field.value = shown;
  }
  function settle(field) {
    const text = field.value.trim().replace(',', '.'), number = Number(text);
    restore(field);
    if (!text || !Number.isFinite(number)) {
      field.animate([{outline: '2px solid red'}, {outline: '2px solid transparent'}], 2000);
      return;
    }
    // As if the user had selected all and typed a key: viser compares with the last selection.
    field.setSelectionRange(0, field.value.length);
    field.dispatchEvent(new KeyboardEvent('keydown', {bubbles: true}));
    const digits = String(number);
    browser.set.call(field, !digits.includes('e') ? digits
      : number.toFixed(20).replace(/\\.?0+$/, ''));
  }
  function commit(field) {
    if (drafts.has(field)) field.dispatchEvent(new Event('change', {bubbles: true}));
  }
  function listen(type, fields, call) {
    window.addEventListener(type, event => {
      if (event.target.matches?.(fields)) call(event.target, event);
    }, true);
  }
  listen('beforeinput', numbers, (field, event) => {
    if (/[^-+.,\\deE\\s]/.test(event.data ?? '')) event.preventDefault(); else begin(field);
  });
  listen('input', numbers, (field, event) => event.stopImmediatePropagation());
  listen('paste', numbers, (field, event) => event.stopImmediatePropagation());
  listen('change', numbers, field => { if (drafts.has(field)) settle(field); });
  listen('keydown', numbers, (field, event) => {
    const leaves = ['Enter', 'Escape'].includes(event.key);
    if (drafts.has(field)) {
      event.stopImmediatePropagation();
      if (event.key == 'Escape') restore(field);
      else if (['Enter', 'ArrowUp', 'ArrowDown'].includes(event.key)) {
        commit(field);
        event.preventDefault();  // a step starts at the committed value: press again
      }
    } else if (leaves) event.stopImmediatePropagation();  // Enter would reset the world
    if (leaves) field.blur();
  });
  listen('keydown', '.mantine-TextInput-input', (field, event) => {
    if (!['Enter', 'Escape'].includes(event.key)) return;
    event.stopImmediatePropagation();
    field.blur();
  });
  listen('focusout', numbers, (field, event) => {
    commit(field);
    event.stopImmediatePropagation();  // viser would clamp a second value: the server does
  });
  window.addEventListener('pointerdown', event => {
    for (const field of drafts.keys()) {
      if (event.target == field) continue;
      commit(field);
      if (field.closest('.mantine-NumberInput-root').contains(event.target)) {
        event.stopImmediatePropagation();
      }
    }
  }, true);
  listen('mousedown', texts, field => {
    clicked = document.activeElement == field ? null : field;
  });
  listen('click', texts, field => {
    if (clicked == field && field.selectionStart == field.selectionEnd) field.select();
    clicked = null;
  });
  return true;
})()
"""


def wait_for_commits(gui: viser.GuiApi) -> viser.GuiHtmlHandle:
    """Make number fields wait for Enter or the loss of focus; return the invisible element.

    Add it before the first field, so that none can be used without it.
    """
    return gui.add_html(script_html(_SCRIPT))
