// Draws the pictures of a page, keeps it up to date, and shows times in the zone that is chosen. Without it a page has
// the same figures as tables.

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const shown = (value) => (typeof value === "number" && Number.isFinite(value) ? number.format(value) : "unknown");

// What an option names as {"$fn": NAME}: the same names as FUNCTIONS in api/pictures/picture.py.
const FUNCTIONS = {
  // A bar from one instant to another: [lane, begin, end, colour, label].
  bar_of_span(params, api) {
    const lane = api.value(0);
    const [begin, middle] = api.coord([api.value(1), lane]);
    const [end] = api.coord([api.value(2), lane]);
    const height = api.size([0, 1])[1] * 0.7;
    const { x, y, width, height: room } = params.coordSys;
    const bar = { x: begin, y: middle - height / 2, width: Math.max(end - begin, 1), height };
    const shape = echarts.graphic.clipRectByRect(bar, { x, y, width, height: room });
    return shape && { type: "rect", shape, style: { fill: api.value(3) } };
  },
  label_of_span: ({ value: [, begin, end, , label] }) => `${label}\n${instantOf(begin)} to ${instantOf(end)}`,
  // To the right of its mark, or below another label: ECharts moves those alone whose place is given.
  label_beside_others: ({ labelRect: { x } }) => ({ x: x + 12, moveOverlap: "shiftY" }),
  // The cursor over points [middle, value, begin, end].
  label_of_day: ({ value, seriesData: [point] }) => {
    const [begin, end] = point ? point.value.slice(2) : [value, value];
    return `${instantOf(begin, "minute")} to ${instantOf(end, "minute")}`;
  },
  rounded: shown,
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const charts = new Map();
let zone = localStorage.getItem("zone") === "local" ? "local" : "utc";

function resolved(value) {
  if (Array.isArray(value)) return value.map(resolved);
  if (value === null || typeof value !== "object") return value;
  if ("$fn" in value) return FUNCTIONS[value.$fn];
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolved(each)]));
}

function draw(figure, option) {
  const place = figure.querySelector(".drawing");
  let chart = charts.get(figure);
  if (!chart) {
    figure.classList.add("drawn");
    figure.querySelector("details")?.removeAttribute("open");
    chart = echarts.init(place, null, { renderer: "canvas" });
    chart.group = option.xAxis?.type === "time" ? "day" : "";
    charts.set(figure, chart);
    new ResizeObserver(() => chart.resize()).observe(place);
  }
  chart.setOption({ ...resolved(option), useUTC: zone === "utc" }, { notMerge: true });
}

// The pictures of a page come from the address that it names; those of a report stand in it.
async function drawAll() {
  const figures = [...document.querySelectorAll("figure[data-picture]")];
  if (!figures.length) return;
  const from = document.querySelector("main")?.dataset.pictures;
  let options = {};
  if (from) {
    const address = new URL(from, location.href);
    address.searchParams.set("theme", dark.matches ? "dark" : "light");
    const answer = await fetch(address);
    if (!answer.ok) return;
    options = await answer.json();
  }
  for (const figure of figures) {
    const inline = figure.querySelector("script.option");
    const option = inline ? JSON.parse(inline.textContent) : options[figure.dataset.picture];
    if (option) draw(figure, option);
  }
  echarts.connect("day");
}

const two = (value) => String(value).padStart(2, "0");

function instantOf(instant, as = "instant") {
  const at = new Date(instant);
  const utc = zone === "utc";
  const [year, month, day, hours, minutes, seconds] = utc
    ? [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate(), at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
    : [at.getFullYear(), at.getMonth() + 1, at.getDate(), at.getHours(), at.getMinutes(), at.getSeconds()];
  const clock = `${two(hours)}:${two(minutes)}`;
  if (as === "clock") return clock;
  const ahead = -at.getTimezoneOffset();
  const offset = `UTC${ahead < 0 ? "-" : "+"}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`;
  return `${year}-${two(month)}-${two(day)} ${clock}${as === "minute" ? "" : `:${two(seconds)}`} ${utc ? "UTC" : offset}`;
}

function showTimes() {
  for (const time of document.querySelectorAll("time[data-as]")) {
    time.textContent = instantOf(time.dateTime, time.dataset.as);
  }
  const told = { utc: "Times are in UTC.", local: "Times are local ones, but for those in sentences, which are in UTC." };
  for (const place of document.querySelectorAll("[data-zone]")) place.textContent = told[zone];
}

function chooseZone() {
  const button = document.querySelector("#zone");
  if (!button) return;
  button.hidden = false;
  const name = () => (button.textContent = zone === "utc" ? "Show local time" : "Show UTC");
  button.addEventListener("click", () => {
    zone = zone === "utc" ? "local" : "utc";
    localStorage.setItem("zone", zone);
    name();
    showTimes();
    for (const chart of charts.values()) chart.setOption({ useUTC: zone === "utc" });
  });
  name();
  showTimes();
}

// The parts of a page that change are marked; they are taken from the page as it is now, the rest stays as it is read.
async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = [...document.querySelectorAll("[data-live]")];
  const differ = (what) => page.querySelectorAll(what).length !== document.querySelectorAll(what).length;
  const isAnother = ["[data-live]", "figure[data-picture]"].some(differ);
  if (!answer.ok || isAnother || parts.some(({ id }) => !page.getElementById(id))) {
    location.reload(); // another page now: of a refusal instead of advice, or the other way round
    return;
  }
  for (const part of parts) {
    const now = page.getElementById(part.id);
    if (part.innerHTML !== now.innerHTML) part.innerHTML = now.innerHTML;
  }
  showTimes();
  await drawAll();
}

function follow() {
  const status = document.querySelector("#live");
  const from = document.querySelector("main")?.dataset.events;
  if (!from || !status) return;
  let seen = document.querySelector("main").dataset.decided;
  let running = Promise.resolve();
  const connect = () => {
    const events = new EventSource(from);
    events.addEventListener("open", () => (status.textContent = "Up to date."));
    events.addEventListener("decided", ({ data }) => {
      if (data !== seen) running = running.then(refresh).catch(() => {});
      seen = data;
    });
    events.addEventListener("error", () => {
      status.textContent = "Not connected; trying again.";
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
    });
  };
  connect();
}

// Sliders: each is the power of ten by which one figure is changed; the decision is made again with those that differ.
function askWhatIf() {
  const form = document.querySelector("form[data-what-if]");
  if (!form) return;
  form.hidden = false;
  const answer = form.querySelector("output.answer");
  const sliders = [...form.querySelectorAll("input[type=range]")];
  const valueOf = (slider) => Number(slider.dataset.base) * 10 ** Number(slider.value);
  const show = (slider) => {
    const unit = slider.dataset.unit;
    const text = `${shown(valueOf(slider))} ${unit}`;
    slider.setAttribute("aria-valuetext", text);
    slider.parentElement.querySelector("output").textContent = text;
  };
  let waiting = 0;
  const ask = async () => {
    const changed = sliders.filter((slider) => Number(slider.value) !== 0);
    if (!changed.length) {
      answer.textContent = "";
      return;
    }
    const body = Object.fromEntries(changed.map((slider) => [slider.name, valueOf(slider)]));
    const headers = { "content-type": "application/json" };
    const said = await fetch(form.dataset.whatIf, { method: "POST", headers, body: JSON.stringify(body) });
    const told = await said.json();
    if (!said.ok) {
      answer.textContent = told.detail;
      return;
    }
    const { what_if: other, in_force: now } = told;
    if (other.kind === "Refusal") {
      answer.textContent = `No advice: ${other.reason.sentences.join(" ")}`;
      return;
    }
    const of = (advice) => `${advice.desired_replicas} from ${instantOf(advice.execute_at, "clock")}`;
    const cost = (advice) => `${shown(advice.cost.chosen.total)} ${advice.cost.currency}`;
    answer.textContent = `Replicas: ${of(other)}, instead of ${of(now)}. Cost: ${cost(other)}, instead of ${cost(now)}.`;
  };
  for (const slider of sliders) {
    show(slider);
    slider.addEventListener("input", () => {
      show(slider);
      clearTimeout(waiting);
      waiting = setTimeout(ask, 200);
    });
  }
  form.addEventListener("reset", () => setTimeout(() => (sliders.forEach(show), ask())));
}

chooseZone();
askWhatIf();
follow();
await drawAll();
dark.addEventListener("change", drawAll);
