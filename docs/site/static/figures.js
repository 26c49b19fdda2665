// Figures with a slider: what they show was computed when the site was built and lies in the page as JSON; this draws it.
// A frame is a list of marks (points, lines, bars) in the units of the data, and a sentence that says what is to be seen.
// A figure may have a second panel below the first, with marks of its own in each frame.
"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  // Paul Tol's bright colours, which can be told apart without colour vision and on light and dark ground.
  const COLOURS = ["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#888888"];
  const W = 680, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 48;

  const make = (name, attributes, parent) => {
    const element = document.createElementNS(NS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (parent) parent.append(element);
    return element;
  };

  const scaleOf = (axis, from, to) => {
    const place = axis.log ? Math.log10 : (v) => v;
    const [a, b] = [place(axis.min), place(axis.max)];
    return (v) => from + ((place(v) - a) / (b - a)) * (to - from);
  };

  const ticksOf = (axis) => {
    if (axis.ticks) return axis.ticks;
    const ticks = [];
    if (axis.log) {
      const [a, b] = [Math.ceil(Math.log10(axis.min) - 1e-9), Math.floor(Math.log10(axis.max) + 1e-9)];
      const step = Math.max(1, Math.ceil((b - a) / 7));
      for (let e = a; e <= b; e += step) ticks.push(10 ** e);
      return ticks;
    }
    const span = axis.max - axis.min, rough = span / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    for (let i = Math.ceil(axis.min / step - 1e-9); i * step <= axis.max + 1e-9 * span; i++) ticks.push(i * step);
    return ticks;
  };

  const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const name = (value, axis) => {
    if (!axis.log) return String(+value.toPrecision(6));
    return "10" + [...String(Math.round(Math.log10(value)))].map((c) => SUPERSCRIPT[c]).join("");
  };

  // Axes of one panel; returns its SVG and what draws the marks of a frame.
  const makePanel = (data, H, id) => {
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
    const x = scaleOf(data.x, LEFT, W - RIGHT), y = scaleOf(data.y, H - BOTTOM, TOP);
    for (const value of ticksOf(data.x)) {
      make("line", { class: "grid", x1: x(value), x2: x(value), y1: TOP, y2: H - BOTTOM }, svg);
      make("text", { x: x(value), y: H - BOTTOM + 18, "text-anchor": "middle" }, svg).textContent = name(value, data.x);
    }
    for (const value of ticksOf(data.y)) {
      make("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(value), y2: y(value) }, svg);
      make("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, svg).textContent = name(value, data.y);
    }
    make("rect", { class: "axis", x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }, svg);
    make("text", { x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, svg).textContent = data.x.label;
    const label = make("text", { transform: `translate(15 ${(TOP + H - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg);
    label.textContent = data.y.label;
    const box = make("clipPath", { id }, make("defs", {}, svg));
    make("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }, box);
    const still = make("g", { "clip-path": `url(#${id})` }, svg), moving = make("g", { "clip-path": `url(#${id})` }, svg);

    const add = (mark, parent) => {
      const colour = COLOURS[mark.colour || 0];
      const points = mark.x.map((v, i) => [x(v), y(mark.y[i])]);
      if (mark.kind === "line") {
        const line = make("polyline", { fill: "none", stroke: colour, "stroke-width": mark.width || 2.2 }, parent);
        line.setAttribute("points", points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" "));
        if (mark.dashed) line.setAttribute("stroke-dasharray", "6 5");
      } else if (mark.kind === "bars") {
        const half = ((W - LEFT - RIGHT) / mark.x.length) * 0.4;
        for (const [px, py] of points) {
          make("rect", { x: px - half, y: py, width: 2 * half, height: Math.max(0, H - BOTTOM - py), fill: colour, "fill-opacity": 0.8 }, parent);
        }
      } else {
        points.forEach(([px, py], i) => {
          const own = mark.groups ? COLOURS[mark.groups[i]] : colour;
          make("circle", { cx: px.toFixed(1), cy: py.toFixed(1), r: mark.size || 3.2, fill: own, "fill-opacity": 0.75 }, parent);
        });
      }
    };
    data.fixed.forEach((mark) => add(mark, still));
    const show = (marks) => {
      moving.replaceChildren();
      marks.forEach((mark) => add(mark, moving));
    };
    return { svg, show };
  };

  const draw = (figure, number) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const main = makePanel(data, 420, `clip-${number}`);
    const below = data.below ? makePanel(data.below, 190, `clip-${number}-below`) : null;
    const says = document.createElement("p"), row = document.createElement("label");
    const slider = document.createElement("input"), value = document.createElement("output");
    says.className = "says";
    says.setAttribute("aria-live", "polite");
    Object.assign(slider, { type: "range", min: 0, max: data.frames.length - 1, step: 1, value: data.start || 0 });
    row.append(data.slider, slider, value);
    const show = () => {
      const frame = data.frames[slider.value];
      main.show(frame.marks);
      if (below) below.show(frame.below);
      value.textContent = frame.label;
      says.textContent = frame.says;
      slider.setAttribute("aria-valuetext", `${frame.label}. ${frame.says}`);
      main.svg.setAttribute("aria-label", `${data.caption} ${data.slider} ${frame.label}: ${frame.says}`);
    };
    slider.addEventListener("input", show);
    if (below) below.svg.setAttribute("aria-label", data.below.caption);
    figure.querySelector("script").after(main.svg, ...(below ? [below.svg] : []), row, says);
    show();
  };

  // On paper nothing can be opened: solutions are printed.
  addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((e) => {
    e.open = true;
    e.dataset.printed = "";
  }));
  addEventListener("afterprint", () => document.querySelectorAll("details[data-printed]").forEach((e) => {
    e.open = false;
    delete e.dataset.printed;
  }));

  const start = () => document.querySelectorAll("figure.slider").forEach(draw);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
