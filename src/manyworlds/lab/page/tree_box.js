// Clicks on the lines of trees on the page of a lab, which select what they name.
(window.labTrees ||= (() => {
  const {connect} = window.labBoxes;
  let line = null, address = "", wanted = null;
  const send = () => {
    if (!wanted || !line.open) return;
    line.ask(wanted);
    wanted = null;
  };
  document.addEventListener("click", event => {
    const row = event.target.closest?.("[data-lab-ask]");
    if (!row) return;
    wanted = {ask: row.dataset.labAsk, name: row.dataset.labName};
    if (line) send();
    else line = connect(address, {opened: send, closed: () => {}, lost: {}});  // at the first click
  });
  const use = fresh => {
    if (fresh == address) return;
    address = fresh;
    line?.end();
    line = null;
  };
  return {use};
})()).use
