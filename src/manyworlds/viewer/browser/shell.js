// Script of every page, before viser's: it says when what serves the page has ended, loads the page
// again when that is back, and closes lists of keys as other programs do.
(noun => {
  const POLL_MS = 500, PATIENCE_MS = 4000, FIT_MS = 200;
  const CLOSING_MS = 100;  // in which a program that ends closes all its connections
  const root = document.documentElement;
  const LATE_MS = 1500;  // a browser that draws for so long takes no answer in time
  let start = "", card = null, asking = false, late = false, ticked = performance.now();
  let ended = false;

  // Viser connects again only while its window has the focus.
  document.hasFocus = () => true;

  // Viser draws all the time. Where that is slow, a message would wait for several pictures: while
  // the page says that its program has ended, nothing is drawn.
  const held = [];
  const draw = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = call =>
    draw(time => ended ? held.push(call) : call(time));

  const tell = (title, text) => {
    root.classList.toggle("lab-lost", Boolean(title));
    if (!title) {
      card?.remove();
      card = null;
      return;
    }
    if (!card) {
      card = document.createElement("div");
      card.id = "lab-ended";
      card.setAttribute("role", "alert");
      card.append(document.createElement("b"), document.createElement("div"));
      document.body.append(card);
    }
    if (card.firstChild.textContent != title) card.firstChild.textContent = title;
    if (card.lastChild.textContent != text) card.lastChild.textContent = text;
  };
  const ask = async () => {
    if (asking || document.hidden) return;
    asking = true;
    late = false;
    try {
      const reply = await fetch("lab-news",
        {cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS)});
      if (reply.status == 403)  // a token of its own, which this page does not have
        return tell(`The ${noun} was started again`, "Open this page from the address that the " +
          `${noun} has printed now: the one of this tab has the token of before.`);
      if (!reply.ok) throw new Error(reply.statusText);
      const news = await reply.json();
      if (start && news.start != start) return location.reload();
      start = news.start;
      if (document.title != news.title) document.title = news.title;
      ended = false;
      held.splice(0).forEach(call => window.requestAnimationFrame(call));
      tell("");
    } catch (error) {
      if (error.name != "TimeoutError") {
        ended = true;
        document.title = `The ${noun} has ended`;
        tell(document.title, "This page connects again by itself when it is back.");
      } else if (!late)
        tell(`The ${noun} does not answer`, "It may be busy, or the connection is lost.");
    } finally {
      asking = false;
    }
  };
  setInterval(() => {
    late ||= performance.now() > ticked + LATE_MS;
    ticked = performance.now();
    ask();
  }, POLL_MS);
  document.addEventListener("visibilitychange", ask);
  // A connection of the page that ends is the first sign.
  window.labLost = () => { ask(); setTimeout(ask, CLOSING_MS); };
  ask();

  // Viser's own panel is hidden until that of the page is there.
  const ready = new MutationObserver(() => {
    if (!document.querySelector("[data-lab-page]")) return;
    setTimeout(collapse, FIT_MS);  // all of the panel comes together
    ready.disconnect();
  });
  const collapse = () => {  // what is in the panel has begun to work by now
    if (document.querySelector("[data-lab-collapsed]"))
      document.querySelector("[data-dock-region-collapse=right]")?.click();
    root.classList.add("lab-ready");
  };
  ready.observe(root, {childList: true, subtree: true});

  // Only what a tab shows scrolls: it gets the height that the rest leaves. On a phone, where the
  // panel is a sheet, the view is as high as what is above that.
  const SHEET = 0.54;  // of the window's height, as in the style
  const fit = () => {
    const mark = document.querySelector("[data-lab-page]");
    const area = mark?.closest(".mantine-ScrollArea-viewport");
    if (!area) return;
    const docked = area.querySelector("[data-dock-area] [role=tablist]");
    const body = docked || area.querySelector(".mantine-Tabs-panel:not([style*='display: none'])");
    if (!body) return;
    const content = area.firstElementChild;
    const rest = content.getBoundingClientRect().height - body.getBoundingClientRect().height;
    const whole = docked ? area.clientHeight : SHEET * window.innerHeight;
    root.style.setProperty("--lab-body", Math.max(80, Math.floor(whole - rest)) + "px");
    root.classList.toggle("lab-phone", !docked);
    const side = docked ? document.querySelector("[data-dock-region=right]") : null;
    const width = side?.getBoundingClientRect().width || 0;
    root.style.setProperty("--lab-panel", width + "px");
    const sheet = docked ? 0 : area.closest(".mantine-Paper-root").getBoundingClientRect().height;
    root.style.setProperty("--lab-sheet", sheet + "px");
  };
  // Names for screen readers of what viser gives none: its labels are for elements that take none.
  const NAME_MS = 1000;
  const name = () => {
    for (const label of document.querySelectorAll("label[for]")) {
      const target = document.getElementById(label.htmlFor);
      if (!target?.matches(".mantine-Slider-root")) continue;
      for (const node of target.parentElement.querySelectorAll("[role=slider], input"))
        node.setAttribute("aria-label", label.textContent);
    }
    const list = document.querySelector("button:has(> span > .tabler-icon-list-search)");
    list?.setAttribute("aria-label", "All commands, by name");
  };
  setInterval(name, NAME_MS);
  setInterval(fit, FIT_MS);
  window.addEventListener("resize", fit);

  // A file that is dropped on the page goes to the button that takes files of its kind.
  const TAKES = {npz: "States", mcap: "Record", csv: "Record", json: "Record"}, REST = "Scene";
  const TRIES = 20, TRY_MS = 100;
  const give = (file, tries) => {
    const suffix = file.name.split(".").pop().toLowerCase();
    const title = TAKES[suffix] || REST;
    const tab = [...document.querySelectorAll("[role=tab]")]
      .find(each => each.textContent.trim() == title);
    const input = [...document.querySelectorAll("input[type=file]")]
      .find(each => each.accept.toLowerCase().split(",").includes("." + suffix));
    if (!input && tab && tries) {
      const press = {bubbles: true, button: 0, pointerId: 1};
      tab.dispatchEvent(new PointerEvent("pointerdown", press));
      tab.dispatchEvent(new PointerEvent("pointerup", press));
      tab.click();
      return setTimeout(give, TRY_MS, file, tries - 1);
    }
    if (!input) return;
    const files = new DataTransfer();
    files.items.add(file);
    input.files = files.files;
    input.dispatchEvent(new Event("change", {bubbles: true}));
  };
  window.addEventListener("dragover", event => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
  window.addEventListener("drop", event => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    give(event.dataTransfer.files[0], TRIES);
  });

  // Viser leaves the end of a dialog to its program, which has a button for it.
  const close = () => {
    const dialog = [...document.querySelectorAll(".mantine-Modal-content")].at(-1);
    const button = [...dialog?.querySelectorAll("button") || []]
      .find(each => each.textContent.trim() == "Close");
    button?.click();
    return Boolean(button);
  };
  window.addEventListener("keydown", event => {
    if (event.key == "Escape" && close()) event.stopImmediatePropagation();
  }, true);
  window.addEventListener("click", event => {
    const outside = event.target.matches?.(".mantine-Modal-inner, .mantine-Modal-overlay");
    if (outside || event.target.closest?.(".lab-close")) close();
  }, true);
})
