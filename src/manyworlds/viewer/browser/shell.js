// Script of every page, before viser's: it says when what serves the page has ended, loads the page
// again when that is back, and closes lists of keys as other programs do.
(noun => {
  const POLL_MS = 500, PATIENCE_MS = 4000;
  const root = document.documentElement;
  let start = "", card = null, asking = false;

  // Viser connects again only while its window has the focus.
  document.hasFocus = () => true;

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
    try {
      const reply = await fetch("lab-news",
        {cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS)});
      if (!reply.ok) throw new Error(reply.statusText);
      const news = await reply.json();
      if (start && news.start != start) return location.reload();
      start = news.start;
      if (document.title != news.title) document.title = news.title;
      tell("");
    } catch (error) {
      if (error.name == "TimeoutError")
        tell(`The ${noun} does not answer`, "It may be busy, or the connection is lost.");
      else
        tell(`The ${noun} has ended`, "This page connects again by itself when it is back.");
    } finally {
      asking = false;
    }
  };
  setInterval(ask, POLL_MS);
  document.addEventListener("visibilitychange", ask);
  ask();

  // Viser's own panel is hidden until that of the page is there.
  const ready = new MutationObserver(() => {
    if (!document.querySelector("[data-lab-page]")) return;
    root.classList.add("lab-ready");
    ready.disconnect();
  });
  ready.observe(root, {childList: true, subtree: true});

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
