// COLOURS comes from the page. On dark paper dark colours are lightened, the others stay.
const DARK = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
const bright = (text) => {
  const parts = rgb(text), light = 0.3 * parts[0] + 0.59 * parts[1] + 0.11 * parts[2], more = Math.max(0, (118 - light) / (255 - light));
  return DARK ? "#" + parts.map((part) => Math.round(part + (255 - part) * more).toString(16).padStart(2, "0")).join("") : text;
};
const GROUPS = COLOURS.map(bright);
const MARKERS = ["circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star"];
const RAMP = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const MISSING = DARK ? "#6b7480" : "#b4b4b4", LINE = DARK ? "#a7b1bd" : "#5b6875", INK = DARK ? "#e6eaf0" : "#333333", ARROW = DARK ? "#ff9d94" : "#a33030";
const REACH = 2.4477; // of an ellipse with 95 % of a normal distribution: √(2 ln 20)
const SHAPED = 20000; // points up to which groups have markers of their own: each kind is drawn by itself
const NAMED = 40, LISTED = 100, WITH_NAMES = 18, ALL_NAMES = 60;
const TYPES = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };

const read = (id) => JSON.parse(document.getElementById(id).textContent);
// Figures are described in the colours of light paper: on dark paper these are exchanged, wherever a colour is meant.
const NIGHT = { "#333333": "#d5dbe3", "#1d2733": "#e6eaf0", "#5b6875": "#a7b1bd", "#e6e6e6": "#2c343e", "#b9c0c8": "#56606c", "#c9cdd4": "#4d5661", "#c3c7cd": "#4d5661", white: "#171b21" };
const exchange = (colour) => (typeof colour !== "string" ? colour : NIGHT[colour] ?? (/^#[0-9a-f]{6}$/.test(colour) ? bright(colour) : colour));
const darken = (part) => {
  if (Array.isArray(part)) {
    if (part[0] === "colour" && Array.isArray(part[1])) part[1] = part[1].map(exchange);
    part.forEach(darken);
  } else if (part && typeof part === "object")
    for (const [key, value] of Object.entries(part)) {
      if (/colou?r$/.test(key) && value && value.type === "value") value.value = exchange(value.value);
      else if (/colou?r$/.test(key) && typeof value === "string") part[key] = exchange(value);
      else darken(value);
    }
};
const make = (tag, text, attributes = {}) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const STEPS = 62, FINEST = 65534;
const inflate = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
};
const unpack = async (column) => {
  const codes = new TYPES[column.dtype](await inflate(column.data));
  if (column.type !== "number" || column.dtype !== "u2") return codes;
  return Float32Array.from(codes, (code) => (code > FINEST ? NaN : column.low + ((column.high - column.low) * code) / FINEST));
};
const opened = async (spec) => ({
  ...spec,
  columns: await Promise.all(spec.columns.map(async (column) => ({ ...column, data: await unpack(column) }))),
  rows: spec.rows && new Int32Array(await inflate(spec.rows)),
  names: spec.names && new TextDecoder().decode(await inflate(spec.names)).split("\n"),
});
// Bokeh would take these for the beginning of a formula.
const plain = (text) => text.replace(/\$(?=\$)|\\(?=[()[\]])/g, "$&\u2060");
const shown = (x) => {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : String(x);
  const size = Math.abs(x);
  return size !== 0 && (size < 1e-4 || size >= 1e6) ? x.toExponential(3) : String(Number(x.toPrecision(5)));
};

// Comma-separated values: numbers as they are, text quoted, and nothing that a spreadsheet would compute.
const NUMBER = /^(?:[+-]?(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:e[+-]?\d+)?|[+-]?(?:inf|infinity|nan))$/i;
const guarded = (text) => {
  const bare = text.trim();
  if (!/^[\t\r\n]/.test(text) && !/^[=+\-@＝＋－＠]/.test(bare)) return text;
  return text === bare && NUMBER.test(bare) ? text : "'" + text;
};
const cell = (text) => (/[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text);
const csv = (rows) => rows.map((row) => row.map((text) => cell(guarded(text))).join(",") + "\n").join("");
const download = (name, text) => {
  const link = make("a", "", { download: name });
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// Tables
const value = (td) => td.dataset.v ?? td.textContent;
const cells = (table) => [...table.tBodies[0].rows].map((row) => [...row.cells]);
const compare = (a, b) => {
  const x = Number(a), y = Number(b), numbers = a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y);
  return numbers ? x - y : a === "" ? 1 : b === "" ? -1 : a.localeCompare(b, undefined, { numeric: true });
};
const sort = (table, head) => {
  const column = head.cellIndex, down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentNode.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  const key = new Map(rows.map((row) => [row, value(row.cells[column])]));
  rows.sort((a, b) => {
    const x = key.get(a), y = key.get(b);
    return x === "" || y === "" ? compare(x, y) : (down ? -1 : 1) * compare(x, y);
  });
  table.tBodies[0].append(...rows);
};
const tables = (root) => {
  for (const table of root.querySelectorAll("table.data"))
    for (const head of table.tHead.rows[0].cells)
      head.querySelector("button").addEventListener("click", () => sort(table, head));
  for (const button of root.querySelectorAll("button.csv"))
    button.addEventListener("click", () => {
      const table = button.closest(".table").querySelector("table");
      const names = [...table.tHead.rows[0].cells].map((head) => head.textContent);
      download(button.dataset.file, csv([names, ...cells(table).map((row) => row.map(value))]));
    });
};

// Colours
const word = ([r, g, b], alpha = 255) => ((r << 24) | (g << 16) | (b << 8) | alpha) >>> 0;
const shade = (t) => {
  const at = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
  const a = rgb(RAMP[low]), b = rgb(RAMP[low + 1]);
  return a.map((part, j) => Math.round(part + (b[j] - part) * (at - low)));
};
const SHADES = Array.from({ length: 256 }, (_, i) => word(shade(i / 255)));
const path = {
  circle: "M6 1a5 5 0 1 0 .01 0z", square: "M1.5 1.5h9v9h-9z", triangle: "M6 1l5 9.5H1z", diamond: "M6 0l4.5 6L6 12 1.500 6z",
  inverted_triangle: "M6 11L1 1.500h10z", hex: "M3 1h6l3 5-3 5H3L0 6z", star: "M6 0l1.800 4H12L8.700 6.800 10 11 6 8.500 2 11l1.300-4.200L0 4h4.200z",
};
const symbol = (colour, marker) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, text] of [["width", 12], ["height", 12], ["viewBox", "0 0 12 12"], ["aria-hidden", "true"]]) svg.setAttribute(name, text);
  const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
  shape.setAttribute("d", path[marker]);
  shape.setAttribute("fill", colour);
  svg.append(shape);
  return svg;
};
