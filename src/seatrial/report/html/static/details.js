// What is chosen, in words: a finding, an event, an object, or the whole check.

function paragraph(text, look) {
  return element("p", { class: look }, text);
}

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

function eventItem(event, panel, app) {
  const look = event === app.state.event ? "event chosen" : "event";
  const words = [
    element("span", { class: `badge ${event.look}` }, event.effect === "said" ? "reports" : event.effect),
    element("span", { class: "number" }, `#${event.index}`),
    element("span", { class: "who" }, `${event.actor.name} ${event.effect === "said" ? "" : event.verb}`),
    element("span", { class: "object" }, OBJECTS[event.object].label),
  ];
  if (event.message) words.push(element("span", { class: "message" }, event.message));
  return element("li", {}, element("button", { class: look, onclick: () => app.selectEvent(panel, event) }, ...words));
}

function eventList(events, panel, app) {
  const parts = [];
  let step = null, list = null;
  for (const event of events) {
    if (event.step !== step) {
      step = event.step;
      list = element("ul", { class: "events" });
      parts.push(element("h4", {}, stepName(panel.rehearsal, step)), list);
    }
    list.append(eventItem(event, panel, app));
  }
  return parts;
}

function copyable(text) {
  const copy = () => navigator.clipboard && navigator.clipboard.writeText(text).then(() => (button.textContent = "copied"));
  const button = element("button", { class: "small", onclick: copy }, "copy");
  return element("div", { class: "code" }, element("code", {}, text), button);
}

function yamlText(text) {
  return element("pre", { class: "yaml" }, text);
}

// Added and removed lines stand out.
function diffBlock(text) {
  return element("pre", { class: "yaml" }, ...text.split("\n").map((line) =>
    element("span", { class: line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "faint" : "" }, `${line}\n`)));
}

// Before and after: a button that shows the same trial with the fixes, and one that leads back.
function afterFix(finding, app) {
  const before = REHEARSALS[finding.shown], after = before && REHEARSALS.find((one) => one.engine === before.engine && one.case === `${before.case}, with the fixes`);
  if (!after) return null;
  const now = app.state.case === after.case;
  return element("button", { class: "small", onclick: () => app.set(now ? { case: before.case, schedule: before.schedule } : { case: after.case, schedule: after.schedule }) }, now ? "show the timeline without the fixes" : "show the timeline with the fixes");
}

function findingDetails(finding, panel, app) {
  const proof = panel ? finding.events.map((index) => timeline(panel.rehearsal).byIndex.get(index)).filter(Boolean) : [];
  const places = finding.places.slice(0, 4).map(([where, line]) => [element("div", { class: "place" }, where), line ? element("code", { class: "line" }, line) : null]);
  const more = finding.places.length - 4;
  const page = DATA.pages[finding.rule];
  return [
    element("p", { class: "rating" }, element("span", { class: `severity ${finding.severity}` }, `${finding.certainty}, ${finding.damage}`), ` ${finding.rule} (${finding.code})`),
    element("h2", {}, finding.message),
    element("div", { class: "parts" }, places.length ? section("Where", ...places.flat(), more > 0 ? paragraph(`and ${more} more`, "faint") : null) : null,
    finding.needs.length ? section("What needs it", needsGraph(finding, app)) : null,
    proof.length ? section("What happens", ...eventList(proof, panel, app)) : null,
    finding.why.length ? section("Why", ...finding.why.map((text) => paragraph(text))) : null,
    finding.fix.length ? section(finding.fixLabel, ...finding.fix.map((text) => paragraph(text)), finding.diff ? diffBlock(finding.diff) : null, afterFix(finding, app)) : null,
    finding.confirm ? section("Confirm", copyable(finding.confirm)) : null),
    paragraph(`Seen with ${finding.engines.join(", ")}; schedules: ${finding.schedules.join(", ") || "all"}${finding.case ? `; case ${finding.case}` : ""}.`, "faint"),
    page ? element("details", {}, element("summary", {}, `about ${finding.rule}`), element("pre", {}, page)) : null,
  ];
}

function eventDetails(event, panel, app) {
  const object = OBJECTS[event.object], cause = timeline(panel.rehearsal).byIndex.get(event.cause);
  const effects = timeline(panel.rehearsal).events.filter((other) => other.cause === event.index).slice(0, 12);
  const changes = event.changes ? event.changes.split("\n") : [];
  return [
    element("p", { class: "rating" }, element("span", { class: `badge ${event.look}` }, event.look === "recreated" ? "created again" : event.effect), ` #${event.index}, ${stepName(panel.rehearsal, event.step)}${event.phase ? `, ${event.phase}` : ""}`),
    element("h2", {}, requestOf(event)),
    event.message ? element("pre", { class: LOUD.includes(event.effect) ? "message loud" : "message" }, event.message) : null,
    event.body && event.effect === "changed" ? section("Diff", diffBlock(event.body)) : null,
    changes.length && !event.body ? section("Changed fields", element("ul", { class: "changes" }, ...changes.map((text) => element("li", {}, element("code", {}, text))))) : null,
    object.place ? section("Source", element("div", { class: "place" }, object.place)) : null,
    event.body && event.effect === "created" ? element("details", {}, element("summary", {}, "the object as YAML"), yamlText(event.body)) : null,
    cause ? section("Because of", ...eventList([cause], panel, app)) : null,
    effects.length ? section("Leads to", ...eventList(effects, panel, app)) : null,
    element("button", { class: "small", onclick: () => app.selectObject(panel, event.object) }, "all events of this object"),
  ];
}

function objectDetails(at, panel, app) {
  const object = OBJECTS[at], events = (timeline(panel.rehearsal).byObject.get(at) || []).filter((event) => event.notable || app.state.details);
  const made = (timeline(panel.rehearsal).byObject.get(at) || []).filter((event) => event.effect === "created" && event.body).pop();
  const about = FINDINGS.map((finding, number) => [finding, number]).filter(([finding]) => finding.objects.includes(at));
  return [
    paragraph("object", "rating"),
    element("h2", {}, object.label),
    object.place ? section("Source", element("div", { class: "place" }, object.place)) : null,
    object.owner >= 0 ? section("Owner", element("button", { class: "link", onclick: () => app.selectObject(panel, object.owner) }, OBJECTS[object.owner].label)) : null,
    about.length ? section("Findings", ...about.map(([finding, number]) => element("button", { class: "link", onclick: () => app.selectFinding(number) }, finding.message))) : null,
    made ? element("details", {}, element("summary", {}, `as YAML, created in ${stepName(panel.rehearsal, made.step)}`), yamlText(made.body)) : null,
    section(`Events (${events.length})`, ...eventList(events.slice(0, 200), panel, app)),
  ];
}

function stepDetails(number, panels) {
  return panels.filter(({ rehearsal }) => rehearsal.steps[number]).flatMap(({ rehearsal }) => {
    const step = rehearsal.steps[number], named = (title, objects) => (objects.length ? section(title, element("ul", {}, ...objects.slice(0, 40).map((at) => element("li", {}, OBJECTS[at].label)))) : null);
    return [
      element("p", { class: "rating" }, element("span", { class: step.outcome === "ok" ? "good" : "bad" }, step.outcome), ` ${rehearsal.engine}${step.release ? `, ${step.release}` : ""} in ${step.namespace}`),
      element("h2", {}, stepName(rehearsal, number)),
      paragraph(amounts(step), "faint"),
      step.error ? element("pre", { class: "message loud" }, step.error) : null,
      ...step.warnings.concat(step.operations).map((text) => element("pre", { class: "message" }, text)),
      step.unreached.length ? section("Never reached", element("ul", {}, ...step.unreached.map(([object, phase]) => element("li", {}, `${phase}: ${OBJECTS[object].label}`)))) : null,
      named("Missing", step.missing), named("Recreated", step.recreated), named("Left behind", step.orphans),
    ];
  });
}

function checkDetails(panels) {
  const parts = [element("h2", {}, DATA.findings.length ? "Choose a finding, an event or an object" : "No findings")];
  for (const { rehearsal } of panels) {
    const rows = rehearsal.steps.map((step, at) => element("tr", {}, element("td", {}, String(at + 1)), element("td", {}, `${step.action} ${step.source}`),
      element("td", { class: step.outcome === "ok" ? "good" : "bad" }, step.outcome), element("td", {}, amounts(step)), element("td", { class: "message" }, [step.error, ...step.warnings, ...step.operations].filter(Boolean).join("\n"))));
    parts.push(section(`${rehearsal.engine}, ${rehearsal.schedule} schedule, ${rehearsal.case}`, element("div", { class: "wide" }, element("table", {}, ...rows))));
  }
  if (DATA.standings.length) parts.push(section("Engines", element("div", { class: "wide" }, element("table", {}, ...DATA.standings.map(([engine, endings, stop]) =>
    element("tr", {}, element("td", {}, engine), ...endings.map((verdict) => element("td", { class: verdict.startsWith("ok") ? "good" : "bad" }, verdict)), element("td", {}, stop)))))));
  if (DATA.prerequisites.length) parts.push(section(`Prerequisites (${DATA.prerequisites.length})`, element("ul", {}, ...DATA.prerequisites.slice(0, 50).map(([object, why]) => element("li", {}, element("b", {}, object), `: ${why}`)))));
  if (DATA.mended.length) parts.push(section("With the fixes", element("ul", {}, ...DATA.mended.map(([message, what]) => element("li", {}, element("b", { class: what === "gone" ? "good" : "bad" }, what), ` ${message}`)))));
  if (DATA.comparison) parts.push(section(`${DATA.comparison.old} compared with ${DATA.comparison.now}`, element("ul", {}, ...DATA.comparison.changes.map(([what, rule, objects]) =>
    element("li", {}, element("b", { class: what === "new" ? "bad" : what === "gone" ? "good" : "" }, what), ` ${rule}: ${objects}`)))));
  if (DATA.ignored.length) parts.push(section("Ignored findings", element("ul", {}, ...DATA.ignored.map(([message, reason]) => element("li", {}, element("b", {}, message), `: ${reason}`)))));
  if (DATA.notes.length) parts.push(section("Assumed", element("ul", {}, ...DATA.notes.map((note) => element("li", {}, note)))));
  return parts;
}

function amounts(step) {
  const counts = [[step.created, "created"], [step.deleted, "deleted"], [step.recreated.length, "recreated"], [step.missing.length, "missing"], [step.orphans.length, "left behind"]];
  return [...counts.filter(([count]) => count).map(([count, word]) => `${count} ${word}`), ...(step.again ? [`${step.again} on retry`] : [])].join(", ");
}

// Users on the left, what they need on the right; a need that is not met is lit.
function needsGraph(finding, app) {
  const needed = distinct(finding.needs.map(([, object]) => object));
  const users = distinct([...finding.needs].sort((one, other) => needed.indexOf(one[1]) - needed.indexOf(other[1])).map(([user]) => user));
  const width = 560, node = 220, height = Math.max(users.length, needed.length) * 40 + 4;
  const drawing = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "needs", role: "img", "aria-label": "what needs the objects of this finding" });
  const centre = (list, at) => (height * (at + 0.5)) / list.length;
  for (const [user, object, why, broken] of finding.needs) {
    const y1 = centre(users, users.indexOf(user)), y2 = centre(needed, needed.indexOf(object));
    drawing.append(shape("path", { d: `M${node} ${y1}C${width / 2} ${y1} ${width / 2} ${y2} ${width - node - 6} ${y2}`, class: broken ? "need broken" : "need" }),
      shape("path", { d: `M${width - node} ${y2}l-8-4v8z`, class: broken ? "tip broken" : "tip" }));
    if (!broken && why !== "field") drawing.append(shape("text", { x: width / 2, y: (y1 + y2) / 2 - 6, class: "why" }, why));
  }
  const gone = new Set(finding.needs.filter(([, , , broken]) => broken).map(([, object]) => object));
  const box = (object, x, y) => {
    const own = finding.objects.includes(object), group = shape("g", { class: own ? "node own" : "node" });
    group.append(shape("rect", { x, y: y - 16, width: node, height: 32, rx: 5 }), shape("text", { x: x + 8, y: y - 3, class: "kind" }, OBJECTS[object].kind),
      shape("text", { x: x + 8, y: y + 10 }, middleless(OBJECTS[object].namespace ? `${OBJECTS[object].namespace}/${OBJECTS[object].name}` : OBJECTS[object].name, 30)), shape("title", {}, OBJECTS[object].label));
    if (gone.has(object) && x > 0) group.append(shape("text", { x: x + node - 8, y: y - 3, class: "gone" }, "missing"));
    group.addEventListener("click", () => app.selectObject(app.state.panel || app.panels[0], object));
    return group;
  };
  users.forEach((object, at) => drawing.append(box(object, 0, centre(users, at))));
  needed.forEach((object, at) => drawing.append(box(object, width - node, centre(needed, at))));
  return drawing;
}
