(function () {
  "use strict";
  const figures = JSON.parse(document.getElementById("figures").textContent);

  // Colours are names ("$accent"); the page's style says what they are in this theme.
  function themed(value, style) {
    if (typeof value === "string") return value[0] === "$" ? style.getPropertyValue("--" + value.slice(1)).trim() : value;
    if (Array.isArray(value)) return value.map((one) => themed(one, style));
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, themed(one, style)]));
    return value;
  }

  function draw() {
    const style = getComputedStyle(document.documentElement);
    for (const [name, figure] of Object.entries(figures)) {
      const place = document.getElementById("figure-" + name);
      const layout = themed(figure.layout, style);
      Plotly.react(place, themed(figure.data, style), layout, { displayModeBar: false, responsive: true });
    }
  }

  draw();
  const resized = new ResizeObserver((all) => all.forEach((one) => Plotly.Plots.resize(one.target)));
  Object.keys(figures).forEach((name) => resized.observe(document.getElementById("figure-" + name)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("beforeprint", draw);
  window.addEventListener("afterprint", draw);
})();
