// The playground: two agents on one recorded problem, round by round. Nothing is computed here but sums.
"use strict";

const COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377"]; // Tol's bright palette, an arm each
const part = (name) => document.getElementById(`pg-${name}`);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

let round = 1;
let timer = null;

function options(select, titles, chosen) {
  select.replaceChildren(...titles.map((title, place) => new Option(title, place, place === chosen, place === chosen)));
}

const world = () => window.PLAYGROUND.worlds[part("world").value];
const drift = () => world().drifts[part("drift").value];
const problem = () => drift().problems[part("problem").value];
const agents = () => [part("first"), part("second")].map((select) => world().agents[select.value]);

// What one agent did: arms, rewards, and the regret after each round.
function course(agent) {
  const run = problem().runs[agent];
  const arms = [...run.arms].map(Number);
  let lost = 0;
  const regret = arms.map((arm, t) => (lost += Math.max(...problem().values.map((of) => of[t])) - problem().values[arm][t]));
  return { agent, arms, rewards: run.rewards, regret };
}

function chosenWorld() {
  options(part("drift"), world().drifts.map((one) => one.title), 0);
  options(part("first"), world().agents, 0);
  options(part("second"), world().agents, 1);
  chosenDrift();
}

function chosenDrift() {
  options(part("problem"), drift().problems.map((_, place) => place + 1), 0);
  begin();
}

function begin() {
  stop();
  part("round").max = problem().values[0].length;
  go(1);
}

function go(to) {
  const last = problem().values[0].length;
  round = clamp(Number(to), 1, last);
  part("round").value = round;
  if (round === last) stop();
  draw();
}

function stop() {
  clearInterval(timer);
  timer = null;
  part("play").textContent = "Play";
}

function play() {
  if (timer) return stop();
  if (round === problem().values[0].length) go(1);
  timer = setInterval(() => go(round + 1), 1000 / Number(part("speed").value));
  part("play").textContent = "Pause";
}

// A picture of so many rounds, in the width that there is, with room for names on the right.
function frame(picture, height, low, high) {
  const room = 110;
  const width = picture.clientWidth || 600;
  const rounds = problem().values[0].length;
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("height", height);
  const left = 36;
  const x = (t) => left + ((t + 0.5) / rounds) * (width - left - room);
  const y = (value) => height - 8 - ((value - low) / (high - low)) * (height - 16);
  return { x, y, left, right: width - room, cell: (width - left - room) / rounds };
}

function axis({ y, left, right }, ticks) {
  return ticks
    .map((tick) => `<line class="pg-grid" x1="${left}" x2="${right}" y1="${y(tick)}" y2="${y(tick)}"/>
      <text x="${left - 5}" y="${y(tick) + 4}" text-anchor="end">${tick}</text>`)
    .join("");
}

function ticksOf(low, high) {
  const rough = (high - low) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(Number(tick.toFixed(6)));
  return ticks;
}

const path = ({ x, y }, values, look) =>
  `<polyline ${look} points="${values.map((value, t) => `${x(t).toFixed(1)},${y(value).toFixed(1)}`).join(" ")}"/>`;

function drawValues(courses) {
  const values = problem().values;
  const all = values.flat();
  const [low, high] = [Math.min(0, ...all), Math.max(...all)];
  const at = frame(part("values"), 190, low, high);
  const lines = values.map((of, arm) => path(at, of.slice(0, round), `class="pg-line" stroke="${COLOURS[arm]}"`));
  const names = apart(values.map((of, arm) => ({ at: at.y(of[round - 1]), text: `arm ${arm + 1}`, colour: COLOURS[arm] })), 190)
    .map((name) => `<text class="pg-name" x="${at.x(round - 1) + 12}" y="${name.at + 4}">${name.text}</text>`);
  const marks = courses.map(({ arms }, place) => {
    const arm = arms[round - 1];
    const look = place ? `r="8" fill="none" stroke="currentColor" stroke-width="1.5"` : `r="4.5" fill="${COLOURS[arm]}"`;
    return `<circle cx="${at.x(round - 1)}" cy="${at.y(values[arm][round - 1])}" ${look}/>`;
  });
  part("values").innerHTML = axis(at, ticksOf(low, high)) + lines.join("") + marks.join("") + names.join("");
}

// Names one below the other where their lines end close together.
function apart(names, height) {
  const sorted = [...names].sort((one, other) => one.at - other.at);
  sorted.forEach((name, place) => {
    if (place) name.at = Math.max(name.at, sorted[place - 1].at + 13);
  });
  const over = Math.max(0, sorted.at(-1).at - (height - 6));
  sorted.forEach((name) => (name.at -= over));
  return names;
}

function drawChoices(courses) {
  const best = problem().values[0].map((_, t) => {
    const here = problem().values.map((of) => of[t]);
    return here.indexOf(Math.max(...here));
  });
  const rows = [["best arm", best], ...courses.map(({ agent, arms }) => [agent, arms])];
  const at = frame(part("choices"), rows.length * 36, 0, 1);
  part("choices").innerHTML = rows
    .map(([name, arms], row) => {
      const cells = arms.slice(0, round).map(
        (arm, t) => `<rect x="${(at.x(t) - at.cell / 2).toFixed(2)}" y="${row * 36 + 16}" width="${(at.cell + 0.3).toFixed(2)}"
          height="14" fill="${COLOURS[arm]}"/>`,
      );
      return `<text x="${at.left}" y="${row * 36 + 11}">${name}</text>${cells.join("")}`;
    })
    .join("");
}

function drawRegret(courses) {
  const high = Math.max(1e-9, ...courses.map(({ regret }) => regret.at(-1)));
  const at = frame(part("regret"), 150, 0, high);
  const names = apart(courses.map(({ agent, regret }) => ({ at: at.y(regret[round - 1]), text: agent })), 150);
  part("regret").innerHTML =
    axis(at, ticksOf(0, high)) +
    courses
      .map(({ regret }, place) => path(at, regret.slice(0, round), `class="pg-line pg-agent${place}"`))
      .join("") +
    names
      .map(({ at: y, text }) => `<text x="${at.x(round - 1) + 8}" y="${y + 4}">${text.replace("sliding-window", "window")}</text>`)
      .join("");
}

function say(courses) {
  const values = problem().values.map((of) => of[round - 1]);
  const best = Math.max(...values);
  const told = courses.map(({ agent, arms, rewards, regret }, place) => {
    const arm = arms[round - 1];
    return `<li><span class="pg-mark">${place ? "◯ ╌" : "● ─"}</span> <code>${agent}</code> plays <b>arm ${arm + 1}</b>, worth ${values[arm].toFixed(2)},
      and earns ${rewards[round - 1].toFixed(2)}; regret so far <b data-regret="${regret[round - 1]}">${regret[round - 1].toFixed(1)}</b></li>`;
  });
  part("said").innerHTML = `<p>Round <b>${round}</b> of ${problem().values[0].length}: the best is
    <b>arm ${values.indexOf(best) + 1}</b>, worth ${best.toFixed(2)}.</p><ul>${told.join("")}</ul>`;
  part("command").textContent = `${drift().command} --agents ${[...new Set([...agents(), "random"])].join(" ")}`;
}

function draw() {
  const courses = agents().map(course);
  drawValues(courses);
  drawChoices(courses);
  drawRegret(courses);
  say(courses);
}

if (window.PLAYGROUND) {
  options(part("world"), window.PLAYGROUND.worlds.map((one) => one.title), 0);
  part("world").onchange = chosenWorld;
  part("drift").onchange = chosenDrift;
  for (const name of ["problem", "first", "second"]) part(name).onchange = begin;
  part("round").oninput = (event) => go(event.target.value);
  part("play").onclick = play;
  part("back").onclick = () => go(round - 1);
  part("next").onclick = () => go(round + 1);
  part("speed").onchange = () => timer && (stop(), play());
  new ResizeObserver(draw).observe(part("values"));
  chosenWorld();
}
