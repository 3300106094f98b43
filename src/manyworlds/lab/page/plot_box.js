// Times in the plots on the page of a lab: that of the moment which is shown, and clicks on others.
(window.labPlots ||= (() => {
  const {connect} = window.labBoxes;
  const POLL_MS = 200;
  const OUTSIDE = {left: -10, top: -10};  // hides the cursor
  let line = null, address = "", wanted = null, shown = "";
  const known = new WeakSet();
  const send = () => {
    if (wanted === null || !line.open) return;
    line.ask({ask: "plot_time", time: wanted});
    wanted = null;
  };
  const listen = chart => {
    if (known.has(chart)) return;
    known.add(chart);
    let pressed = 0;
    chart.over.style.cursor = "crosshair";
    chart.over.addEventListener("mousedown", event => { pressed = event.clientX; });
    chart.over.addEventListener("mouseup", event => {
      if (event.button || Math.abs(event.clientX - pressed) > 3) return;  // a drag zooms
      wanted = chart.posToVal(event.offsetX, "x");
      if (line) send();
      else line = connect(address, {opened: send, closed: () => {}, lost: {}});  // at the first click
    });
  };
  setInterval(() => {
    const mark = document.querySelector("[data-lab-moment]");
    const moment = mark?.dataset.labMoment || "";
    for (const {chart} of Object.values(window.__viserTestpoints?.uplots || {})) {
      listen(chart);
      if (chart.over.matches(":hover")) continue;
      if (moment) chart.setCursor({left: chart.valToPos(Number(moment), "x"), top: 1});
      else if (shown) chart.setCursor(OUTSIDE);
    }
    shown = moment;
  }, POLL_MS);
  const use = fresh => {
    if (fresh == address) return;
    address = fresh;
    line?.end();
    line = null;
  };
  return {use};
})()).use
