"""Tabs of a page that are open again after the browser has loaded it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.viewer.browser.markup import script_html

if TYPE_CHECKING:
    import viser

# The storage of a session belongs to one tab of the browser and one address. Groups of tabs are
# told apart by their titles. A group appears with some of its tabs; until it is complete, or a user
# has pressed on it, the tab from before is opened as soon as it is there.
_SCRIPT = """
window.keptTabs ||= (() => {
  const PERIOD_MS = 200, LONGEST_MS = 10000;
  const groups = new WeakMap();
  const title = tab => tab.textContent;
  function open(tab) {
    // Viser opens a docked tab when the mouse lets go of it, and others by a click.
    const press = {bubbles: true, button: 0, pointerId: 1};
    tab.dispatchEvent(new PointerEvent('pointerdown', press));
    tab.dispatchEvent(new PointerEvent('pointerup', press));
    tab.click();
  }
  function look(list) {
    const tabs = [...list.querySelectorAll('[role=tab]')];
    const key = 'tab of ' + tabs.map(title).join(' | ');
    const opened = tabs.find(tab => tab.getAttribute('aria-selected') == 'true');
    if (!groups.has(list)) groups.set(list, {end: Date.now() + LONGEST_MS});
    const group = groups.get(list);
    if (group.key != key) {
      group.key = key;
      group.wanted = Date.now() < group.end ? sessionStorage.getItem(key) : null;
    }
    const before = group.wanted && tabs.find(tab => title(tab) == group.wanted);
    if (before && before != opened) return open(before);
    group.wanted = null;
    if (opened) sessionStorage.setItem(key, title(opened));
  }
  function all() { document.querySelectorAll('[role=tablist]').forEach(look); }
  window.addEventListener('pointerdown', event => {
    const list = event.isTrusted && event.target.closest?.('[role=tablist]');
    if (list) groups.set(list, {key: groups.get(list)?.key, end: 0});
  }, true);
  window.addEventListener('pagehide', all);
  setInterval(all, PERIOD_MS);
  return true;
})()
"""


def keep_tabs(gui: viser.GuiApi) -> viser.GuiHtmlHandle:
    """Open the tabs of before when a browser loads the page again; return the invisible element."""
    return gui.add_html(script_html(_SCRIPT))
