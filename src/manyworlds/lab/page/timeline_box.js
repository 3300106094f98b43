// Bar at the bottom of the page of a lab: the last seconds of the world, with what happened when.
(window.labTimeline ||= (() => {
  const {add, button, box, connect} = window.labBoxes;
  const POLL_MS = 200;
  const HOLD_MS = 500;  // time after a move of the slider by a user in which it is not updated
  const LEAST_S = 0.5;  // shortest length of the slider
  const THUMB_PX = 16;  // whose center stays within the slider
  const MARKS = 40;
  const SYMBOLS = {edit: "\u270e", reset: "\u21ba", state: "\u21e5", push: "\u27b6",
    branch: "\u21b3"};
  let line = null, address = "", state = {}, error = "", shown = "", touched = -HOLD_MS;
  let wanted = null, sending = false;

  const bar = box("lab-timeline", "width:100%;order:1;padding:.35em .7em");
  const top = add(bar, "div", "display:flex;flex-wrap:wrap;gap:.4em;align-items:center");
  const steps = number => button(top, (number > 0 ? "+" : "\u2212") + Math.abs(number),
    () => act({step: number}), "padding:.05em .4em;white-space:nowrap");
  const back = [steps(-10), steps(-1)];
  const track = add(top, "div", "flex:1;position:relative;padding-top:15px;min-width:80px");
  const marks = add(track, "div", `position:absolute;inset:0 ${THUMB_PX / 2}px auto;height:15px`);
  const slider = add(track, "input", "width:100%;margin:0;display:block;cursor:pointer");
  Object.assign(slider, {type: "range", step: "0.001", max: "0", min: -LEAST_S, value: "0"});
  slider.title = "Drag to go back. The present is kept until you continue from the past.";
  slider.setAttribute("aria-label", "Before now [s]");
  const forward = [steps(1), steps(10)];
  for (const node of [...back, ...forward])
    node.title = node.textContent + (Math.abs(parseInt(node.textContent)) == 1 ? " step" : " steps");
  const ago = add(top, "span", "min-width:5.2em;text-align:right;font-variant-numeric:tabular-nums");
  const row = add(bar, "div", "display:flex;flex-wrap:wrap;gap:.4em;align-items:center;margin-top:.3em");
  const text = add(row, "span", "flex:1;min-width:14em");
  const branch = button(row, "Continue from here", () => act({branch: true}),
    "background:#228be6;color:#fff;border:0;border-radius:3px;padding:.2em .8em");
  const leave = button(row, "Back to the present", () => act({leave: true}));
  const swap = button(top, "The other future", () => act({swap: true}));
  swap.title = "The future that was left when the world continued from the past.";

  const near = mark => Math.abs(mark.ago - state.ago) < 0.05;
  const describe = mark => `${mark.kind} ${mark.label}`.trim();
  const showMarks = length => {
    const found = (state.marks || []).filter(mark => mark.kind in SYMBOLS).slice(-MARKS);
    const places = found.map(mark => (100 * (1 - Math.min(1, mark.ago / length))).toFixed(2));
    const key = found.map((mark, i) => mark.kind + mark.label + places[i]).join();
    if (key == shown) return;
    shown = key;
    marks.replaceChildren();
    found.forEach((mark, i) => {
      const node = add(marks, "span", `position:absolute;left:${places[i]}%;bottom:0;cursor:pointer;` +
        "transform:translateX(-50%);font-size:13px;line-height:15px", SYMBOLS[mark.kind]);
      node.title = `${describe(mark)}, ${mark.ago.toFixed(2)} s ago`;
      node.onclick = () => seek(mark.ago);
    });
  };
  const show = () => {
    bar.style.display = line?.open && state.num_frames ? "" : "none";
    const length = Math.max(LEAST_S, Math.ceil(2 * (state.duration_s || 0)) / 2);
    if (performance.now() > touched + HOLD_MS) {
      slider.min = -length;
      slider.value = -(state.ago || 0);
    }
    showMarks(-slider.min);
    const active = state.is_active;
    ago.textContent = active ? `\u2212${Math.abs(slider.value).toFixed(3)} s`
      : `${(state.duration_s || 0).toFixed(1)} s kept`;
    const events = (state.marks || []).filter(near).map(describe);
    const moment = active ? [`At ${state.world_time.toFixed(3)} s`, ...events].join(", ") : "";
    const note = moment || (state.notes || []).join("; ");
    text.textContent = error || note;
    text.style.color = error ? "#c92a2a" : "";
    branch.style.display = leave.style.display = active ? "" : "none";
    swap.style.display = state.has_other ? "" : "none";
    row.style.display = active || error || note ? "flex" : "none";
  };
  const ask = async (fields = {}) => {
    const reply = await line.ask({ask: "timeline", ...fields});
    if (reply.timeline) state = reply.timeline;
    return reply.error || "";
  };
  const act = async fields => {
    touched = -HOLD_MS;
    error = await ask(fields);
    show();
  };
  const seek = async time => {  // the newest place of the slider follows when this has its reply
    wanted = time;
    if (sending) return;
    sending = true;
    while (wanted !== null) {
      const next = wanted;
      wanted = null;
      error = await ask({seek: next});
    }
    sending = false;
    show();
  };
  slider.oninput = () => { touched = performance.now(); seek(-slider.value); show(); };
  slider.onchange = () => slider.blur();  // keys are those of the page again
  setInterval(async () => {
    if (document.hidden || sending || !line?.open) return;
    await ask();
    show();
  }, POLL_MS);

  const use = fresh => {
    if (fresh == address) return;
    address = fresh;
    line?.end();
    [state, error] = [{}, ""];
    line = connect(address, {opened: show, closed: show, lost: {}});
    show();
  };
  return {use};
})()).use
