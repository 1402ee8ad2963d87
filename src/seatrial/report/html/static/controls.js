// The page: findings, filters, panels, details, and the keyboard.

const KEYS = [
  ["j, k", "next, previous finding"], ["← →", "previous, next event: of the finding, or of the chosen object"], ["↑ ↓", "previous, next object"],
  ["/", "filter objects"], ["s", "next step, then all steps"], ["d", "show reads, status updates and no-ops"], ["+ − 0", "zoom in, out, fit"],
  ["Tab", "next engine or control"], ["Esc", "back: filter, event, finding, step"], ["?", "this help"],
];
const NARROW = 820;

const app = {
  state: { finding: -1, event: null, object: -1, panel: null, engine: "", schedule: "", case: "", step: -1, query: "", details: false, zoom: 1, proof: null, related: new Set() },
  panels: [],

  // Changes a part of the state, and shows it.
  set(change) {
    const again = ["engine", "schedule", "case"].some((name) => name in change && change[name] !== app.state[name]);
    const names = Object.keys(change), onlyChosen = names.length && names.every((name) => ["event", "object", "panel"].includes(name));
    Object.assign(app.state, change);
    if (again) showPanels();
    else if (onlyChosen) for (const panel of app.panels) draw(panel, app.state);
    else for (const panel of app.panels) relayout(panel, app);
    showControls();
    showDetails();
    remember();
  },

  selectFinding(number) {
    const finding = FINDINGS[number];
    if (!finding) return app.clearFinding();
    const shown = REHEARSALS[finding.shown], state = app.state;
    state.finding = number;
    Object.assign(state, { event: null, object: -1, proof: shown ? { rehearsal: shown, events: new Set(finding.events) } : null, related: relatedTo(finding, shown) });
    const hidden = shown && state.step >= 0 && !finding.events.some((index) => timeline(shown).byIndex.get(index)?.step === state.step);
    const change = shown ? { engine: state.engine === ALL ? ALL : shown.engine, schedule: shown.schedule, case: shown.case } : {};
    app.set(hidden ? { ...change, step: -1 } : change);
    state.panel = app.panels.find((panel) => panel.rehearsal === shown) || app.panels[0] || null;
    showDetails();
    const first = shown && timeline(shown).byIndex.get(finding.events[0]);
    for (const panel of app.panels) reveal(panel, finding.objects[0], panel.rehearsal === shown ? first : null);
    page.findings.children[number]?.scrollIntoView({ block: "nearest" });
  },

  clearFinding() {
    app.set({ finding: -1, event: null, object: -1, proof: null, related: new Set() });
  },

  selectEvent(panel, event) {
    app.set({ panel, event, object: event.object });
    reveal(panel, event.object, event);
  },

  selectObject(panel, object) {
    app.set({ panel, object, event: null });
    reveal(panel, object, null);
  },

  showTip(mouse, lines) {
    page.tip.replaceChildren(...lines.filter(Boolean).map((text) => element("div", {}, text)));
    page.tip.hidden = false;
    page.tip.style.left = `${Math.max(4, Math.min(mouse.clientX + 14, innerWidth - page.tip.offsetWidth - 8))}px`;
    page.tip.style.top = `${mouse.clientY + 18 + page.tip.offsetHeight > innerHeight ? mouse.clientY - page.tip.offsetHeight - 10 : mouse.clientY + 18}px`;
  },

  hideTip() {
    page.tip.hidden = true;
  },
};

const ALL = "all engines";
const page = {};

function relatedTo(finding, rehearsal) {
  const events = rehearsal ? finding.events.map((index) => timeline(rehearsal).byIndex.get(index)).filter(Boolean) : [];
  return new Set([...finding.objects, ...events.map((event) => event.object), ...finding.needs.flatMap(([user, object]) => [user, object])]);
}

// The rehearsals that the filters choose: one, or one for each engine.
function chosen() {
  const { engine, schedule } = app.state, engines = engine === ALL ? distinct(REHEARSALS.map((one) => one.engine)) : [engine];
  return engines.map((name) => {
    const own = REHEARSALS.filter((one) => one.engine === name);
    const score = (one) => (one.case === app.state.case ? 2 : 0) + (one.schedule === schedule ? 1 : 0);
    return own.reduce((best, one) => (best && score(best) >= score(one) ? best : one), null);
  }).filter(Boolean);
}

function showPanels() {
  app.panels = chosen().map((rehearsal) => makePanel(rehearsal, app));
  app.state.panel = app.panels[0] || null;
  app.state.event = null;
  page.panels.replaceChildren(...app.panels.map((panel) => panel.root));
  page.panels.classList.toggle("several", app.panels.length > 1);
  for (const panel of app.panels) relayout(panel, app);
}

function showDetails() {
  const { finding, event, object, panel, step } = app.state;
  const parts = event ? eventDetails(event, panel, app) : object >= 0 && panel ? objectDetails(object, panel, app) : finding >= 0 ? findingDetails(FINDINGS[finding], panelOf(FINDINGS[finding]), app) : step >= 0 ? stepDetails(step, app.panels) : checkDetails(app.panels);
  const back = event || object >= 0 || finding >= 0 || step >= 0 ? element("button", { class: "back", onclick: goBack, "aria-label": "back" }, "×") : null;
  const root = document.body;
  root.classList.toggle("detailed", Boolean(back));
  page.details.replaceChildren(...[back, ...parts].filter(Boolean));
  page.details.scrollTop = 0;
}

function panelOf(finding) {
  return app.panels.find((panel) => panel.rehearsal === REHEARSALS[finding.shown]) || null;
}

function goBack() {
  if (app.state.query && document.activeElement === page.query) app.set({ query: "" });
  else if (app.state.event || app.state.object >= 0) app.set({ event: null, object: -1 });
  else if (app.state.finding >= 0) app.clearFinding();
  else if (app.state.step >= 0) app.set({ step: -1 });
  else if (app.state.query) app.set({ query: "" });
}

function showControls() {
  const { state } = app;
  [...page.findings.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === state.finding)));
  for (const name of ["engine", "schedule", "case"]) if (page[name]) page[name].value = state[name];
  const steps = app.panels[0] ? app.panels[0].rehearsal.steps : [];
  page.step.replaceChildren(element("option", { value: "-1" }, "all steps"), ...steps.map((step, at) => element("option", { value: String(at) }, `${at + 1} ${step.action}`)));
  page.step.value = String(state.step);
  if (page.query.value !== state.query) page.query.value = state.query;
  page.more.checked = state.details;
  const rows = app.panels[0] ? app.panels[0].layout.rows.filter((row) => row.object >= 0).length : 0;
  page.count.textContent = `${rows} object${rows === 1 ? "" : "s"}`;
}

function findingItem(finding, number) {
  const where = finding.places[0] ? element("span", { class: "place" }, finding.places[0][0]) : null;
  const rating = `${finding.certainty}, ${finding.damage}${finding.removal ? ", on removal" : ""}`;
  return element("li", { role: "option", "aria-selected": "false", class: finding.severity, onclick: () => app.selectFinding(number) },
    element("span", { class: "rating" }, element("span", { class: `severity ${finding.severity}` }, rating), ` ${finding.rule}`), element("span", { class: "headline" }, finding.message), where);
}

function choice(name, options, onchange) {
  return element("select", { "aria-label": name, onchange }, ...options.map((option) => element("option", { value: option }, option)));
}

function legend() {
  const words = { created: "created", recreated: "created again", changed: "changed", deleted: "deleted", deleting: "being deleted", refused: "refused", said: "reports", waiting: "waits" };
  return element("div", { class: "legend" }, ...Object.entries(words).map(([look, word]) => {
    const picture = shape("svg", { viewBox: "-8 -8 16 16", width: 14, height: 14 });
    picture.append(shape("path", { d: MARKS[look], class: `mark ${look}` }));
    return element("span", {}, picture, word);
  }), ...[["life", "exists"], ["life hook", "exists as a hook"], ["missing", "missing in the release"]].map(([look, word]) => {
    const picture = shape("svg", { viewBox: "0 0 22 14", width: 22, height: 14 });
    picture.append(look === "missing" ? shape("path", { d: "M0 7H22", class: look }) : shape("rect", { y: 4, width: 22, height: 6, rx: 3, class: look }));
    return element("span", {}, picture, word);
  }));
}

function build() {
  const engines = distinct(REHEARSALS.map((one) => one.engine)), several = engines.length > 1;
  page.tip = element("div", { class: "tip", role: "tooltip", hidden: true });
  page.findings = element("ol", { class: "findings", role: "listbox", "aria-label": "findings" }, ...FINDINGS.map(findingItem));
  page.engine = several ? choice("engine", [ALL, ...engines], (event) => app.set({ engine: event.target.value })) : null;
  page.schedule = choice("schedule", distinct(REHEARSALS.map((one) => one.schedule)), (event) => app.set({ schedule: event.target.value }));
  page.case = choice("case", distinct(REHEARSALS.map((one) => one.case)), (event) => app.set({ case: event.target.value }));
  page.step = choice("step", [], (event) => app.set({ step: Number(event.target.value) }));
  page.query = element("input", { type: "search", placeholder: "filter objects  /", "aria-label": "filter objects", spellcheck: "false", oninput: (event) => app.set({ query: event.target.value }) });
  page.more = element("input", { type: "checkbox", id: "more", onchange: (event) => app.set({ details: event.target.checked }) });
  page.count = element("span", { class: "count" });
  page.panels = element("div", { class: "panels" });
  page.details = element("aside", { class: "details", "aria-live": "polite", tabindex: "-1" });
  page.help = element("dialog", {}, element("h2", {}, "Keyboard"), element("table", {}, ...KEYS.map(([keys, what]) => element("tr", {}, element("td", {}, element("kbd", {}, keys)), element("td", {}, what)))), element("form", { method: "dialog" }, element("button", {}, "close")));
  const zoom = (by) => element("button", { class: "small", "aria-label": by > 1 ? "zoom in" : "zoom out", onclick: () => zoomed(by) }, by > 1 ? "+" : "−");
  const filters = element("div", { class: "filters" }, page.engine, page.schedule, page.case, page.step, page.query, page.count,
    element("label", { for: "more" }, page.more, " all events"), element("span", { class: "zoom" }, zoom(1 / 1.6), zoom(1.6)), element("button", { class: "small", onclick: () => page.help.showModal() }, "? keys"));
  document.getElementById("report").append(
    element("header", {}, element("h1", {}, "seatrial"), element("span", { class: "closing" }, DATA.closing), DATA.exit ? element("span", { class: DATA.failed ? "exit bad" : "exit good" }, DATA.exit) : null),
    DATA.notices.length ? element("ul", { class: "notices" }, ...DATA.notices.map((text) => element("li", {}, text))) : "",
    element("main", {}, element("nav", {}, element("h2", {}, FINDINGS.length ? `Findings (${FINDINGS.length})` : "No findings"), page.findings),
      element("div", { class: "stage" }, filters, page.panels, legend()), page.details), page.help, page.tip);
  document.title = `seatrial: ${FINDINGS.length || "no"} finding${FINDINGS.length === 1 ? "" : "s"}`;
  return { engines, several };
}

function zoomed(by) {
  const panel = app.state.panel, at = panel && panel.scroll.scrollLeft / Math.max(1, panel.layout.width);
  app.set({ zoom: by ? Math.min(400, Math.max(1, app.state.zoom * by)) : 1 });
  if (panel) panel.scroll.scrollLeft = at * panel.layout.width;
}

// The next or previous event of the finding's proof, or of the chosen object.
function moveEvent(by) {
  const { state } = app, panel = state.panel;
  if (!panel) return;
  const { byIndex, byObject } = timeline(panel.rehearsal), { place } = panel.layout;
  const inProof = state.proof && state.proof.rehearsal === panel.rehearsal && (!state.event ? state.object < 0 : state.proof.events.has(state.event.index));
  const all = inProof ? FINDINGS[state.finding].events.map((index) => byIndex.get(index)) : state.object >= 0 ? byObject.get(state.object) || [] : panel.layout.columns.flatMap((column) => column.events);
  const events = all.filter((event) => event && place.has(event.index)), at = events.indexOf(state.event);
  const next = events[at < 0 ? (by > 0 ? 0 : events.length - 1) : at + by];
  if (next) app.selectEvent(panel, next);
}

function moveObject(by) {
  const { state } = app, panel = state.panel;
  if (!panel) return;
  const rows = panel.layout.rows.filter((row) => row.object >= 0), at = rows.findIndex((row) => row.object === state.object);
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
  if (next) app.selectObject(panel, next.object);
}

function moveStep() {
  const count = app.panels[0] ? app.panels[0].rehearsal.steps.length : 0;
  app.set({ step: app.state.step + 1 < count ? app.state.step + 1 : -1 });
}

const ACTIONS = {
  j: () => app.selectFinding(Math.min(FINDINGS.length - 1, app.state.finding + 1)),
  k: () => app.selectFinding(Math.max(0, app.state.finding - 1)),
  ArrowRight: () => moveEvent(1), ArrowLeft: () => moveEvent(-1), ArrowDown: () => moveObject(1), ArrowUp: () => moveObject(-1),
  "/": () => page.query.focus(), s: moveStep, d: () => app.set({ details: !app.state.details }),
  "+": () => zoomed(1.6), "=": () => zoomed(1.6), "-": () => zoomed(1 / 1.6), 0: () => zoomed(0), "?": () => page.help.showModal(),
};

function pressed(key) {
  if (key.ctrlKey || key.metaKey || key.altKey || page.help.open) return;
  const typing = key.target.matches("input[type=search], select");
  if (key.key === "Escape") {
    goBack();
    if (typing) key.target.blur();
  } else if (key.key === "Enter" && key.target === page.query) {
    key.target.blur();
    moveObject(1);
  } else if (!typing && Object.hasOwn(ACTIONS, key.key)) {
    key.preventDefault();
    ACTIONS[key.key]();
  }
}

// What is shown is in the address, so that a link can point at it.
function remember() {
  const { state } = app, said = new URLSearchParams();
  for (const name of ["engine", "schedule", "case"]) said.set(name, state[name]);
  if (state.finding >= 0) said.set("finding", state.finding + 1);
  if (state.event) said.set("event", state.event.index);
  if (state.step >= 0) said.set("step", state.step + 1);
  if (state.query) said.set("filter", state.query);
  if (state.details) said.set("all", "1");
  history.replaceState(null, "", `#${said}`);
}

function start() {
  const { engines, several } = build(), said = new URLSearchParams(location.hash.slice(1)), first = REHEARSALS[0];
  const known = (name, otherwise) => (REHEARSALS.some((one) => one[name] === said.get(name)) ? said.get(name) : otherwise);
  if (first) {
    const engine = several && (said.get("engine") === ALL || innerWidth >= 1100) ? ALL : engines[0];
    Object.assign(app.state, { engine: known("engine", engine), schedule: known("schedule", first.schedule), case: known("case", first.case), step: Math.min(Number(said.get("step")) || 0, first.steps.length) - 1, query: said.get("filter") || "", details: said.has("all") });
    showPanels();
  }
  const number = Number(said.get("finding") || 0) - 1, event = Number(said.get("event") || -1);
  if (number >= 0) app.selectFinding(number);
  else if (FINDINGS.length && innerWidth >= NARROW && !said.has("schedule")) app.selectFinding(0);
  else app.set({});
  const found = event >= 0 && app.state.panel && timeline(app.state.panel.rehearsal).byIndex.get(event);
  if (found) app.selectEvent(app.state.panel, found);
  addEventListener("keydown", pressed);
  addEventListener("resize", () => app.panels.forEach((panel) => relayout(panel, app)));
}

start();
document.body.dataset.shown = String(Math.round(performance.now()));
