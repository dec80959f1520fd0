// The kinds of figures: each takes its place on the page and its data, adds its controls, and returns what draws it.
const METRICS = {
  regret: "cumulative dynamic regret",
  suboptimality: "regret in each round",
  relative: "regret relative to the oracle's",
};
const BANDS = {
  best: (runs) => `Lines are means over ${runs} problems; the bands around the two best are 95% intervals of these means (± 1.96 standard errors).`,
  interval: (runs) => `Lines are means over ${runs} problems; bands are 95% intervals of these means (± 1.96 standard errors).`,
  std: (runs) => `Lines are means over ${runs} problems; bands are ± one standard deviation between problems, as in the paper.`,
  none: (runs) => `Lines are means over ${runs} problems.`,
};

function reach(world, agent, metric, bands) {
  const row = world.agents[agent];
  if (bands === "none" || metric === "relative" || (bands === "best" && !world.best.includes(agent))) return null;
  return bands === "std" ? row[`${metric}_std`] : row[`${metric}_stderr`].map((value) => 1.96 * value);
}

function meanOf(row, world, metric) {
  if (metric !== "relative") return row[metric];
  const oracle = world.agents.oracle.regret;
  return row.regret.map((value, place) => (oracle[place] > 0 ? value / oracle[place] : null));
}

const highest = ({ mean, reach: far }) => mean.map((value, t) => value + (far ? far[t] : 0));

// Random play is often so much worse that all others would be one line at the bottom: then it leaves the picture at the top.
function withoutChance(rows, log) {
  const others = Object.entries(rows).filter(([agent]) => agent !== "random").map(([, row]) => row);
  const top = (some) => Math.max(0, ...some.flatMap(highest));
  return others.length && !log && top(Object.values(rows)) > 2.2 * top(others) ? others : Object.values(rows);
}

function drawCurves(place, figure, name) {
  const every = [...new Set(figure.worlds.flatMap((one) => Object.keys(one.agents)))];
  const hidden = new Set();
  const state = { metric: "regret", world: 0, log: false, bands: figure.worlds[0].runs > 1 ? "best" : "none" };
  const controls = element("div", { className: "controls" });
  place.append(controls);
  const drawn = frames(place, figure.panels.map((panel) => panel.title));
  const meaning = element("p", { className: "meaning" });
  place.append(meaning);

  function draw() {
    const world = figure.worlds[state.world];
    const metric = state.metric === "relative" && !world.oracle ? "regret" : state.metric;
    const panels = figure.panels.map((panel) =>
      (panel.agents ?? Object.keys(world.agents)).filter((agent) => agent in world.agents && !hidden.has(agent)));
    const rows = Object.fromEntries([...new Set(panels.flat())].map((agent) => {
      const row = world.agents[agent];
      return [agent, { mean: meanOf(row, world, metric), reach: reach(world, agent, metric, state.bands) }];
    }));
    const scale = scaleOf(withoutChance(rows, state.log).flatMap(highest), state.log);
    const floor = state.log ? 10 ** scale.range[0] : 0;
    panels.forEach((agents, at) => {
      const traces = agents.flatMap((agent) => {
        const { mean, reach: far } = rows[agent];
        const low = far?.map((value, t) => Math.max(floor, mean[t] - value));
        const bands = far ? [band(world.rounds, low, far.map((value, t) => Math.max(floor, mean[t] + value)), agent)] : [];
        return [...bands, {
          x: world.rounds, y: mean, type: "scatter", mode: world.rounds.length > 1 ? "lines" : "markers", name: agent,
          line: line(agent), marker: { color: tone(agent) }, hovertemplate: `${agent}<br>round %{x}: %{y:.4g}<extra></extra>`,
        }];
      });
      const div = drawn[at];
      const smooth = (mean) => metric === "suboptimality" ? average(mean.slice(-Math.max(1, Math.round(mean.length / 20)))) : mean.at(-1);
      const names = named(agents.map((agent) => [agent, smooth(rows[agent].mean)]), scale, inner(div));
      const ends = agents.map((agent) => `${agent} ${world.agents[agent].text}`).join(", ");
      const words = `${figure.panels[at].title || world.title} ${METRICS[metric]} by round. Dynamic regret after the last round, `
        + `over ${world.runs} problems: ${ends}.`;
      const rounds = world.rounds;
      shown(div, words, traces, {
        ...names, xaxis: { title: { text: "round" }, range: [rounds[0] - 0.5, rounds.at(-1) + 0.5] },
        yaxis: { title: { text: METRICS[metric] }, ...scale },
      });
    });
    meaning.textContent = metric === "relative"
      ? `Lines are the mean regret over ${world.runs} problems, divided by that of the oracle in the same round.`
      : BANDS[state.bands](world.runs);
  }

  if (figure.worlds.length > 1) {
    const select = element("select", {}, ...figure.worlds.map((one, at) => element("option", { value: at, textContent: one.title })));
    select.addEventListener("change", () => { state.world = Number(select.value); draw(); });
    controls.append(element("label", {}, "World ", select));
  }
  const metrics = [{ value: "regret", text: "cumulative" }, { value: "suboptimality", text: "per round" }];
  if (figure.worlds.some((one) => one.oracle)) metrics.push({ value: "relative", text: "relative to the oracle" });
  controls.append(choices("Regret", "radio", `metric-${name}`, metrics, (value) => value === state.metric,
    (value) => { state.metric = value; draw(); }));
  controls.append(choices("", "checkbox", `log-${name}`, [{ value: "log", text: "log scale" }], () => false,
    (_, log) => { state.log = log; draw(); }));
  const more = element("details", {}, element("summary", { textContent: "Choose agents and bands" }));
  more.append(choices("Agents", "checkbox", `agents-${name}`, every.map((agent) => ({ value: agent, text: agent, agent })), () => true,
    (agent, on) => { if (on) hidden.delete(agent); else hidden.add(agent); draw(); }));
  const bands = [{ value: "best", text: "the two best" }, { value: "interval", text: "95% interval" }, { value: "std", text: "± standard deviation" }, { value: "none", text: "none" }];
  more.append(choices("Bands", "radio", `bands-${name}`, bands, (value) => value === state.bands,
    (value) => { state.bands = value; draw(); }));
  controls.append(more);
  return draw;
}

const average = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function drawLines(place, figure, name) {
  const state = { log: false };
  const controls = element("div", { className: "controls" });
  place.append(controls);
  controls.append(choices("", "checkbox", `log-${name}`, [{ value: "log", text: "log scale" }], () => false,
    (_, log) => { state.log = log; draw(); }));
  const drawn = frames(place, figure.panels.map((panel) => panel.title));
  const numbers = figure.values.every((value) => typeof value === "number");
  const positive = numbers && figure.values.every((value) => value > 0);
  const spread = positive && Math.max(...figure.values) / Math.min(...figure.values) >= 10;
  const x = numbers ? figure.values : figure.values.map(String);
  function draw() {
    const every = figure.panels.flatMap((panel) => Object.values(panel.lines).flatMap((one) => one.high));
    const scale = scaleOf(every, state.log);
    figure.panels.forEach((panel, at) => {
      const agents = Object.keys(panel.lines);
      const traces = agents.flatMap((agent) => {
        const one = panel.lines[agent];
        const off = { array: one.high.map((value, place) => value - one.mean[place]), thickness: 1, width: 3, color: tone(agent) };
        return [{
          x, error_y: { type: "data", ...off }, y: one.mean, type: "scatter", mode: "lines+markers", name: agent, line: line(agent), marker: { size: 5, color: tone(agent) },
          customdata: one.text, hovertemplate: `${agent}<br>${figure.axis} %{x}: %{customdata}<extra></extra>`,
        }];
      });
      const names = named(agents.map((agent) => [agent, panel.lines[agent].mean.at(-1)]), scale, inner(drawn[at]));
      const ticks = numbers ? { tickvals: figure.values, ticktext: figure.values.map(String), type: spread ? "log" : "linear" } : { type: "category" };
      shown(drawn[at], `${panel.title} ${figure.y} of ${agents.join(", ")} against ${figure.axis}; the numbers are in the table below.`,
        traces, { ...names, xaxis: { title: { text: figure.axis }, ...ticks }, yaxis: { title: { text: figure.y }, ...scale } });
    });
  }
  return draw;
}

function drawBoard(place, figure) {
  const rows = [...figure.rows].reverse();
  const [div] = frames(place, [""]);
  return () => {
    const [yaxis, height] = rowsOf(rows.map((row) => row.agent));
    div.style.height = height;
    const traces = rows.flatMap(({ agent, overall, worlds }, at) => {
      const dots = {
        x: worlds.map(([, score]) => score), y: worlds.map(() => at), type: "scatter", mode: "markers",
        marker: { size: 7, color: translucent(tone(agent), 0.55), symbol: overall ? "circle" : "circle-open",
          line: { color: tone(agent), width: overall ? 0 : 1.5 } },
        text: worlds.map(([title]) => title), hovertemplate: `${agent}<br>%{text}: %{x:.1f}<extra></extra>`,
      };
      if (!overall) return [dots];
      const [mean, low, high] = overall;
      return [dots, bar(low, high, at, agent, 4), {
        x: [mean], y: [at], type: "scatter", mode: "markers", marker: { size: 12, color: tone(agent),
          line: { color: dark.matches ? "#1c1c20" : "#ffffff", width: 1.5 } },
        hovertemplate: `${agent}<br>over all worlds %{x:.1f} [${low}, ${high}]<extra></extra>`,
      }];
    });
    const least = Math.min(0, ...rows.flatMap((row) => row.worlds.map(([, score]) => score)));
    const words = rows.filter((row) => row.overall).reverse().map((row) => `${row.agent} ${row.overall[0]}`).join(", ");
    shown(div, `Scores over all worlds, 0 for ${figure.zero} play and 100 for ${figure.top}: ${words}.`, traces, {
      xaxis: { title: { text: narrow.matches ? "score" : `score: 0 = ${figure.zero}, 100 = ${figure.top}` },
        range: [Math.max(least, -60) - 3, 103] },
      yaxis, margin: { b: 46 },
    });
  };
}

function drawProfiles(place, figure) {
  const [div] = frames(place, [""]);
  return () => {
    const scale = { range: [0, 1.03] };
    const agents = Object.keys(figure.lines);
    const traces = agents.flatMap((agent) => [
      band(figure.x, figure.lines[agent].low, figure.lines[agent].high, agent),
      { x: figure.x, y: figure.lines[agent].y, type: "scatter", mode: "lines", name: agent, line: line(agent),
        hovertemplate: `${agent}<br>more than %{x}: %{y:.0%}<extra></extra>` },
    ]);
    // names stand where half of the problems are reached, since all lines end at nothing
    const marks = agents.map((agent) => {
      const at = figure.lines[agent].y.findIndex((share) => share <= 0.5);
      return { x: figure.x[Math.max(at, 0)], y: 0.5, agent };
    }).sort((one, other) => one.x - other.x);
    const annotations = marks.map(({ x, agent }, at) => ({
      x, y: 0.5, text: agent, showarrow: true, arrowhead: 0, arrowwidth: 1, arrowcolor: tone(agent), xanchor: "right",
      ax: -14, ay: 26 + ((at * 15) % 110), font: { color: ink(agent), size: narrow.matches ? 9 : 11 },
    }));
    shown(div, `Performance profiles of ${agents.join(", ")}.`, traces, {
      annotations, xaxis: { title: { text: "score" }, range: [0, 100] },
      yaxis: { title: { text: "share of problems above it" }, tickformat: ".0%", ...scale },
    });
  };
}

// Rows of agents, the best one on top: returns what the vertical axis needs, and the height.
function rowsOf(agents) {
  const y = agents.map((agent) => (narrow.matches ? wrapped(agent) : agent));
  const axis = { tickvals: y.map((_, at) => at), ticktext: y, tickfont: { size: narrow.matches ? 10 : 12 }, range: [-0.7, y.length - 0.3] };
  return [axis, `${Math.max(200, 70 + agents.length * (narrow.matches ? 32 : 27))}px`];
}

const bar = (low, high, at, agent, width) => ({
  x: [low, high], y: [at, at], type: "scatter", mode: "lines", line: { color: tone(agent), width }, hoverinfo: "skip",
});

function drawSpread(place, figure) {
  const [div] = frames(place, [""]);
  const rows = [...figure.rows].reverse();
  const top = Math.max(...rows.filter((row) => row.agent !== "random").map((row) => row.shares[4]), 0);
  const whole = Math.max(...rows.map((row) => row.shares[4]));
  return () => {
    const [yaxis, height] = rowsOf(rows.map((row) => row.agent));
    div.style.height = height;
    const traces = rows.flatMap(({ agent, shares }, at) => [bar(shares[0], shares[4], at, agent, 1.5), bar(shares[1], shares[3], at, agent, 6), {
      x: [shares[2]], y: [at], type: "scatter", mode: "markers",
      marker: { size: 11, color: tone(agent), line: { color: dark.matches ? "#1c1c20" : "#ffffff", width: 1.5 } },
      hovertemplate: `${agent}<br>median %{x:.4g}<br>half of the problems ${shares[1]} to ${shares[3]}<extra></extra>`,
    }]);
    shown(div, `Regret of single problems, medians: ${figure.rows.map((row) => `${row.agent} ${row.shares[2]}`).join(", ")}.`, traces, {
      xaxis: { title: { text: narrow.matches ? "regret" : "dynamic regret of a problem" }, range: [0, (whole > 2.2 * top && top ? top : whole) * 1.05 || 1] },
      yaxis, margin: { b: 46 },
    });
  };
}

function drawRates(place, figure) {
  const drawn = frames(place, figure.panels.map((panel) => `${panel.title} (in the paper: ${panel.expected})`));
  return () => {
    const scale = scaleOf(figure.panels.flatMap((panel) => Object.values(panel.lines).flatMap((one) => one.y)), true);
    figure.panels.forEach((panel, at) => {
      const agents = Object.keys(panel.lines);
      const traces = agents.map((agent) => ({
        x: panel.values, y: panel.lines[agent].y, type: "scatter", mode: "lines+markers", name: agent, line: line(agent),
        marker: { color: tone(agent), size: 6 }, hovertemplate: `${agent}<br>${panel.axis} = %{x}: %{y:.4g}<extra></extra>`,
      }));
      const ends = agents.map((agent) => [agent, panel.lines[agent].y.at(-1), `${agent} ${panel.lines[agent].slope}`]);
      shown(drawn[at], `${panel.title}: regret against ${panel.axis}, both logarithmic, with exponents: ${ends.map(([, , text]) => text).join(", ")}.`,
        traces, { ...named(ends, scale, inner(drawn[at])), yaxis: { title: { text: "dynamic regret" }, ...scale },
          xaxis: { title: { text: panel.axis }, type: "log", tickvals: panel.values, ticktext: panel.values.map((value) => value.toLocaleString("en")) } });
    });
  };
}

function drawTrained(place, figure) {
  const [div] = frames(place, [""]);
  return () => {
    const swept = figure.view === "line";
    const trained = {
      x: swept ? figure.values : figure.labels, y: figure.mean, type: swept ? "scatter" : "bar", mode: "lines+markers", name: "policy",
      error_y: { type: "data", array: figure.reach, thickness: 1.2 }, marker: { color: dark.matches ? "#e8813a" : "#d55e00" },
      hovertemplate: "%{x}: %{y:.3f}<extra></extra>",
    };
    const scale = scaleOf([...figure.mean.map((value, at) => value + figure.reach[at]), ...Object.values(figure.references)], false);
    const ends = Object.entries(figure.references);
    const shapes = ends.map(([agent, y]) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { ...line(agent, 1.5), dash: "dash" } }));
    shown(div, `${figure.title}; the numbers are in the table below.`, [trained], {
      ...named(ends, scale, inner(div)), shapes, yaxis: { title: { text: "regret as a share of chance's" }, ...scale },
      xaxis: { title: { text: figure.axis }, ...(swept ? { type: "log" } : {}) },
    });
  };
}

// Arms by their rank in the first round, the best one darkest (lightest on a dark page): a scale of one hue.
const armTone = (arm, arms) => `hsl(${212 - (60 * arm) / arms}, 65%, ${dark.matches ? 82 - (50 * arm) / arms : 22 + (58 * arm) / arms}%)`;

function runOfPolicy(run) {
  const rounds = run.arms.map((_, place) => place + 1);
  const arms = run.means.length;
  const lines = run.means.map((mean, arm) => ({
    x: rounds, y: mean, type: "scatter", mode: "lines", line: { width: 1.6, color: armTone(arm, arms) },
    hovertemplate: `arm ${arm + 1}<br>round %{x}: %{y:.3g}<extra></extra>`,
  }));
  const played = {
    x: rounds, y: run.arms.map((arm, place) => run.means[arm][place]), type: "scatter", mode: "markers",
    marker: { size: 5, color: dark.matches ? "#ff9d5c" : "#d55e00" }, hovertemplate: "played in round %{x}<extra></extra>",
  };
  const chances = run.chances.map((chance, arm) => ({
    x: rounds, y: chance, type: "scatter", mode: "lines", stackgroup: "chances", line: { width: 0 }, fillcolor: armTone(arm, arms),
    yaxis: "y2", hovertemplate: `arm ${arm + 1}<br>round %{x}: %{y:.2f}<extra></extra>`,
  }));
  return [[...lines, played, ...chances], {
    yaxis: { domain: [0.46, 1], title: { text: "mean reward" } }, yaxis2: { domain: [0, 0.38], title: { text: "probability" }, range: [0, 1] },
  }];
}

function runOfMaster(run) {
  const rounds = run.active_order.map((_, place) => place + 1);
  const orders = {
    x: rounds, y: run.active_order, type: "scatter", mode: "lines+markers", marker: { size: 4 },
    line: { shape: "hvh", width: 1.5, color: tone("master-linucb") }, hovertemplate: "round %{x}: order %{y}<extra></extra>",
  };
  const regret = {
    x: rounds, y: run.regret, type: "scatter", mode: "lines", line: { width: 2, color: tone("linucb") }, yaxis: "y2",
    hovertemplate: "round %{x}: regret %{y:.4g}<extra></extra>",
  };
  return [[orders, regret], {
    yaxis: { domain: [0.5, 1], title: { text: "active order" }, dtick: 1 },
    yaxis2: { domain: [0, 0.42], title: { text: "dynamic regret" }, rangemode: "tozero" },
  }];
}

function runOfMDP(run) {
  const line = (values, name, agent, dash) => ({
    x: run.episodes, y: values, type: "scatter", mode: "lines", name, line: { width: 1.5, color: tone(agent), dash },
    hovertemplate: `episode %{x:.0f}: ${name} %{y:.3g}<extra></extra>`,
  });
  const { first, stages, states } = run.path;
  const path = {
    x: states.map((_, place) => first + place / stages), y: states, type: "scatter", mode: "lines+markers", xaxis: "x2", yaxis: "y2",
    line: { shape: "hv", width: 1, color: tone(run.agent) }, marker: { size: 4 }, hovertemplate: "episode %{x:.1f}: state %{y}<extra></extra>",
  };
  const last = first + states.length / stages;
  return [[line(run.optimum, "optimum", "optimal", "dot"), line(run.earned, "earned", run.agent), path], {
    yaxis: { domain: [0.56, 1], title: { text: "reward of an episode" }, rangemode: "tozero" },
    yaxis2: { domain: [0, 0.36], title: { text: "state" }, dtick: 1 },
    xaxis: { anchor: "y", title: { text: "episode" } },
    xaxis2: { anchor: "y2", title: { text: "episodes around the first change" }, range: [first, last] },
  }];
}

function marks(places, xref = "x", yref = "paper") {
  return (places ?? []).map((x) => ({
    type: "line", xref, x0: x, x1: x, yref, y0: 0, y1: 1,
    line: { color: dark.matches ? "#e8813a" : "#d55e00", width: 1.5, dash: "dash" },
  }));
}

function drawRuns(place, figure) {
  const select = element("select", { id: "single-run" }, ...Object.entries(figure.runs).map(([name, run]) =>
    element("option", { value: name, textContent: run.title })));
  place.append(element("div", { className: "controls" }, element("label", {}, "Run ", select)));
  const [div] = frames(place, [""]);
  function draw() {
    const run = figure.runs[select.value];
    document.getElementById("single-run-caption").textContent = run.caption;
    const [traces, axes] = { policy: runOfPolicy, master: runOfMaster, mdp: runOfMDP }[run.kind](run);
    const shapes = run.kind === "mdp"
      ? [...marks(run.changes, "x", "y domain"), ...marks(run.changes.slice(0, 1), "x2", "y2 domain")]
      : marks(run.restarts?.map((t) => t + 0.5));
    const rounds = { title: { text: "round" }, anchor: "y2", range: [0.5, traces[0].x.length + 0.5] };
    shown(div, `${run.title}. ${run.caption}`, traces, { xaxis: rounds, ...axes, shapes });
  }
  select.addEventListener("change", draw);
  return draw;
}

start({
  curves: drawCurves, lines: drawLines, board: drawBoard, profiles: drawProfiles, spread: drawSpread, rates: drawRates,
  trained: drawTrained, runs: drawRuns,
});
