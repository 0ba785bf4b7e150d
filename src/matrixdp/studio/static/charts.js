// Charts of matrixdp studio: <figure class="chart" id="..." data-chart="Vega-Lite JSON">.
// Specifications come from the server, without colours; this file adds the theme and draws with Vega's interpreter.
(function () {
  "use strict";
  const drawn = new Map(); // id of the figure -> { key, view, holder, shown (data sets as text), width }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  function theme() {
    const ink = colour("ink"), soft = colour("soft"), line = colour("line");
    const text = { labelColor: soft, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
    return {
      background: null,
      aria: false, // the figure has a name, and a table with the same numbers; a text for each mark takes time
      font: getComputedStyle(document.body).fontFamily,
      padding: 4,
      view: { stroke: null },
      axis: { ...text, gridColor: line, domainColor: line, tickColor: line, labelLimit: 130, labelSeparation: 8, titlePadding: 8 },
      legend: { ...text, orient: "top", gradientLength: 140, gradientThickness: 8, symbolSize: 80 },
      line: { color: colour("accent"), strokeWidth: 2.5 },
      area: { color: colour("accent"), opacity: 0.22 },
      rule: { color: colour("second") },
      point: { color: colour("accent"), filled: true, size: 60 },
      bar: { color: colour("accent") },
      rect: { stroke: colour("card"), strokeWidth: 1 },
      text: { color: ink },
      style: { second: { color: colour("second"), stroke: colour("second"), fill: colour("second") } },
      range: {
        heatmap: [colour("heat-0"), colour("heat-1")],
        ramp: [colour("heat-0"), colour("heat-1")],
        diverging: [colour("second"), colour("heat-0"), colour("accent")],
        category: [colour("accent"), colour("second"), colour("good"), colour("warn"), colour("soft"), colour("bad")],
      },
    };
  }

  // The same picture of the same names with other numbers keeps its view: only what has changed is replaced, which is
  // much faster. Other names need a new one, or axes would keep the order of the old ones.
  async function draw(figure) {
    if (!figure.isConnected) return;
    const { datasets = {}, params = [], ...spec } = JSON.parse(figure.dataset.chart);
    const names = Object.entries(datasets).map(([name, rows]) => [name, rows.map((one) => [one.row, one.column, one.name])]);
    const key = JSON.stringify([spec, names, params.map((one) => one.name)]) + matchMedia("(prefers-color-scheme: dark)").matches;
    const old = drawn.get(figure.id);
    const holder = figure.querySelector(".chart-canvas");
    if (old && old.key === key) {
      if (holder !== old.holder) {
        holder.replaceWith(old.holder);
        if (old.holder.clientWidth !== old.width) dispatchEvent(new Event("resize")); // the window changed meanwhile
      }
      for (const { name, value } of params) old.view.signal(name, value);
      for (const [name, rows] of Object.entries(datasets)) changeData(old, name, rows);
      await old.view.runAsync();
    } else {
      if (old) old.view.finalize();
      drawn.delete(figure.id);
      holder.replaceChildren();
      const whole = { ...spec, datasets, params, config: { ...theme(), ...(spec.config || {}) } };
      const compiled = vegaLite.compile(whole, { logger: vega.logger(vega.Error) }).spec;
      const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
        expr: vega.expressionInterpreter, renderer: "canvas", container: holder, hover: true, logLevel: vega.Error,
      });
      view.tooltip((_handler, event, _item, value) => showTooltip(event, value));
      const shown = Object.fromEntries(Object.entries(datasets).map(([name, rows]) => [name, JSON.stringify(rows)]));
      drawn.set(figure.id, { key, view, holder, shown, width: holder.clientWidth });
      await view.runAsync();
      for (const canvas of holder.querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true");
    }
    const numbers = document.querySelector('details[open][data-numbers="' + CSS.escape(figure.id) + '"]');
    if (numbers) tabulate(numbers);
    figure.dataset.drawn = "yes";
    performance.clearMarks("chart " + figure.id);
    performance.mark("chart " + figure.id);
  }

  // Rows that are the same but for some values are modified in place, so that axes and marks stay.
  function changeData(chart, name, rows) {
    const text = JSON.stringify(rows);
    if (chart.shown[name] === text) return;
    chart.shown[name] = text;
    const known = chart.view.data(name);
    if (known.length !== rows.length) { chart.view.data(name, rows); return; }
    const change = vega.changeset();
    rows.forEach((row, i) => {
      for (const [field, value] of Object.entries(row)) if (known[i][field] !== value) change.modify(known[i], field, value);
    });
    chart.view.change(name, change);
  }

  // The numbers of a chart as a table: for those who do not see the chart, or want to read or copy them.
  function tabulate(details) {
    const figure = document.getElementById(details.dataset.numbers);
    const data = JSON.parse(figure.dataset.chart).datasets;
    const entries = data.cells || data.bars.map((one) => ({ ...one, column: "error" }));
    const names = JSON.stringify(entries.map(({ row, column }) => [row, column]));
    if (details.names !== names) {
      details.names = names;
      details.querySelector(".scroll").replaceChildren(makeTable(entries));
    }
    const cells = details.querySelectorAll("tbody td");
    entries.forEach(({ shown }, i) => { if (cells[i].textContent !== shown) cells[i].textContent = shown; });
  }
  function makeTable(entries) {
    const table = document.createElement("table");
    table.className = "matrix";
    const head = table.createTHead().insertRow();
    head.insertCell();
    for (const name of new Set(entries.map((one) => one.column))) addHeading(head, name, "col");
    const body = table.createTBody();
    let row = null, current = null;
    for (const { row: name } of entries) {
      if (name !== current) {
        row = body.insertRow();
        addHeading(row, name, "row");
        current = name;
      }
      row.insertCell();
    }
    return table;
  }
  function addHeading(row, name, scope) {
    const cell = document.createElement("th");
    cell.scope = scope;
    cell.textContent = name;
    row.append(cell);
  }
  document.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.dataset.numbers) tabulate(event.target);
  }, true);

  const bubble = document.createElement("div");
  bubble.className = "bubble";
  bubble.setAttribute("aria-hidden", "true"); // the table beside a chart has the same numbers
  bubble.hidden = true;
  function showTooltip(event, value) {
    bubble.hidden = value === null || value === undefined || value === "";
    if (bubble.hidden) return;
    if (!bubble.isConnected) document.body.append(bubble);
    bubble.replaceChildren();
    for (const [name, content] of Object.entries(typeof value === "object" ? value : { "": value })) {
      const row = document.createElement("div");
      row.textContent = name ? name + ": " + content : String(content); // never as markup
      bubble.append(row);
    }
    const x = Math.min(event.pageX + 14, document.documentElement.clientWidth - bubble.offsetWidth - 8);
    bubble.style.left = Math.max(8, x) + "px";
    bubble.style.top = event.pageY + 16 + "px";
  }

  // One drawing of a chart at a time, and the latest last.
  const turns = new Map();
  function drawAll(selector) {
    for (const figure of document.querySelectorAll(selector)) {
      figure.dataset.drawing = "yes";
      const turn = (turns.get(figure.id) || Promise.resolve()).then(() => draw(figure));
      turns.set(figure.id, turn.catch((error) => { figure.dataset.failed = String(error); }));
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    drawAll("[data-chart]");
    document.body.addEventListener("htmx:afterSwap", () => drawAll("[data-chart]:not([data-drawing])"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll("[data-chart]"));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const chart of drawn.values()) {
        chart.width = chart.holder.clientWidth;
        chart.view.resize().run();
      }
    }, 120);
  });
})();
