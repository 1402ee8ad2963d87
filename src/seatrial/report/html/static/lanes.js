// One panel: the swim-lanes of one rehearsal. Only what is visible is drawn, again on every scroll.

const MARKS = {
  created: "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z",
  recreated: "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5ZM0-8A8 8 0 1 0 0 8A8 8 0 1 0 0-8ZM0-6.6A6.6 6.6 0 1 1 0 6.6A6.6 6.6 0 1 1 0-6.6Z",
  changed: "M-3.5-3.5H3.5V3.5H-3.5Z",
  unchanged: "M0-2A2 2 0 1 1 0 2A2 2 0 1 1 0-2Z",
  read: "M-.8-4H.8V4H-.8Z",
  deleted: "M-6-4L-4-6L0-2L4-6L6-4L2 0L6 4L4 6L0 2L-4 6L-6 4L-2 0Z",
  deleting: "M0-6L6 0L0 6L-6 0ZM0-3.4L-3.4 0L0 3.4L3.4 0Z",
  refused: "M-6.5 5.5L0-6.5L6.5 5.5Z",
  said: "M-6-5H6V3H1L-3 6.5V3H-6Z",
  waiting: "M-5-6H5L1 0L5 6H-5L-1 0Z",
};
const CHAR = 7.3;
const SHORT = {
  ConfigMap: "cm", CronJob: "cj", CustomResourceDefinition: "crd", DaemonSet: "ds", Deployment: "deploy", Endpoints: "ep", EndpointSlice: "eps", Ingress: "ing",
  Job: "job", Namespace: "ns", PersistentVolume: "pv", PersistentVolumeClaim: "pvc", Pod: "pod", ReplicaSet: "rs", Secret: "sec", Service: "svc", ServiceAccount: "sa", StatefulSet: "sts",
};

function shortKind(kind) {
  return SHORT[kind] || (kind.length < 6 ? kind : kind.replace(/[^A-Z]/g, "")).toLowerCase();
}

function makePanel(rehearsal, app) {
  const size = element("div", { class: "size" });
  const layer = shape("svg", { class: "layer", role: "img" });
  const scroll = element("div", { class: "scroll", tabindex: "0" }, size, layer);
  const title = element("h2", {}, element("b", {}, rehearsal.engine), ` ${rehearsal.schedule} schedule, ${rehearsal.case}`);
  const root = element("section", { class: "panel", "aria-label": `timeline of ${rehearsal.engine}` }, title, scroll);
  const panel = { rehearsal, root, scroll, size, layer, layout: null, drawn: 0 };
  scroll.addEventListener("focus", () => { if (app.state.panel !== panel) Object.assign(app.state, { panel, event: null }); });
  scroll.addEventListener("scroll", () => later(panel, app));
  layer.addEventListener("click", (click) => clicked(click, panel, app));
  layer.addEventListener("mousemove", (move) => hovered(move, panel, app));
  layer.addEventListener("mouseleave", app.hideTip);
  return panel;
}

function later(panel, app) {
  if (!panel.drawn) panel.drawn = requestAnimationFrame(() => { panel.drawn = 0; draw(panel, app.state); });
}

function relayout(panel, app) {
  const width = panel.scroll.clientWidth, layout = layOut(panel.rehearsal, app.state, width);
  panel.layout = layout;
  panel.size.style.width = `${layout.labels + layout.width}px`;
  panel.size.style.height = `${layout.head + layout.height}px`;
  panel.layer.setAttribute("aria-label", `${layout.rows.length} rows over ${panel.rehearsal.steps.length} steps`);
  draw(panel, app.state);
}

function draw(panel, state) {
  const { layout, scroll, layer } = panel, { labels, head } = layout;
  const width = scroll.clientWidth, height = scroll.clientHeight, left = scroll.scrollLeft, top = scroll.scrollTop;
  layer.setAttribute("width", width);
  layer.setAttribute("height", height);
  const from = Math.max(0, Math.floor(top / ROW)), to = Math.min(layout.rows.length, Math.ceil((top + height - head) / ROW) + 1);
  const body = shape("svg", { x: labels, y: head, width: Math.max(0, width - labels), height: Math.max(0, height - head) });
  const names = shape("svg", { x: 0, y: head, width: labels, height: Math.max(0, height - head) });
  const header = shape("svg", { x: labels, y: 0, width: Math.max(0, width - labels), height: head });
  for (const column of layout.columns) drawColumn(column, panel, body, header, left, height);
  for (let at = from; at < to; at++) drawRow(layout.rows[at], at * ROW - top, panel, state, body, names, left, width);
  drawLanes(panel, state, header, left, width);
  const corner = layout.lanes.map(([lane, word], at) =>
    shape("text", { x: 10, y: STEP_HEAD + layout.phase + at * LANE + 13, class: "lane" }, lane === "engine" ? panel.rehearsal.engine : word));
  if (layout.phase) corner.push(shape("text", { x: 10, y: STEP_HEAD + 12, class: "lane" }, "phase"));
  const lines = [shape("path", { class: "rule", d: `M0 ${head - 0.5}H${width}M${labels - 0.5} 0V${height}` })];
  layer.replaceChildren(body, names, header, ...corner, ...lines);
}

function drawColumn(column, panel, body, header, left, height) {
  const step = panel.rehearsal.steps[column.number], x = column.x - left;
  if (x > 6000 || x + column.width < 0) return;
  const tint = step.outcome !== "ok" ? "bad" : column.number % 2 ? "odd" : "even";
  body.append(shape("rect", { x, y: 0, width: column.width, height, class: `column ${tint}` }));
  header.append(shape("rect", { x, y: 0, width: column.width, height: panel.layout.head, class: `column ${tint}` }));
  if (column.x > 0) for (const part of [body, header]) part.append(shape("path", { class: "rule", d: `M${x} 0V${height}` }));
  const room = Math.floor((column.width - 12) / CHAR);
  const title = shape("text", { x: Math.max(x, 0) + 8, y: 16, class: "step", "data-step": column.number }, shortened(`${column.number + 1} ${step.action}`, room));
  const amiss = step.missing.length ? `${step.missing.length} missing` : step.orphans.length ? `${step.orphans.length} left behind` : "";
  const ended = step.outcome === "ok" ? (amiss && room < 16 ? amiss : amiss ? `ok, ${amiss}` : "ok") : step.outcome;
  header.append(title, shape("text", { x: Math.max(x, 0) + 8, y: 32, class: `ended ${step.outcome} ${amiss ? "amiss" : ""}`, "data-step": column.number }, shortened(ended, room)));
}

function drawRow(row, y, panel, state, body, names, left, width) {
  const layout = panel.layout, middle = y + ROW / 2;
  if (row.heading) {
    names.append(shape("text", { x: 10, y: y + 17, class: "heading" }, row.heading));
    body.append(shape("path", { class: "rule", d: `M0 ${y + ROW - 0.5}H${width}` }));
    return;
  }
  const object = OBJECTS[row.object], chosen = state.object === row.object;
  if (row.related || chosen) {
    const look = chosen ? "chosen" : "related";
    body.append(shape("rect", { x: 0, y, width, height: ROW, class: `row ${look}` }));
    names.append(shape("rect", { x: 0, y, width: layout.labels, height: ROW, class: `row ${look}` }));
  }
  const indent = 10 + Math.min(row.depth, 3) * (layout.labels < 160 ? 6 : 12), room = Math.floor((layout.labels - indent - 4) / CHAR);
  const named = object.namespace && object.namespace !== layout.namespace ? `${object.namespace}/${object.name}` : object.name;
  const kind = layout.labels < 200 || object.kind.length + 1 + named.length > room ? shortKind(object.kind) : object.kind;
  const label = shape("text", { x: indent, y: y + 16, class: row.depth ? "name owned" : "name", "data-object": row.object });
  if (kind) label.append(shape("tspan", { class: "kind" }, `${kind} `));
  label.append(document.createTextNode(middleless(named, room - (kind ? kind.length + 1 : 0))));
  names.append(label);
  drawLives(row, middle, panel, body, left);
  drawMarks(row, middle, panel, state, body, left, width);
}

// A bar while the object exists, a dashed red one while the release lacks it, and words where a sync did not get to it.
function drawLives(row, y, panel, body, left) {
  const { place, columns, width } = panel.layout, own = timeline(panel.rehearsal).byObject.get(row.object) || [];
  const edge = (event, otherwise) => (event && place.has(event.index) ? place.get(event.index) : otherwise(event)) - left;
  const before = (event) => (event && columns.length && event.step > columns[columns.length - 1].number ? width : 0);
  const after = (event) => (event && columns.length && event.step < columns[0].number ? 0 : width);
  for (const life of lives(own)) {
    const from = edge(life.from, before), to = edge(life.to, after);
    if (to > from) body.append(shape("rect", { x: from, y: y - 3, width: to - from, height: 6, rx: 3, class: life.hook ? "life hook" : "life" }));
  }
  for (const column of columns) {
    const unreached = panel.rehearsal.steps[column.number].unreached.find(([object]) => object === row.object);
    if (unreached) body.append(shape("text", { x: Math.max(column.x - left, 0) + 8, y: y + 4, class: "unreached" }, shortened(`never reached: ${unreached[1]}`, Math.floor((column.width - 12) / 6.2))));
    if (!panel.rehearsal.steps[column.number].missing.includes(row.object)) continue;
    const last = own.filter((event) => event.step === column.number && place.has(event.index)).pop();
    const from = (last ? place.get(last.index) + 7 : column.x) - left, to = column.x + column.width - left;
    body.append(shape("path", { class: "missing", d: `M${from} ${y}H${to}` }));
    if (to - from > 60) body.append(shape("text", { x: (from + to) / 2, y: y - 3, class: "absent" }, "missing"));
  }
}

function drawMarks(row, y, panel, state, body, left, width) {
  const { place } = panel.layout, drawn = new Map();
  for (const event of timeline(panel.rehearsal).byObject.get(row.object) || []) {
    const x = place.get(event.index);
    if (x === undefined || x < left - 10 || x > left + width) continue;
    const at = Math.round(x / 2), other = drawn.get(at);
    if (!other || RANK[event.look] <= RANK[other.look]) drawn.set(at, event);
  }
  for (const event of drawn.values()) {
    const evidence = isEvidence(panel.rehearsal, event, state), chosen = state.event === event && state.panel === panel;
    const x = place.get(event.index) - left;
    if (evidence || chosen) body.append(shape("circle", { cx: x, cy: y, r: 10.5, class: chosen ? "halo chosen" : "halo" }));
    const quiet = event.actor.lane !== "engine" && !LOUD.includes(event.effect) ? " quiet" : "";
    body.append(shape("path", { d: MARKS[event.look], transform: `translate(${x} ${y})${quiet ? " scale(.75)" : ""}`, class: `mark ${event.look}${quiet}`, "data-event": event.index }));
  }
}

function drawLanes(panel, state, header, left, width) {
  const layout = panel.layout;
  layout.columns.forEach((column, number) => {
    const slot = (column.width - 2 * STEP_PAD) / Math.max(1, column.events.length);
    for (const band of layout.phases[number]) {
      const x = column.x + STEP_PAD + band.from * slot - left, w = Math.max(3, (band.to - band.from + 1) * slot - 1);
      if (x > width || x + w < 0) continue;
      const look = !band.phase ? "regular" : HOOKS.test(band.phase) ? "hooks" : "wave";
      const text = band.phase || "resources";
      const rect = shape("rect", { x, y: STEP_HEAD, width: w, height: PHASE - 3, rx: 3, class: `phase ${look}` });
      rect.append(shape("title", {}, text));
      header.append(rect);
      if (w > 34) header.append(shape("text", { x: x + 4, y: STEP_HEAD + 10.5, class: "phase-name" }, shortened(text, Math.floor((w - 6) / 5.4))));
    }
  });
  for (const { event, lane, x: at } of layout.ticks) {
    const x = at - left;
    if (x < -5 || x > width) continue;
    const y = STEP_HEAD + layout.phase + lane * LANE, evidence = isEvidence(panel.rehearsal, event, state);
    const tall = evidence || state.event === event;
    header.append(shape("rect", { x: x - (tall ? 2.5 : 1.5), y: y + (tall ? 2 : 4), width: tall ? 5 : 3, height: tall ? 14 : 10, rx: 1.5, class: `mark ${event.look}${evidence ? " evidence" : ""}`, "data-event": event.index }));
  }
}

function eventAt(target, panel) {
  const index = target.getAttribute && target.getAttribute("data-event");
  return index === null || index === undefined ? null : timeline(panel.rehearsal).byIndex.get(Number(index));
}

function clicked(click, panel, app) {
  const event = eventAt(click.target, panel), step = click.target.getAttribute("data-step");
  if (event) app.selectEvent(panel, event);
  else if (step !== null) app.set({ step: app.state.step === Number(step) ? -1 : Number(step) });
  else {
    const row = rowAt(click, panel);
    if (row && row.object >= 0) app.selectObject(panel, row.object);
  }
}

function rowAt(mouse, panel) {
  const y = mouse.clientY - panel.layer.getBoundingClientRect().top - panel.layout.head + panel.scroll.scrollTop;
  return mouse.clientY - panel.layer.getBoundingClientRect().top < panel.layout.head ? null : panel.layout.rows[Math.floor(y / ROW)];
}

function hovered(move, panel, app) {
  const event = eventAt(move.target, panel), step = move.target.getAttribute("data-step");
  const object = move.target.getAttribute("data-object");
  if (event) app.showTip(move, [`${requestOf(event)}`, `#${event.index} ${event.look === "recreated" ? "created again" : event.effect}${event.phase ? `, ${event.phase}` : ""}`, shortened(event.message, 400)]);
  else if (object !== null) app.showTip(move, [OBJECTS[object].label, OBJECTS[object].place]);
  else if (step !== null) app.showTip(move, [stepName(panel.rehearsal, Number(step)), panel.rehearsal.steps[step].outcome, shortened(panel.rehearsal.steps[step].error, 400)]);
  else app.hideTip();
}

// Scrolls so that an object, and an event of it, can be seen.
function reveal(panel, object, event) {
  const layout = panel.layout, at = layout.rows.findIndex((row) => row.object === object), scroll = panel.scroll;
  if (at >= 0) {
    const y = at * ROW, room = scroll.clientHeight - layout.head;
    if (y < scroll.scrollTop) scroll.scrollTop = Math.max(0, y - ROW);
    else if (y + 2 * ROW > scroll.scrollTop + room) scroll.scrollTop = y + 2 * ROW - room;
  }
  const x = event && layout.place.get(event.index), room = scroll.clientWidth - layout.labels;
  if (x !== undefined && x !== null && (x < scroll.scrollLeft + 20 || x > scroll.scrollLeft + room - 30)) scroll.scrollLeft = Math.max(0, x - room / 3);
}
