"use strict";
// Draws what the embedded data says, with plotly; everything else on the page is plain HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const METRICS = {
  regret: "cumulative dynamic regret",
  suboptimality: "suboptimality",
  relative: "regret relative to the oracle's",
};
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const redraws = [];

function element(kind, properties, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  made.append(...children);
  return made;
}

function colour(agent) {
  const plain = data.colours[agent];
  return plain === "#000000" && dark.matches ? "#f2f2f2" : plain;
}

function translucent(hex) {
  const parts = [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
  return `rgba(${parts.join(",")},0.13)`;
}

function layout(more) {
  const ink = dark.matches ? "#ececf0" : "#1b1b1f";
  const grid = dark.matches ? "#34343a" : "#e6e6e6";
  const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true };
  const base = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12 },
    margin: { l: 55, r: 12, t: 34, b: 45 }, showlegend: false, hovermode: "closest",
  };
  const merged = { ...base, ...more };
  for (const key of Object.keys(merged)) if (/^[xy]axis/.test(key)) merged[key] = { ...axis, ...merged[key] };
  return merged;
}

const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

function dashes(agents) {
  const seen = {};
  return Object.fromEntries(agents.map((agent) => {
    const tone = data.colours[agent];
    seen[tone] = (seen[tone] ?? -1) + 1;
    return [agent, DASHES[seen[tone] % DASHES.length]];
  }));
}

function curves(agent, row, testCase, metric) {
  if (metric === "relative") {
    const oracle = testCase.agents.oracle.regret;
    return { mean: row.regret.map((value, place) => (oracle[place] > 0 ? value / oracle[place] : null)), std: null };
  }
  return { mean: row[metric], std: row[`${metric}_std`] };
}

function curveTraces(testCase, agents, metric) {
  const dash = dashes(agents);
  const traces = [];
  for (const agent of agents) {
    const { mean, std } = curves(agent, testCase.agents[agent], testCase, metric);
    const tone = colour(agent);
    if (std) {
      const high = mean.map((value, place) => value + std[place]);
      const low = mean.map((value, place) => Math.max(0, value - std[place]));
      traces.push({
        x: [...testCase.rounds, ...[...testCase.rounds].reverse()], y: [...high, ...low.reverse()], type: "scatter",
        fill: "toself", fillcolor: translucent(tone), line: { width: 0 }, hoverinfo: "skip", mode: "lines",
      });
    }
    traces.push({
      x: testCase.rounds, y: mean, type: "scatter", mode: "lines", name: agent,
      line: { color: tone, width: 2, dash: dash[agent] }, hovertemplate: `${agent}<br>round %{x}: %{y:.4g}<extra></extra>`,
    });
  }
  return traces;
}

function sweepTraces(experiment, agents) {
  const dash = dashes(agents);
  return agents.map((agent) => {
    const cases = experiment.cases.filter((one) => agent in one.agents);
    const tone = colour(agent);
    return {
      x: cases.map((one) => one.value), y: cases.map((one) => one.agents[agent].mean), type: "scatter",
      mode: "lines+markers", name: agent, line: { color: tone, width: 2, dash: dash[agent] },
      error_y: { type: "data", array: cases.map((one) => one.agents[agent].stderr), color: tone, thickness: 1 },
      customdata: cases.map((one) => one.agents[agent].text),
      hovertemplate: `${agent}<br>${experiment.axis} %{x}: %{customdata}<extra></extra>`,
    };
  });
}

function choices(title, kind, name, options, chosen, onChange) {
  const fields = options.map(({ value, text, tone }) => {
    const input = element("input", { type: kind, name, value, checked: chosen(value) });
    input.addEventListener("change", () => onChange(value, input.checked));
    const swatch = tone ? [element("span", { className: "swatch", style: `background:${tone}` })] : [];
    return element("label", {}, input, ...swatch, text);
  });
  return element("fieldset", {}, element("legend", { textContent: title }), ...fields);
}

function spoken(title, metric, testCase, agents) {
  const ends = agents.map((agent) => `${agent} ${testCase.agents[agent].text}`).join(", ");
  return `${title}: ${METRICS[metric]} by round. Dynamic regret after the last round, over ${testCase.runs} problems: ${ends}.`;
}

function setUp(experiment) {
  const controls = document.querySelector(`.controls[data-experiment="${experiment.name}"]`);
  const plots = document.querySelector(`.plots[data-experiment="${experiment.name}"]`);
  const every = [...new Set(experiment.cases.flatMap((one) => Object.keys(one.agents)))];
  const hidden = new Set();
  const state = { metric: "regret", place: 0 };
  const swept = Boolean(experiment.axis);
  const panels = experiment.panels.length ? experiment.panels : [{ title: "", agents: every }];
  const drawn = panels.map(() => element("div", { className: "plot" }));
  drawn.forEach((div) => div.setAttribute("role", "img"));
  plots.append(...drawn);

  function draw() {
    const testCase = experiment.cases[state.place];
    const metric = state.metric === "relative" && !testCase.oracle ? "regret" : state.metric;
    panels.forEach((panel, place) => {
      const known = swept ? every : panel.agents.filter((agent) => agent in testCase.agents);
      const agents = known.filter((agent) => !hidden.has(agent));
      const div = drawn[place];
      if (swept) {
        const y = { title: { text: "dynamic regret after the last round" }, rangemode: "tozero" };
        div.setAttribute("aria-label", `Dynamic regret of ${agents.join(", ")} against ${experiment.axis}; numbers below.`);
        Plotly.react(div, sweepTraces(experiment, agents), layout({ xaxis: { title: { text: experiment.axis } }, yaxis: y }),
          CONFIG);
        return;
      }
      const y = { title: { text: METRICS[metric] }, rangemode: "tozero" };
      if (metric === "relative") Object.assign(y, { type: "log", rangemode: "normal" });
      const title = panel.title || testCase.title;
      div.setAttribute("aria-label", spoken(title, metric, testCase, agents));
      Plotly.react(div, curveTraces(testCase, agents, metric),
        layout({ title: { text: title, font: { size: 14 }, x: 0.02 }, xaxis: { title: { text: "round t" } }, yaxis: y }), CONFIG);
    });
  }

  if (experiment.cases.length > 1 && !swept) {
    const select = element("select", {}, ...experiment.cases.map((one, place) =>
      element("option", { value: place, textContent: one.title })));
    select.addEventListener("change", () => { state.place = Number(select.value); draw(); });
    controls.append(element("label", {}, "World ", select));
  }
  if (!swept) {
    const metrics = [
      { value: "regret", text: "cumulative" }, { value: "suboptimality", text: "per round" },
      { value: "relative", text: "relative to the oracle" },
    ];
    controls.append(choices("Regret", "radio", `metric-${experiment.name}`, metrics, (value) => value === state.metric,
      (value) => { state.metric = value; draw(); }));
  }
  controls.append(choices("Agents", "checkbox", `agents-${experiment.name}`,
    every.map((agent) => ({ value: agent, text: agent, tone: data.colours[agent] })), () => true,
    (agent, shown) => { if (shown) hidden.delete(agent); else hidden.add(agent); draw(); }));
  redraws.push(draw);
  draw();
}

function drawPolicy(div, run) {
  const rounds = run.arms.map((_, place) => place + 1);
  const lines = run.means.map((mean, arm) => ({
    x: rounds, y: mean, type: "scatter", mode: "lines", line: { width: 1.5, color: `hsl(${arm * 32},55%,55%)` },
    hovertemplate: `arm ${arm + 1}<br>round %{x}: %{y:.3g}<extra></extra>`, xaxis: "x", yaxis: "y",
  }));
  const played = {
    x: rounds, y: run.arms.map((arm, place) => run.means[arm][place]), type: "scatter", mode: "markers",
    marker: { size: 5, color: dark.matches ? "#fff" : "#000" }, hovertemplate: "played in round %{x}<extra></extra>",
    xaxis: "x", yaxis: "y",
  };
  const chances = {
    z: run.chances, x: rounds, y: run.chances.map((_, arm) => arm + 1), type: "heatmap", colorscale: "Viridis", zmin: 0,
    zmax: 1, xaxis: "x", yaxis: "y2", colorbar: { title: { text: "probability" }, len: 0.45, y: 0.2, thickness: 12 },
    hovertemplate: "round %{x}, arm %{y}: %{z:.2f}<extra></extra>",
  };
  const frame = layout({
    xaxis: { title: { text: "round t" }, anchor: "y2" }, yaxis: { domain: [0.5, 1], title: { text: "mean reward" } },
    yaxis2: { domain: [0, 0.42], title: { text: "arm" }, dtick: 1, autorange: "reversed" },
    title: { text: "lines: arms; dots: the arm played", font: { size: 13 }, x: 0.02 },
  });
  Plotly.react(div, [...lines, played, chances], frame, CONFIG);
}

function drawMaster(div, run) {
  const rounds = run.active_order.map((_, place) => place + 1);
  const orders = {
    x: rounds, y: run.active_order, type: "scatter", mode: "lines+markers", marker: { size: 4 },
    line: { shape: "hvh", width: 1.5, color: "#009E73" }, hovertemplate: "round %{x}: order %{y}<extra></extra>", yaxis: "y",
  };
  const regret = {
    x: rounds, y: run.regret, type: "scatter", mode: "lines", line: { width: 2, color: "#0072B2" }, yaxis: "y2",
    hovertemplate: "round %{x}: regret %{y:.4g}<extra></extra>",
  };
  const marks = run.restarts.map((t) => ({
    type: "line", x0: t + 0.5, x1: t + 0.5, yref: "paper", y0: 0, y1: 1, line: { color: "#D55E00", width: 1.5, dash: "dash" },
  }));
  const frame = layout({
    xaxis: { title: { text: "round t" }, anchor: "y2" }, yaxis: { domain: [0.5, 1], title: { text: "active order" }, dtick: 1 },
    yaxis2: { domain: [0, 0.42], title: { text: "dynamic regret" }, rangemode: "tozero" }, shapes: marks,
    title: { text: `restarts (dashed): ${run.restarts.length}`, font: { size: 13 }, x: 0.02 },
  });
  Plotly.react(div, [orders, regret], frame, CONFIG);
}

function setUpSingleRuns() {
  const select = document.getElementById("single-run");
  const div = document.getElementById("single-run-plot");
  const draw = () => {
    const run = data.single_runs[select.value];
    document.getElementById("single-run-caption").textContent = run.caption;
    div.setAttribute("aria-label", `${run.title}. ${run.caption}`);
    if (run.kind === "policy") drawPolicy(div, run);
    else drawMaster(div, run);
  };
  select.addEventListener("change", draw);
  redraws.push(draw);
  draw();
}

function trainedFigure(experiment) {
  const worlds = Object.keys(experiment.rows[0].worlds);
  const labels = experiment.rows.map((row) => row.label);
  if (experiment.view === "matrix") {
    const shares = experiment.rows.map((row) => worlds.map((world) => row.worlds[world].mean));
    return [[{
      z: shares, x: worlds, y: labels, type: "heatmap", colorscale: "Viridis", zmin: 0, zmax: 1, texttemplate: "%{z:.2f}",
      colorbar: { title: { text: "share of chance's" }, thickness: 12 }, hovertemplate: "%{y}, on %{x}: %{z:.3f}<extra></extra>",
    }], { xaxis: { title: { text: "measured on" } }, yaxis: { autorange: "reversed" } }];
  }
  const found = experiment.rows.map((row) => row.worlds[worlds[0]]);
  const swept = experiment.view === "line";
  const policy = {
    x: swept ? experiment.rows.map((row) => row.value) : labels, y: found.map((one) => one.mean), name: "policy",
    error_y: { type: "data", array: found.map((one) => one.stderr) }, type: swept ? "scatter" : "bar",
    mode: "lines+markers", marker: { color: "#D55E00" }, hovertemplate: "%{x}: %{y:.3f}<extra></extra>",
  };
  const marks = Object.entries(experiment.references).map(([agent, measured]) => ({
    agent, y: measured[worlds[0]].mean, tone: colour(agent),
  }));
  const shapes = marks.map(({ y, tone }) => ({
    type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: tone, width: 1.5, dash: "dash" },
  }));
  const annotations = marks.map(({ agent, y, tone }) => ({
    xref: "paper", x: 1, xanchor: "right", y, yanchor: "bottom", text: agent, showarrow: false, font: { color: tone, size: 11 },
  }));
  const axis = { title: { text: experiment.axis }, ...(swept ? { type: "log" } : {}) };
  return [[policy], { xaxis: axis, yaxis: { title: { text: "regret as a share of chance's" }, rangemode: "tozero" }, shapes, annotations }];
}

function setUpTrained(experiment) {
  const div = document.querySelector(`[data-training="${experiment.name}"]`);
  const draw = () => {
    const [traces, frame] = trainedFigure(experiment);
    div.setAttribute("aria-label", `${experiment.title}; the numbers are in the table below.`);
    Plotly.react(div, traces, layout(frame), CONFIG);
  };
  redraws.push(draw);
  draw();
}

data.experiments.forEach(setUp);
data.trainings.forEach(setUpTrained);
setUpSingleRuns();
dark.addEventListener("change", () => redraws.forEach((draw) => draw()));
