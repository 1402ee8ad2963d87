// Which rows a panel has, and where each event is. Draws nothing.

const ROW = 24, LANE = 18, STEP_HEAD = 40, PHASE = 17, STEP_MIN = 92, SLOT_MAX = 26, STEP_PAD = 8;
const LANES = [["engine", "engine"], ["others", "others"], ["kubelet", "kubelet"], ["controllers", "controllers"]];

const RANK = Object.fromEntries(["refused", "deleted", "said", "waiting", "deleting", "recreated", "created", "changed", "unchanged", "read"].map((look, at) => [look, at]));

// The events that are shown, by step.
function shownEvents(rehearsal, state) {
  const steps = rehearsal.steps.map(() => []);
  for (const event of timeline(rehearsal).events) {
    if (event.step < 0 || (state.step >= 0 && event.step !== state.step)) continue;
    if (event.notable || state.details || isEvidence(rehearsal, event, state)) steps[event.step].push(event);
  }
  return steps;
}

function isEvidence(rehearsal, event, state) {
  return state.proof && state.proof.rehearsal === rehearsal && state.proof.events.has(event.index);
}

function layOut(rehearsal, state, width) {
  const steps = shownEvents(rehearsal, state);
  const shown = steps.map((events, number) => ({ events, number })).filter(({ number }) => state.step < 0 || number === state.step);
  const labels = Math.round(Math.min(300, Math.max(118, width * 0.27)));
  const room = Math.max(120, width - labels - 4);
  const slots = shown.reduce((sum, { events }) => sum + events.length, 0) || 1;
  const fitting = Math.min(SLOT_MAX, Math.max(0.02, (room - shown.length * 2 * STEP_PAD) / slots));
  const columns = stretched(shown, fitting * state.zoom, room);
  const place = new Map();
  for (const column of columns) {
    const slot = (column.width - 2 * STEP_PAD) / Math.max(1, column.events.length);
    column.events.forEach((event, at) => place.set(event.index, column.x + STEP_PAD + (at + 0.5) * slot));
  }
  const rows = rowsOf(rehearsal, state, steps);
  const used = new Set(timeline(rehearsal).events.filter((event) => event.step >= 0).map((event) => event.actor.lane));
  const lanes = LANES.filter(([lane]) => used.has(lane));
  const phases = columns.map(phasesIn);
  const phase = phases.some((found) => found.length) ? PHASE : 0;
  const last = columns[columns.length - 1];
  const namespace = rehearsal.steps[0] ? rehearsal.steps[0].namespace : "";
  return {
    namespace, ticks: ticksOf(rehearsal, state, columns, place, lanes), columns, place, rows, lanes, phases, labels, phase, width: last ? last.x + last.width : room,
    head: STEP_HEAD + phase + lanes.length * LANE + 6, height: rows.length * ROW + 8,
  };
}

// One mark for each three pixels of a lane of actors: evidence before others, then the most important one.
function ticksOf(rehearsal, state, columns, place, lanes) {
  const best = lanes.map(() => new Map()), numbers = Object.fromEntries(lanes.map(([lane], at) => [lane, at]));
  for (const column of columns) {
    for (const event of column.events) {
      const lane = numbers[event.actor.lane], x = place.get(event.index), at = Math.round(x / 3), other = best[lane].get(at);
      const rank = RANK[event.look] - (isEvidence(rehearsal, event, state) ? 100 : 0);
      if (!other || rank < other.rank) best[lane].set(at, { event, lane, x, rank });
    }
  }
  return best.flatMap((found) => [...found.values()]);
}

// Each step gets room for its events; what is left after short ones got their minimum is shared by the others.
function stretched(shown, slot, room) {
  let x = 0;
  const wanted = shown.map(({ events }) => Math.max(STEP_MIN, events.length * slot + 2 * STEP_PAD));
  const total = wanted.reduce((sum, one) => sum + one, 0);
  const large = wanted.reduce((sum, one) => sum + Math.max(0, one - STEP_MIN), 0);
  const excess = slot > 0 && total > room && large > 0 ? Math.min(1, (total - room) / large) : 0;
  const zoomed = slot * shown.reduce((sum, { events }) => sum + events.length, 0) > room * 1.2;
  return shown.map((one, at) => {
    const shrunk = zoomed ? wanted[at] : wanted[at] - Math.max(0, wanted[at] - STEP_MIN) * excess;
    const width = total < room ? shrunk + (room - total) / shown.length : shrunk;
    const column = { ...one, x, width };
    x += width;
    return column;
  });
}

// Neighbouring events of the engine in one phase are one band.
function phasesIn(column) {
  const bands = [];
  column.events.forEach((event, at) => {
    if (event.actor.lane !== "engine" || OBJECTS[event.object].record || (!event.phase && QUIET.includes(event.effect))) return;
    const last = bands[bands.length - 1];
    if (last && last.phase === event.phase) last.to = at;
    else bands.push({ phase: event.phase, from: at, to: at });
  });
  return bands.some((band) => band.phase) ? bands : [];
}

// Objects in the order in which the engine first writes them, each followed by what it owns.
function rowsOf(rehearsal, state, steps) {
  const order = new Map();
  for (const events of steps) for (const event of events) if (!order.has(event.object)) order.set(event.object, order.size);
  rehearsal.steps.forEach((step, number) => {
    if (state.step >= 0 && number !== state.step) return;
    for (const [object] of step.unreached) if (!order.has(object)) order.set(object, order.size);
  });
  const children = new Map(), roots = [];
  for (const object of order.keys()) {
    const owner = OBJECTS[object].owner;
    if (owner >= 0 && order.has(owner) && owner !== object) {
      if (!children.has(owner)) children.set(owner, []);
      children.get(owner).push(object);
    } else roots.push(object);
  }
  const tree = [], seen = new Set();
  const add = (object, depth) => {
    if (seen.has(object)) return;
    seen.add(object);
    tree.push({ object, depth });
    for (const child of children.get(object) || []) add(child, depth + 1);
  };
  for (const object of roots) add(object, 0);
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = tree.filter(({ object }) => words.every((word) => OBJECTS[object].label.toLowerCase().includes(word)));
  return grouped(matching, state);
}

function grouped(rows, state) {
  const related = state.related;
  const first = rows.filter((row) => related.has(row.object));
  const records = rows.filter((row) => !related.has(row.object) && OBJECTS[row.object].record);
  const rest = rows.filter((row) => !related.has(row.object) && !OBJECTS[row.object].record);
  const heading = (text) => ({ heading: text, object: -1, depth: 0 });
  const found = [];
  if (first.length) found.push(heading("in this finding"), ...first.map((row) => ({ ...row, related: true })));
  if (rest.length) found.push(...(first.length ? [heading(`others (${rest.length})`)] : []), ...rest);
  if (records.length) found.push(heading("release records"), ...records);
  return found;
}
