// Bar in the header of the page of a lab: the live world, its last seconds with what happened when,
// or the recording that is played.
(window.labTransport ||= (() => {
  const {add, button, connect} = window.labBoxes;
  const POLL_MS = 200;
  const HOLD_MS = 500;  // time after a move of the slider by a user in which it is not updated
  const LEAST_S = 0.5;  // shortest length of the slider
  const THUMB_PX = 16;  // whose center stays within the slider
  const MARKS = 40;
  const SYMBOLS = {edit: "\u270e", reset: "\u21ba", state: "\u21e5", push: "\u27b6",
    branch: "\u21b3"};
  const MODES = {
    live: ["LIVE", "#2b8a3e", "The world as it is now."],
    past: ["PAST", "#d9480f", "A moment of the last seconds; the present is kept."],
    replay: ["REPLAY", "#1971c2", "A recording in place of physics; the present is kept."],
  };
  let line = null, address = "", state = {}, mode = "live", error = "", shown = "";
  let touched = -HOLD_MS, wanted = null, sending = false;

  const bar = document.createElement("div");
  bar.id = "lab-transport";
  const row = () => add(bar, "div", "display:flex;flex-wrap:wrap;gap:.35em;align-items:center");
  const top = row();
  const chip = add(top, "b", "color:#fff;border-radius:3px;padding:.1em .5em;font-size:11px;" +
    "letter-spacing:.08em");
  const at = add(top, "span", "flex:1;min-width:8em;font-variant-numeric:tabular-nums");
  at.setAttribute("role", "status");
  const swap = button(top, "The other future", () => act({swap: true}));
  swap.title = "The future that was left when the world continued from the past.";
  const record = button(top, "", () => act({record: true}));
  record.className = "lab-record";
  const scrub = row();
  const steps = number => {
    const node = button(scrub, (number > 0 ? "+" : "\u2212") + Math.abs(number),
      () => act({step: number}), "padding:.05em .35em;white-space:nowrap");
    node.title = node.textContent + (Math.abs(number) == 1 ? " step" : " steps");
  };
  steps(-10);
  steps(-1);
  const track = add(scrub, "div", "flex:1;position:relative;padding-top:14px;min-width:80px");
  const marks = add(track, "div", `position:absolute;inset:0 ${THUMB_PX / 2}px auto;height:15px`);
  const slider = add(track, "input", "width:100%;margin:0;display:block;cursor:pointer");
  Object.assign(slider, {type: "range", step: "0.001", max: "0", min: -LEAST_S, value: "0"});
  slider.title = "Drag to go back. The present is kept until you continue from here.";
  steps(1);
  steps(10);
  const choice = row();
  button(choice, "Continue from here", () => act({branch: true})).className = "lab-main";
  button(choice, "Back to the present", () => act({leave: true}));
  const note = add(bar, "div");

  const describe = mark => `${mark.kind} ${mark.label}`.trim();
  const showMarks = (found, length) => {
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
  // What is shown, the ends of the slider, its place, and words beside it.
  const look = () => {
    const {timeline, replay} = state;
    if (replay.is_active)
      return ["replay", 0, replay.duration_s, replay.replay_time,
        replay.label.replace("REPLAY: ", "")];
    const length = Math.max(LEAST_S, Math.ceil(2 * timeline.duration_s) / 2);
    const near = timeline.marks.filter(mark => Math.abs(mark.ago - timeline.ago) < 0.05);
    if (timeline.is_active)
      return ["past", -length, 0, -timeline.ago, [`At ${timeline.world_time.toFixed(3)} s`,
        `${timeline.ago.toFixed(3)} s ago`, ...near.map(describe)].join(", ")];
    return ["live", -length, 0, 0, `${timeline.duration_s.toFixed(1)} s kept`];
  };
  const show = () => {
    bar.style.display = state.timeline ? "" : "none";
    bar.inert = !line?.open;
    bar.style.opacity = bar.inert ? 0.4 : 1;
    if (!state.timeline) return;
    const {timeline, recording} = state;
    const [present, low, high, value, words] = look();
    if (present != mode) touched = -HOLD_MS;
    mode = present;
    const [label, color, hint] = MODES[mode];
    chip.textContent = label;
    chip.style.background = color;
    chip.title = hint;
    at.textContent = words;
    if (performance.now() > touched + HOLD_MS) {
      slider.max = Math.max(low, high);
      slider.min = low;
      slider.value = value;
    }
    slider.disabled = mode != "replay" && !timeline.num_frames;
    slider.setAttribute("aria-label", mode == "replay" ? "Time in the recording [s]" : "Before now [s]");
    showMarks(mode == "replay" ? [] : timeline.marks.filter(mark => mark.kind in SYMBOLS).slice(-MARKS),
      high - low);
    choice.style.display = mode == "live" ? "none" : "flex";
    swap.style.display = mode == "live" && timeline.has_other ? "" : "none";
    record.style.visibility = state.records && mode != "replay" ? "" : "hidden";
    const busy = recording.is_recording;
    record.textContent = busy ? "\u25a0 Stop recording" : "\u25cf Record";
    record.title = busy ? `${recording.duration_s.toFixed(1)} s, ${recording.file}`
      : "Record each step from now on; the tab Record has the name of the file.";
    note.textContent = error || timeline.notes.join("; ");
    note.style.color = error ? "#c92a2a" : "";
  };
  const ask = async (fields = {}) => {
    const reply = await line.ask({ask: "transport", ...fields});
    if (reply.timeline) state = reply;
    return reply.error || "";
  };
  const act = async fields => {
    touched = -HOLD_MS;
    error = await ask(fields);
    if (error) await ask();
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
      show();
    }
    sending = false;
  };
  slider.oninput = () => {
    touched = performance.now();
    seek(Math.abs(slider.value));
  };
  slider.onchange = () => slider.blur();  // keys are those of the page again
  setInterval(async () => {
    if (document.hidden || sending || !line?.open) return;
    await ask();
    show();
  }, POLL_MS);

  const use = (fresh, place) => {
    place.append(bar);
    if (fresh == address) return;
    address = fresh;
    line?.end();
    [state, error] = [{}, ""];
    line = connect(address, {opened: show, closed: show, lost: {}});
    show();
  };
  return {use};
})()).use
