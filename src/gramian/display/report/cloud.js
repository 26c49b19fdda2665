class Cloud {
  constructor(key, spec, doc) {
    Object.assign(this, { key, spec, n: spec.n, box: document.getElementById(key) });
    this.source = doc.get_model_by_name(`${key}-points`);
    this.words = this.source.data.colour.constructor;
    this.columns = spec.columns;
    this.biplot = Boolean(spec.biplot);
    this.panels = spec.panels.map((panel, j) => ({
      ...panel, first: [panel.x, panel.y],
      figure: doc.get_model_by_name(`${key}-${j}`), dots: doc.get_model_by_name(`${key}-${j}-dots`),
      lines: doc.get_model_by_name(`${key}-${j}-lines`), texts: doc.get_model_by_name(`${key}-${j}-texts`),
      hover: doc.get_model_by_name(`${key}-${j}-hover`),
    }));
    this.one = spec.columns.length ? spec.colour : -1;
    this.controls();
    this.paint();
    this.panels.forEach((panel, j) => this.place(panel, j));
    this.source.selected.properties.indices.change.connect(() => this.selected());
    // names and heads are placed in pixels, which are known once the plot is laid out, and change with the window
    for (const panel of this.panels) panel.figure.properties.inner_width.change.connect(() => this.lines(panel));
    for (const panel of this.panels) panel.hover.tooltips = (_, vars) => this.tip(panel, vars.index);
  }
  row(i) { return 1 + (this.spec.rows ? this.spec.rows[i] : i); }
  name(i) { return this.spec.names ? this.spec.names[i] : `${this.spec.title} ${this.row(i)}`; }
  text(column, i) {
    const v = column.data[i];
    if (column.type === "group") return column.values[v];
    if (column.type === "number") return shown(v);
    if (v > STEPS) return "–";
    if ((v === 0 && column.cut[0]) || (v === STEPS && column.cut[1])) return `${v ? "≥" : "≤"} ${shown(v ? column.high : column.low)}`;
    return `≈ ${shown(Number((column.low + ((column.high - column.low) * v) / STEPS).toPrecision(3)))}`;
  }
  exact(column, i) {
    const v = column.data[i];
    if (column.type === "group") return column.values[v];
    return Number.isNaN(v) ? "" : column.dtype === "f4" ? String(Number(v.toPrecision(7))) : String(v);
  }
  tip(panel, i) {
    const box = make("div", undefined, { class: "tip" });
    box.style.cssText = "font:13px/1.45 system-ui,sans-serif;max-width:20rem;overflow-wrap:anywhere";
    const line = (name, text, strong) => {
      const row = make("div");
      if (name) row.append(make("bdi", name), ": ");
      const value = make(strong ? "strong" : "span");
      value.append(make("bdi", text));
      row.append(value);
      box.append(row);
    };
    line("", this.name(i), true);
    const told = new Set([panel.x, panel.y, ...this.columns.keys()].filter((c) => c === panel.x || c === panel.y || c === this.one || this.columns[c].type === "group"));
    for (const c of [...told].slice(0, 8)) line(this.columns[c].name, this.text(this.columns[c], i));
    return box;
  }
  controls() {
    const colour = this.box.querySelector(".colour");
    colour.append(new Option("nothing", -1), ...this.columns.map((column, c) => new Option(column.name, c)));
    colour.value = this.one;
    colour.addEventListener("change", () => { this.one = Number(colour.value); this.paint(); });
    for (const picker of this.box.querySelectorAll("select.axis")) {
      const panel = this.panels[picker.dataset.panel], way = picker.dataset.way;
      picker.append(...this.spec.axes.map((c) => new Option(this.columns[c].label, c)));
      picker.value = panel[way];
      picker.addEventListener("change", () => {
        panel[way] = Number(picker.value);
        this.place(panel, Number(picker.dataset.panel));
      });
    }
    this.box.querySelector(".clear").addEventListener("click", () => this.select([]));
    this.box.querySelector(".save").addEventListener("click", () => download(`${this.spec.file}.csv`, csv(this.table(this.chosen(), this.spec.columns.length))));
    const arrows = this.box.querySelector(".biplot");
    arrows?.addEventListener("change", () => { this.biplot = arrows.checked; this.panels.forEach((panel) => this.lines(panel)); });
    const find = this.box.querySelector(".find");
    find.addEventListener("input", () => this.find(find.value.trim().toLowerCase()));
  }
  find(part) {
    const found = [];
    if (part) for (let i = 0; i < this.n; i++) if (this.name(i).toLowerCase().includes(part)) found.push(i);
    this.select(found);
  }
  select(indices) { this.source.selected.indices = indices; }
  chosen() { return [...this.source.selected.indices].sort((a, b) => a - b); }

  // What each point is coloured by, and the legend that says so.
  paint() {
    const column = this.columns[this.one], { n } = this, words = new Uint32Array(n), markers = new Array(n).fill("circle");
    const legend = this.box.querySelector(".legend");
    legend.replaceChildren();
    if (!column) words.fill(word(rgb(GROUPS[0])));
    else if (column.type === "group") this.groups(column, words, markers, legend);
    else this.shades(column, words, legend);
    const filled = new this.words(words, [n]);
    this.source.data = { ...this.source.data, colour: filled, marker: markers };
  }
  // Up to forty groups have a colour each, and a marker; the pointer or the keyboard on one in the legend shows it alone.
  groups(column, words, markers, legend) {
    const counts = new Array(column.values.length).fill(0);
    for (const code of column.data) counts[code]++;
    const big = [...counts.keys()].sort((a, b) => counts[b] - counts[a]).slice(0, NAMED).sort((a, b) => a - b);
    const colours = new Array(counts.length).fill(MISSING), shapes = new Array(counts.length).fill("circle");
    const show = (one) => {
      const each = colours.map((colour, code) => word(rgb(colour), one === undefined || one === code ? 255 : 20));
      const filled = new Uint32Array(this.n);
      for (let i = 0; i < this.n; i++) filled[i] = each[column.data[i]];
      this.source.data = { ...this.source.data, colour: new this.words(filled, [this.n]) };
    };
    big.forEach((code, at) => {
      colours[code] = GROUPS[at % GROUPS.length];
      if (this.n <= SHAPED) shapes[code] = MARKERS[at % MARKERS.length];
      const button = make("button", undefined, { type: "button", title: "Select these" });
      button.append(symbol(colours[code], shapes[code]), make("bdi", column.values[code]), ` (${(column.totals ?? counts)[code].toLocaleString("en")})`);
      button.addEventListener("click", () => this.select([...column.data.keys()].filter((i) => column.data[i] === code)));
      for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => show(code));
      for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => show());
      legend.append(button);
    });
    if (big.length < counts.length) legend.append(symbol(MISSING, "circle"), `${(counts.length - big.length).toLocaleString("en")} smaller groups`);
    for (let i = 0; i < this.n; i++) {
      words[i] = word(rgb(colours[column.data[i]]));
      markers[i] = shapes[column.data[i]];
    }
  }
  shades(column, words, legend) {
    const number = column.type === "number", grey = word(rgb(MISSING));
    let low = column.low, high = column.high, cut = column.cut, missing = false;
    if (number) [low, high, cut] = this.range(column.data);
    for (let i = 0; i < this.n; i++) {
      const v = column.data[i], none = number ? Number.isNaN(v) : v > STEPS;
      const t = number ? (high > low ? (v - low) / (high - low) : 0.5) : v / STEPS;
      missing ||= none;
      words[i] = none ? grey : SHADES[Math.round(Math.min(Math.max(t, 0), 1) * 255)];
    }
    const ramp = make("span", undefined, { class: "ramp" });
    ramp.style.background = `linear-gradient(90deg,${RAMP.join(",")})`;
    legend.append(make("bdi", column.name), " ", (cut[0] ? "≤ " : "") + shown(low), ramp, (cut[1] ? "≥ " : "") + shown(high));
    if (missing) legend.append(symbol(MISSING, "circle"), "missing");
  }
  range(data) {
    const sorted = Float64Array.from(data.filter(Number.isFinite)).sort(), at = (q) => sorted[Math.round(q * (sorted.length - 1))];
    if (!sorted.length) return [0, 0, [false, false]];
    const width = at(0.99) - at(0.01), low = width > 0 && at(0.01) - at(0) > 0.5 * width, high = width > 0 && at(1) - at(0.99) > 0.5 * width;
    return [low ? at(0.01) : at(0), high ? at(0.99) : at(1), [low, high]];
  }

  // Where each point is.
  place(panel, j) {
    const { figure } = panel, x = this.columns[panel.x], y = this.columns[panel.y];
    this.source.data = { ...this.source.data, [`x${j}`]: x.data, [`y${j}`]: y.data };
    const ranges = [figure.x_range, figure.y_range], heads = this.heads(panel, x.data, y.data).map(([, head]) => head);
    const ends = [x, y].map(({ data }, way) => this.ends(data, panel["xy"[way]], heads.map((head) => head[way])));
    if ([panel.x, panel.y].every((c) => this.spec.alike.includes(c))) {
      const sizes = [figure.inner_width || 480, figure.inner_height || 340], unit = Math.max(...ends.map(([low, high], way) => (high - low) / sizes[way]));
      ends.forEach((pair, way) => {
        const more = (unit * sizes[way] - (pair[1] - pair[0])) / 2;
        ends[way] = [pair[0] - more, pair[1] + more];
      });
    }
    [figure.below[0], figure.left[0]].forEach((axis, way) => {
      axis.axis_label = new axis.axis_label.constructor({ text: plain([x, y][way].label) });
      const [start, end] = ends[way];
      ranges[way].setv({ start, end, reset_start: start, reset_end: end });
    });
    this.lines(panel);
  }
  ends(data, axis, more = []) {
    let low = Infinity, high = -Infinity;
    const known = this.spec.ellipses, at = known ? known.axes.indexOf(axis) : -1;
    if (at >= 0 && known.axes.length > 1)
      known.means.forEach((mean, k) => {
        const reach = REACH * Math.sqrt(known.covariances[k][at][at]);
        low = Math.min(low, mean[at] - reach);
        high = Math.max(high, mean[at] + reach);
      });
    for (const values of [data, more]) for (const v of values) if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
    if (low > high) [low, high] = [0, 1];
    const margin = 0.06 * (high - low) || Math.abs(high) || 1;
    return [low - margin, high + margin];
  }
  lines(panel) {
    const xs = [], ys = [], colour = [], add = (x, y, c) => { xs.push(x); ys.push(y); colour.push(c); };
    const x = this.columns[panel.x].data, y = this.columns[panel.y].data, first = panel.x === panel.first[0] && panel.y === panel.first[1];
    const [left, right] = this.ends(x), [low, high] = this.ends(y);
    if (first && panel.line === "zero") add([left, right], [0, 0], LINE);
    if (first && panel.line === "diagonal") add([Math.max(left, low), Math.min(right, high)], [Math.max(left, low), Math.min(right, high)], LINE);
    if (this.spec.ellipses) this.ellipses(panel, add);
    const texts = { x: [], y: [], text: [], align: [], offset: [], colour: [] }, taken = [];
    if (this.biplot) this.vectors(panel, x, y, add, texts, taken);
    if (this.spec.names && this.n <= ALL_NAMES) {
      const middle = [x, y].map((data) => data.reduce((sum, v) => sum + v, 0) / this.n), away = (i) => (x[i] - middle[0]) ** 2 + (y[i] - middle[1]) ** 2;
      this.texts(panel, [...x.keys()].sort((i, k) => away(k) - away(i)).map((i) => [x[i], y[i], this.name(i)]), INK, texts, taken);
    }
    panel.lines.data = { xs, ys, colour };
    panel.texts.data = texts;
  }
  ellipses(panel, add) {
    const { axes, means, covariances } = this.spec.ellipses, a = axes.indexOf(panel.x), b = axes.indexOf(panel.y);
    if (a < 0 || b < 0 || a === b) return;
    means.forEach((mean, k) => {
      const C = covariances[k], l = Math.sqrt(C[a][a]), m = C[a][b] / l, r = Math.sqrt(Math.max(C[b][b] - m * m, 0)), x = [], y = [];
      for (let i = 0; i <= 72; i++) {
        const c = REACH * Math.cos((i * Math.PI) / 36), s = REACH * Math.sin((i * Math.PI) / 36);
        x.push(mean[a] + l * c);
        y.push(mean[b] + m * c + r * s);
      }
      add(x, y, GROUPS[k % GROUPS.length]);
    });
  }
  // The longest arrows of a biplot, all times one number, and where they end: none goes beyond nine tenths of how far
  // the points reach its way, or of half as far as they reach the other way.
  heads(panel, x, y) {
    const { axes, names, values } = this.spec.biplot ?? { axes: [] }, a = axes.indexOf(panel.x), b = axes.indexOf(panel.y);
    if (a < 0 || b < 0 || a === b) return [];
    const size = (v) => Math.hypot(v[a], v[b]), long = [...values.keys()].sort((i, k) => size(values[k]) - size(values[i])).slice(0, WITH_NAMES);
    let reach = Infinity;
    [[x, a], [y, b]].forEach(([data, way]) => {
      let low = 0, high = 0;
      for (const v of data) { if (v < low) low = v; if (v > high) high = v; }
      const far = { "-1": Math.max(-low, 0.5 * high), 1: Math.max(high, -0.5 * low) };
      for (const i of long) if (values[i][way]) reach = Math.min(reach, far[Math.sign(values[i][way])] / Math.abs(values[i][way]));
    });
    return reach > 0 && Number.isFinite(reach) ? long.map((i) => [names[i], [0.9 * reach * values[i][a], 0.9 * reach * values[i][b]]]) : [];
  }
  vectors(panel, x, y, add, texts, taken) {
    const { x_range, y_range, inner_width, inner_height } = panel.figure, heads = this.heads(panel, x, y);
    const sx = (x_range.end - x_range.start) / (inner_width || 480), sy = (y_range.end - y_range.start) / (inner_height || 340);
    for (const [, [u, v]] of heads) {
      const angle = Math.atan2(v / sy, u / sx), wing = (turn) => [u - 9 * sx * Math.cos(angle + turn), v - 9 * sy * Math.sin(angle + turn)];
      const [p, q] = [wing(0.4), wing(-0.4)];
      add([0, u, p[0], u, q[0]], [0, v, p[1], v, q[1]], ARROW);
    }
    this.texts(panel, heads.map(([name, [u, v]]) => [u, v, name]), ARROW, texts, taken);
  }
  // Names outwards of their points, but for those that would cover another name.
  texts(panel, points, colour, data, taken) {
    const { x_range, y_range, inner_width, inner_height } = panel.figure, all = inner_width || 480, tall = inner_height || 340;
    for (const [x, y, name] of points) {
      const text = name.length > 22 ? name.slice(0, 21) + "…" : name, left = x < 0, wide = 6.6 * text.length + 8;
      const at = ((x - x_range.start) / (x_range.end - x_range.start)) * all, high = ((y - y_range.start) / (y_range.end - y_range.start)) * tall;
      // a name that would leave the frame goes inwards instead
      const turned = left ? at - wide < 0 && at + wide < all : at + wide > all && at - wide > 0, west = left !== turned;
      const box = [west ? at - wide : at, west ? at : at + wide, high - 7, high + 7];
      if (taken.some((other) => box[0] < other[1] && other[0] < box[1] && box[2] < other[3] && other[2] < box[3])) continue;
      taken.push(box);
      for (const [key, value] of [["x", x], ["y", y], ["text", plain(text)], ["align", west ? "right" : "left"], ["offset", west ? -7 : 7], ["colour", colour]]) data[key].push(value);
    }
  }

  // What is selected.
  table(indices, most) {
    const used = this.columns.filter((column) => column.type !== "shade").slice(0, most);
    const named = this.spec.names ? ["name"] : [];
    return [
      [this.spec.title, ...named, ...used.map((column) => column.name)],
      ...indices.map((i) => [String(this.row(i)), ...(named.length ? [this.name(i)] : []), ...used.map((column) => this.exact(column, i))]),
    ];
  }
  selected() {
    const indices = this.chosen(), { length } = indices, box = this.box.querySelector(".chosen");
    this.box.querySelector(".count").textContent = length ? `${length.toLocaleString("en")} of ${this.n.toLocaleString("en")} selected` : "";
    for (const name of [".clear", ".save"]) this.box.querySelector(name).disabled = !length;
    box.hidden = !length;
    box.replaceChildren();
    if (length) box.append(this.list(indices));
  }
  list(indices) {
    const [head, ...rows] = this.table(indices.slice(0, LISTED), 12), table = make("table", undefined, { class: "data" });
    const top = table.createTHead().insertRow(), body = table.createTBody();
    for (const [at, name] of head.entries()) {
      const numbers = rows.every((row) => row[at] === "" || !Number.isNaN(Number(row[at])));
      const th = make("th", undefined, { scope: "col", "aria-sort": "none", class: numbers ? "num" : "" }), button = make("button", undefined, { type: "button" });
      button.append(make("bdi", name));
      th.append(button);
      top.append(th);
    }
    for (const row of rows) {
      const tr = body.insertRow();
      for (const text of row) {
        const td = tr.insertCell(), number = text !== "" && !Number.isNaN(Number(text));
        td.append(make("bdi", number ? shown(Number(text)) : guarded(text)));
        if (number) { td.className = "num"; td.dataset.v = text; }
      }
    }
    const scroll = make("div", undefined, { class: "scroll", role: "region", tabindex: "0", "aria-label": "Selected points" }), frame = make("div");
    scroll.append(table);
    const more = indices.length > LISTED ? ` (the first ${LISTED}; the download has all)` : "";
    frame.append(make("h3", `Selected${more}`), scroll);
    tables(frame);
    return frame;
  }
}
