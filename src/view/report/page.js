// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Draws the charts of a report anew: smoothing, zoom, log scale, axes, read-out. Without it the page shows the
// charts that were drawn when the report was written.
"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent || "{}");
  const charts = data.charts || [], runs = data.runs || [];
  const state = { smooth: 0.6, axis: "steps", log: false };
  const byId = (id) => document.getElementById(id);
  const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

  // ---- theme
  const button = byId("theme"), themes = ["auto", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("lockstep-theme"); } catch { return null; } };
  const apply = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  let theme = themes.includes(stored()) ? stored() : "auto";
  button.hidden = false;
  apply(theme);
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("lockstep-theme", theme); } catch { /* a page from a file may not store */ }
    apply(theme);
  });

  // ---- numbers
  const roundStep = (least) => {
    const power = 10 ** Math.floor(Math.log10(least));
    for (const factor of [1, 2, 5]) if (factor * power >= least * (1 - 1e-9)) return factor * power;
    return 10 * power;
  };
  const linearTicks = (low, high, wanted, least = 0) => {
    const step = Math.max(least, roundStep((high - low) / wanted)), found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && found.length < 20; ++i) found.push(i * step);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return found.map((value) => [value, tickText(value, digits)]);
  };
  const tickText = (value, digits) => {
    const size = Math.abs(value);
    if (size < 1e-12) return "0";
    const scaled = (power, unit) => `${Number((value / 10 ** power).toFixed(Math.min(12, digits + power)))}${unit}`;
    if (size >= 1e4 && size < 1e9) return size >= 1e6 ? scaled(6, "M") : scaled(3, "k");
    if (size >= 1e9 || size < 1e-4) return value.toExponential(Math.max(0, Math.min(8, digits + Math.floor(Math.log10(size) + 1e-9)))).replace("e+", "e");
    return value.toFixed(Math.min(digits, 12));
  };
  const logTicks = (low, high) => {  // of logarithms
    if (high - low < 0.9) return linearTicks(10 ** low, 10 ** high, 4).filter(([v]) => v > 0).map(([v, t]) => [Math.log10(v), t]);
    const found = [], every = Math.ceil((high - low) / 6);
    const text = (factor, i) => i >= -3 && i <= 4 ? String(Number((factor * 10 ** i).toPrecision(3))) : `${factor}e${i}`;
    for (let i = Math.floor(low); i <= high; i += every)
      for (const factor of high - low < 2.5 ? [1, 2, 5] : [1]) {
        const place = i + Math.log10(factor);
        if (place >= low && place <= high) found.push([place, text(factor, i)]);
      }
    return found;
  };
  const short = (value) => value === null || !Number.isFinite(value) ? "–" : String(Number(value.toPrecision(5)));

  // ---- curves
  const xOf = (curve, axis) => {
    const run = runs[curve.run];
    if (axis === "epochs" && run.epoch) return curve.x.map((step) => step / run.epoch);
    if (axis === "hours" && run.steps.length > 1) return curve.x.map((step) => hoursAt(run, step));
    return axis === "steps" ? curve.x : null;
  };
  const hoursAt = (run, step) => {
    let low = 0, high = run.steps.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (run.steps[middle] <= step) low = middle; else high = middle; }
    const span = run.steps[high] - run.steps[low];
    return span > 0 ? run.hours[low] + (step - run.steps[low]) / span * (run.hours[high] - run.hours[low]) : run.hours[high];
  };
  // Exponential, with the correction for the start. A point that stands for n values counts n times. Curves of few
  // values, most of them of evaluations, are shown as they are.
  const smoothed = (curve, weight) => {
    if (weight <= 0 || curve.values <= 50) return curve.y;
    let sum = 0, total = 0;
    return curve.y.map((value, i) => {
      if (value === null) return null;
      const keep = weight ** (curve.n ? curve.n[i] : 1);
      sum = keep * sum + (1 - keep) * value;
      total = keep * total + (1 - keep);
      return sum / total;
    });
  };

  const height = 220, leastLeft = 58, right = 16, top = 10, bottom = 28, inset = 5;
  const views = [];
  const draw = (view) => {
    const { chart, plot } = view, width = Math.max(260, plot.clientWidth);
    view.width = width;
    const lines = chart.curves.map((curve) => {
      const x = xOf(curve, state.axis);
      return x && { curve, x, y: smoothed(curve, state.smooth), low: curve.low || curve.y, high: curve.high || curve.y };
    }).filter(Boolean);
    view.lines = lines;
    const scale = state.log ? (v) => v > 0 ? Math.log10(v) : null : (v) => v;
    let x0 = Infinity, x1 = -Infinity;
    for (const line of lines) for (const x of line.x) { if (x < x0) x0 = x; if (x > x1) x1 = x; }
    if (view.range) [x0, x1] = view.range;
    let y0 = Infinity, y1 = -Infinity;
    for (const { x, low, high } of lines) for (let i = 0; i < x.length; ++i) {
      if (low[i] === null || x[i] < x0 || x[i] > x1) continue;
      for (const v of [scale(low[i]), scale(high[i])]) if (v !== null) { if (v < y0) y0 = v; if (v > y1) y1 = v; }
    }
    if (!(x1 >= x0) || !(y1 >= y0)) {
      plot.innerHTML = `<p class="missing">${lines.length === 0 ? "Not known for this axis." : state.log ? "No positive value to show on a logarithmic scale." : "No finite number to show."}</p>`;
      return;
    }
    if (x1 === x0) { x0 -= 0.5; x1 += 0.5; }
    const room = y1 > y0 ? 0.05 * (y1 - y0) : Math.max(1e-12, 0.1 * Math.abs(y0) || 0.1);
    y0 -= room; y1 += room;
    const levels = state.log ? logTicks(y0, y1) : linearTicks(y0, y1, 6);
    // Digits are 7 pixels wide; a long label gets more room.
    const left = Math.max(leastLeft, ...levels.map(([, text]) => 7 * text.length + 9));
    const px = (x) => left + inset + (x - x0) / (x1 - x0) * (width - left - right - 2 * inset);
    const py = (y) => height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom);
    Object.assign(view, { x0, x1, px, py, scale, left });
    let svg = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(chart.tag)}"><clipPath id="clip${view.index}"><rect x="${left}" y="${top - 2}" width="${width - left - right}" height="${height - top - bottom + 4}"/></clipPath>`;
    for (const [value, text] of levels)
      svg += `<path class="grid" d="M${left} ${py(value).toFixed(1)}H${width - right}"/><text x="${left - 6}" y="${(py(value) + 4).toFixed(1)}" text-anchor="end">${text}</text>`;
    for (const [value, text] of linearTicks(x0, x1, Math.max(4, Math.min(9, width / 64)), state.axis === "steps" ? 1 : 0))
      svg += `<text x="${Math.min(px(value), width - 3.5 * text.length - 1).toFixed(1)}" y="${height - bottom + 16}" text-anchor="middle">${text}</text>`;
    svg += `<path class="axis" d="M${left} ${height - bottom}H${width - right}"/><g clip-path="url(#clip${view.index})">`;
    for (const line of lines) svg += curveSvg(line, view);
    plot.innerHTML = `${svg}</g><g class="over"></g></svg>`;
  };
  const curveSvg = ({ curve, x, y, low, high }, view) => {
    const { px, py, scale, x0, x1 } = view;
    const several = x.length < 60 && (curve.eval || x.length === 1);
    const pathOf = (values) => {
      let path = "", down = false;
      for (let i = 0; i < x.length; ++i) {
        const v = values[i] === null ? null : scale(values[i]);
        if (v === null) { down = false; continue; }
        path += `${down ? "L" : "M"}${px(x[i]).toFixed(1)} ${py(v).toFixed(1)}${down ? "" : "h.01"}`;
        down = true;
      }
      return path;
    };
    let svg = "";
    if (curve.low) {
      let up = "", back = "";
      const close = () => { if (up) svg += `<path class="band c${curve.color}" d="M${up.slice(1)}${back}Z"/>`; up = back = ""; };
      for (let i = 0; i < x.length; ++i) {
        const a = low[i] === null ? null : scale(low[i]), b = high[i] === null ? null : scale(high[i]);
        if (a === null || b === null) { close(); continue; }
        up += `L${px(x[i]).toFixed(1)} ${py(b).toFixed(1)}`;
        back = `L${px(x[i]).toFixed(1)} ${py(a).toFixed(1)}${back}`;
      }
      close();
    }
    if (y !== curve.y) svg += `<path class="curve raw c${curve.color}" d="${pathOf(curve.y)}"/>`;
    svg += `<path class="curve c${curve.color}${curve.eval && !several && view.lines.length > 1 ? " eval" : ""}" d="${pathOf(y)}"/>`;
    if (several) for (let i = 0; i < x.length; ++i) {
      const v = y[i] === null ? null : scale(y[i]);
      if (v !== null && x[i] >= x0 && x[i] <= x1) svg += `<circle class="dot c${curve.color}" cx="${px(x[i]).toFixed(1)}" cy="${py(v).toFixed(1)}" r="2.6"/>`;
    }
    return svg;
  };

  // ---- pointer
  const unit = () => ({ steps: "step", epochs: "epoch", hours: "hour" })[state.axis];
  const position = (view, event) => {
    const box = view.plot.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * view.width;
    const share = (at - view.left - inset) / (view.width - view.left - right - 2 * inset);
    return view.x0 + Math.min(Math.max(share, 0), 1) * (view.x1 - view.x0);
  };
  const readOut = (view, event) => {
    const over = view.plot.querySelector(".over");
    if (!over) return;
    const x = position(view, event);
    let rows = "", marks = "", at = x;
    for (const { curve, x: xs, y } of view.lines) {
      let low = 0, high = xs.length - 1;
      while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
      if (low > 0 && x - xs[low - 1] < xs[low] - x) --low;
      const value = y[low], shown = value === null ? null : view.scale(value);
      if (curve === view.lines[0].curve) at = xs[low];
      const range = curve.low && curve.low[low] !== null ? ` (${short(curve.low[low])} to ${short(curve.high[low])})` : y !== curve.y ? ` (${short(curve.y[low])})` : "";
      rows += `<tr><td><span class="key c${curve.color}"></span>${escape(curve.name)}</td><td class="n">${short(value)}${range}</td><td class="head">${unit()} ${short(xs[low])}</td></tr>`;
      if (shown !== null) marks += `<circle class="dot c${curve.color}" cx="${view.px(xs[low])}" cy="${view.py(shown)}" r="3.5"/>`;
    }
    const from = view.drag === undefined ? "" : `<rect class="select" x="${Math.min(view.px(view.drag), view.px(x))}" y="${top}" width="${Math.abs(view.px(view.drag) - view.px(x))}" height="${height - top - bottom}"/>`;
    over.innerHTML = `${from}<path class="cross" d="M${view.px(at)} ${top}V${height - bottom}"/>${marks}`;
    view.tip.hidden = false;
    view.tip.innerHTML = `<table>${rows}</table>`;
    const box = view.figure.getBoundingClientRect(), half = event.clientX - box.left > box.width / 2;
    view.tip.style.left = half ? "auto" : `${event.clientX - box.left + 14}px`;
    view.tip.style.right = half ? `${box.right - event.clientX + 14}px` : "auto";
    view.tip.style.top = `${event.clientY - box.top + 16}px`;
  };
  const leave = (view) => { view.tip.hidden = true; const over = view.plot.querySelector(".over"); if (over && view.drag === undefined) over.innerHTML = ""; };

  const listen = (view) => {
    const { plot } = view;
    plot.addEventListener("pointermove", (event) => readOut(view, event));
    plot.addEventListener("pointerleave", () => leave(view));
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !view.px) return;
      view.drag = position(view, event);
      plot.setPointerCapture(event.pointerId);
    });
    const end = (event, zoom) => {
      if (view.drag === undefined) return;
      const from = view.drag, to = position(view, event);
      view.drag = undefined;
      leave(view);
      if (!zoom || Math.abs(view.px(from) - view.px(to)) < 6) return;
      view.range = [Math.min(from, to), Math.max(from, to)];
      draw(view);
    };
    plot.addEventListener("pointerup", (event) => end(event, true));
    plot.addEventListener("pointercancel", (event) => end(event, false));
    plot.addEventListener("dblclick", () => { view.range = undefined; draw(view); });
  };

  // ---- page
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const index = Number(figure.dataset.chart), chart = charts[index];
    if (!chart) continue;
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    figure.append(tip);
    const view = { index, chart, figure, tip, plot: figure.querySelector(".plot") };
    views.push(view);
    listen(view);
  }
  const near = new Set();
  const drawNear = () => { for (const view of near) draw(view); };
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const view = views.find((one) => one.figure === entry.target);
      if (entry.isIntersecting) { near.add(view); draw(view); } else near.delete(view);
    }
  }, { rootMargin: "600px" });
  // A few are drawn at once, so that a print has them; of many those that are near the window.
  if (views.length <= 40) for (const view of views) { near.add(view); draw(view); }
  else for (const view of views) watcher.observe(view.figure);
  let waiting = 0;
  addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(drawNear); });
  addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details")) details.open = true; });

  const changed = () => { for (const view of views) view.range = state.axis === view.axis ? view.range : undefined; for (const view of views) view.axis = state.axis; drawNear(); };
  const slider = byId("smooth");
  if (slider) {
    byId("controls").hidden = false;
    slider.addEventListener("input", () => { state.smooth = Number(slider.value); byId("smooth-value").textContent = state.smooth.toFixed(2); drawNear(); });
    byId("axis").addEventListener("change", (event) => { state.axis = event.target.value; changed(); });
    byId("log").addEventListener("change", (event) => { state.log = event.target.checked; drawNear(); });
    byId("filter").addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const { figure, chart } of views) figure.hidden = !words.every((word) => chart.tag.toLowerCase().includes(word));
    });
    for (const option of byId("axis").options)
      if ((option.value === "epochs" && !runs.some((run) => run.epoch)) || (option.value === "hours" && !runs.some((run) => run.steps.length > 1))) option.disabled = true;
  }
  root.dataset.ready = "yes";
})();
