"use strict";
// What every figure shares: the looks of agents, frames, names at the ends of lines, and controls. The text of the page is
// plain HTML; `plots.js` draws what the embedded data says.
const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 600px)");
const redraws = [];
const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

function element(kind, properties, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  made.append(...children);
  return made;
}

const looks = (agent) => data.looks[agent] ?? { dash: "solid", light: "#777777", dark: "#aaaaaa", light_text: "#555555", dark_text: "#bbbbbb" };
const tone = (agent) => looks(agent)[dark.matches ? "dark" : "light"];
const ink = (agent) => looks(agent)[dark.matches ? "dark_text" : "light_text"];
const line = (agent, width = 2) => ({ color: tone(agent), width, dash: looks(agent).dash });

function translucent(hex, opacity = 0.16) {
  const parts = [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
  return `rgba(${parts.join(",")},${opacity})`;
}

function layout(more) {
  const colour = dark.matches ? "#ececf0" : "#1b1b1f";
  const grid = dark.matches ? "#34343a" : "#e8e8e8";
  const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true };
  const base = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour, size: 12, family: "system-ui, sans-serif" },
    margin: { l: 55, r: 14, t: 12, b: 42 }, showlegend: false, hovermode: "closest", dragmode: narrow.matches ? false : "zoom",
  };
  const merged = { ...base, ...more, margin: { ...base.margin, ...more.margin } };
  for (const key of Object.keys(merged)) if (/^[xy]axis/.test(key)) merged[key] = { ...axis, ...merged[key] };
  return merged;
}

// A band between two lines, in the colour of its agent.
function band(x, low, high, agent, more = {}) {
  return {
    x: [...x, ...[...x].reverse()], y: [...high, ...[...low].reverse()], type: "scatter", mode: "lines", fill: "toself",
    fillcolor: translucent(tone(agent)), line: { width: 0 }, hoverinfo: "skip", ...more,
  };
}

// The scale of a vertical axis that shows all of some values, the same for panels that are compared.
function scaleOf(values, log) {
  const kept = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  const top = Math.max(...kept, log ? 1e-9 : 0) || 1;
  if (!log) return { range: [Math.min(0, ...kept) * 1.04, top * 1.04], top: top * 1.04 };
  const least = Math.max(Math.min(...kept, top), top / 2000);
  return { type: "log", range: [Math.log10(least) - 0.02, Math.log10(top) + 0.04], dtick: 1, top: top * 1.1 };
}

// A name in one line, or in two where it is long.
function wrapped(name) {
  const most = narrow.matches ? 13 : 18;
  if (name.length <= most) return name;
  const breaks = [...name.matchAll(/[-@,:+ ]/g)].map((found) => found.index + 1);
  const middle = breaks.sort((one, other) => Math.abs(one - name.length / 2) - Math.abs(other - name.length / 2))[0];
  return middle ? `${name.slice(0, middle)}<br>${name.slice(middle)}` : name;
}

// Each line's name at its end, pushed apart where ends are close and tied to them. `ends` are [agent, value, words].
function named(ends, scale, height) {
  const size = narrow.matches ? 10 : 11.5;
  const [low, high] = scale.range;
  const clipped = (y) => Math.max(low, Math.min(high, y));
  const placed = ends
    .filter(([, value]) => Number.isFinite(value) && (scale.type !== "log" || value > 0))
    .map(([agent, value, words]) => {
      const y = clipped(scale.type === "log" ? Math.log10(value) : value);
      const text = wrapped(words ?? agent) + (value > scale.top ? ` ↑ ${value.toPrecision(3) * 1}` : "");
      return { agent, y, text, want: height * (1 - (y - low) / (high - low)), tall: (text.includes("<br>") ? 2.7 : 1.35) * size };
    })
    .sort((one, other) => one.want - other.want);
  let edge = -10;
  for (const one of placed) {
    one.at = Math.max(one.want, edge + one.tall / 2);
    edge = one.at + one.tall / 2;
  }
  edge = height + 12;
  for (const one of [...placed].reverse()) {
    one.at = Math.min(one.at, edge - one.tall / 2);
    edge = one.at - one.tall / 2;
  }
  const longest = Math.max(0, ...placed.flatMap(({ text }) => text.split("<br>").map((part) => part.length)));
  const annotations = placed.map((one) => ({
    xref: "paper", x: 1, yref: "y", y: one.y, ax: 16, ay: one.at - one.want, text: one.text, xanchor: "left", align: "left",
    showarrow: true, arrowhead: 0, arrowwidth: 1, arrowcolor: tone(one.agent), standoff: 0, borderpad: 1,
    font: { color: ink(one.agent), size },
  }));
  return { annotations, margin: { r: 24 + longest * size * 0.62 } };
}

const inner = (div, more = 0) => div.clientHeight - 12 - 42 - more;

function choices(title, kind, name, options, chosen, onChange) {
  const fields = options.map(({ value, text, agent }) => {
    const input = element("input", { type: kind, name, value, checked: chosen(value) });
    input.addEventListener("change", () => onChange(value, input.checked));
    return element("label", {}, input, ...(agent ? [swatch(agent)] : []), text);
  });
  return element("fieldset", {}, ...(title ? [element("legend", { textContent: title })] : []), ...fields);
}

const STROKES = { solid: "none", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "10 4" };

function swatch(agent) {
  const { light, dark: onDark, dash } = looks(agent);
  const strokes = STROKES[dash] ?? dash.replaceAll("px", "").replaceAll(",", " ");
  const holder = element("span", {});
  holder.innerHTML = `<svg class="swatch" viewBox="0 0 26 8" aria-hidden="true"><line x1="1" y1="4" x2="25" y2="4" stroke-dasharray="${strokes}"/></svg>`;
  holder.firstChild.style.setProperty("--light", light);
  holder.firstChild.style.setProperty("--dark", onDark);
  return holder.firstChild;
}

// A place for plots, with a heading each where there are several.
function frames(place, titles) {
  const plots = element("div", { className: "plots" });
  const drawn = titles.map((title) => {
    const div = element("div", { className: "plot" });
    div.setAttribute("role", "img");
    plots.append(element("div", {}, ...(title ? [element("h3", { textContent: title })] : []), div));
    return div;
  });
  place.append(plots);
  return drawn;
}

function shown(div, words, traces, frame) {
  div.setAttribute("aria-label", words);
  Plotly.react(div, traces, layout(frame), CONFIG);
}

function start(kinds) {
  for (const place of document.querySelectorAll(".figure[data-figure]")) {
    const figure = data.figures[place.dataset.figure];
    const draw = kinds[figure.kind](place, figure, place.dataset.figure);
    redraws.push(draw);
    draw();
  }
  for (const scheme of [dark, narrow]) scheme.addEventListener("change", () => redraws.forEach((draw) => draw()));
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) {
      for (const link of links.values()) link.removeAttribute("aria-current");
      const link = links.get(entry.target.id);
      link?.setAttribute("aria-current", "true");
      if (link) link.parentElement.scrollTo({ left: link.offsetLeft - 60, behavior: "instant" });
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));
}
