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

tables(document);
const plots = read("plots"), clouds = read("clouds");
window.gramian = { clouds: {}, guarded, csv, ready: Promise.resolve() };
if (plots)
  window.gramian.ready = Bokeh.embed.embed_items(prepared(plots.documents), plots.items).then(() => {
    for (const [key, spec] of Object.entries(clouds)) window.gramian.clouds[key] = new Cloud(key, spec, Bokeh.documents[0]);
    document.documentElement.dataset.ready = "yes";
  });
else document.documentElement.dataset.ready = "yes";
