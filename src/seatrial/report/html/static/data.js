"use strict";
// The data of the report, decoded. Knows nothing of the page.

const DATA = JSON.parse(document.getElementById("data").textContent);
const FINDINGS = DATA.findings;
const REHEARSALS = DATA.rehearsals;
const ACTORS = DATA.actors.map(([name, lane]) => ({ name, lane }));
const OBJECTS = DATA.objects.map(([kind, namespace, name, owner, place, record], at) => ({
  at, kind, namespace, name, owner, place, record: record === 1,
  label: namespace ? `${kind}/${namespace}/${name}` : `${kind}/${name}`,
}));

const LOUD = ["refused", "said", "waiting"];
const QUIET = ["said", "waiting", "read"];
const HOOKS = /hook|PreSync|PostSync|SyncFail/;

// The events of a rehearsal in order, and of each object. Decoded when the rehearsal is first shown.
function timeline(rehearsal) {
  if (!rehearsal.decoded) {
    const events = rehearsal.events.map(decoded);
    const byIndex = new Map(events.map((event) => [event.index, event]));
    const byObject = new Map();
    for (const event of events) {
      if (!byObject.has(event.object)) byObject.set(event.object, []);
      byObject.get(event.object).push(event);
    }
    for (const own of byObject.values()) markRecreated(own);
    rehearsal.decoded = { events, byIndex, byObject };
  }
  return rehearsal.decoded;
}

function decoded(row) {
  const text = (at) => DATA.strings[row[at] || 0];
  return {
    index: row[0], step: row[1] || 0, actor: ACTORS[row[2] || 0], verb: text(3), object: row[4] || 0, effect: text(5),
    notable: row[6] === 1, message: text(7), cause: (row[8] || 0) - 1, phase: text(9), changes: text(10), body: text(11),
    look: text(5),
  };
}

// An object that is created in the step that deleted it looks different from a new one.
function markRecreated(events) {
  let goneIn = null;
  for (const event of events) {
    if (event.effect === "deleted") goneIn = event.step;
    if (event.effect === "created") {
      if (goneIn === event.step) event.look = "recreated";
      goneIn = null;
    }
    if (event.effect === "refused" && event.verb === "delete" && /not found/.test(event.message)) event.look = "unchanged";
  }
}

// When an object is there: from its creation (null: before all events) to its deletion (null: it stays).
function lives(events) {
  const found = [];
  let life = null, known = false;
  for (const event of events) {
    const there = ["changed", "unchanged", "deleting", "deleted", "read"].includes(event.effect);
    if (event.effect === "created") found.push((life = { from: event, to: null, hook: HOOKS.test(event.phase) }));
    else if (!known && there) found.push((life = { from: null, to: null, hook: false }));
    if (event.effect === "deleted" && life) {
      life.to = event;
      life = null;
    }
    known = known || there || event.effect === "created";
  }
  return found;
}

function requestOf(event) {
  if (event.effect === "said") return `${event.actor.name} reports about ${OBJECTS[event.object].label}`;
  return `${event.actor.name} ${event.verb} ${OBJECTS[event.object].label}`;
}

function stepName(rehearsal, number) {
  const step = rehearsal.steps[number];
  if (!step) return "before the first step";
  return `step ${number + 1}, ${step.action}${step.source ? ` ${step.source}` : ""}`;
}

function distinct(values) {
  return [...new Set(values)];
}

// An element. Text is only ever set as text; the policy of the page refuses markup.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";
function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const name in attributes) if (attributes[name] !== undefined) made.setAttribute(name, attributes[name]);
  if (text !== undefined) made.textContent = text;
  return made;
}

function shortened(text, room) {
  return text.length <= room ? text : room < 2 ? "" : `${text.slice(0, room - 1)}…`;
}

// Names in a list begin alike and differ at their ends: the middle is left out.
function middleless(text, room) {
  if (text.length <= room || room < 6) return shortened(text, room);
  const end = Math.floor((room - 1) / 2);
  return `${text.slice(0, room - 1 - end)}…${text.slice(-end)}`;
}
