// Without a GPU its language is slower than drawing by hand.
const accelerated = () => {
  const gl = document.createElement("canvas").getContext("webgl");
  if (!gl) return false;
  const told = gl.getExtension("WEBGL_debug_renderer_info");
  return !/swiftshader|llvmpipe|software|basic render/i.test(String(gl.getParameter(told ? told.UNMASKED_RENDERER_WEBGL : gl.RENDERER)));
};
const prepared = (documents) => {
  const figures = Object.values(documents).flatMap((doc) => doc.roots).map((root) => root.attributes).filter((attributes) => attributes.output_backend === "webgl");
  if (figures.length && !accelerated()) for (const attributes of figures) attributes.output_backend = "canvas";
  return documents;
};

// With the keyboard: arrow keys move a plot by a tenth of it, + and − zoom, 0 shows all.
const steer = (place, figure) => {
  place.tabIndex = 0;
  place.addEventListener("keydown", (event) => {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }, way = ways[event.key], zoom = { "+": 0.8, "=": 0.8, "-": 1.25 }[event.key];
    if (event.target !== place || event.ctrlKey || event.metaKey || event.altKey || !(way || zoom || event.key === "0")) return;
    event.preventDefault();
    if (event.key === "0") { figure.reset.emit(); return; }
    [figure.x_range, figure.y_range].forEach((range, k) => {
      const logarithmic = [figure.x_scale, figure.y_scale][k].type === "LogScale";
      const [start, end] = logarithmic ? [Math.log(range.start), Math.log(range.end)] : [range.start, range.end];
      const middle = (start + end) / 2 + (way ? 0.1 * (end - start) * way[k] : 0), half = ((zoom ?? 1) * (end - start)) / 2;
      const ends = [middle - half, middle + half].map((end) => (logarithmic ? Math.exp(end) : end));
      range.setv({ start: ends[0], end: ends[1] });
    });
  });
};

// On a phone a legend at the side leaves no room for the lines: it goes below them, axes have fewer numbers, and names
// that would leave the frame go to the other side of their points. Before figures are made, and once they have a width.
const NARROW = 520;
const fold = ({ documents, items }) => {
  const figures = Object.values(documents).flatMap((doc) => doc.roots);
  for (const { id, attributes } of figures) {
    const width = document.getElementById(items[0].roots[id])?.clientWidth ?? NARROW;
    if (width >= NARROW) continue;
    const at = (way) => attributes[way] ?? [], columns = Math.max(2, Math.floor(width / 110));
    for (const legend of at("right").filter((part) => part.name === "Legend")) {
      Object.assign(legend.attributes, { orientation: "horizontal", ncols: columns });
      attributes.right = at("right").filter((part) => part !== legend);
      attributes.below = [...at("below"), legend];
      attributes.height += 22 * Math.ceil((legend.attributes.items ?? []).length / columns);
    }
    for (const axis of at("below")) if (axis.attributes?.ticker?.name === "LogTicker") axis.attributes.ticker.attributes.desired_num_ticks = 4;
  }
};
const turned = (figure) => {
  const turn = () => {
    const { start, end } = figure.x_range;
    for (const label of figure.center.filter((part) => part.type === "Label" && typeof part.text === "string")) {
      const wide = 6.6 * label.text.length + 8, at = ((label.x - start) / (end - start)) * figure.inner_width, west = label.text_align === "right";
      if (west ? at - wide < 0 && at + wide < figure.inner_width : at + wide > figure.inner_width && at - wide > 0)
        label.setv({ text_align: west ? "left" : "right", x_offset: -label.x_offset });
    }
  };
  figure.properties.inner_width.change.connect(turn);
  turn();
};

tables(document);
const plots = read("plots"), clouds = read("clouds");
window.gramian = { clouds: {}, guarded, csv, ready: Promise.resolve() };
const settled = () => { document.documentElement.dataset.ready = "yes"; };
if (plots) {
  fold(plots);
  if (DARK) darken(plots.documents);
  window.gramian.ready = Bokeh.embed.embed_items(prepared(plots.documents), plots.items).then(async () => {
    const [doc] = Bokeh.documents;
    for (const [id, place] of Object.entries(plots.items[0].roots)) {
      const figure = doc.get_model_by_id(id), box = document.getElementById(place);
      steer(box, figure);
      turned(figure);
    }
    for (const [key, spec] of Object.entries(clouds)) window.gramian.clouds[key] = new Cloud(key, await opened(spec), doc);
    settled();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
} else settled();
