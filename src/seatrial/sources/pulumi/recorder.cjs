// Runs inside the node of a Pulumi program, which then registers with us instead of the engine.
//
// Started by path, with the `@pulumi/pulumi` of the program. Every request is a line of JSON on one pipe; the answer is
// a line on another. The messages are those of recorder.py.

"use strict";

const fs = require("fs");
const Module = require("module");
const { pathToFileURL } = require("url");
const { inspect } = require("util");
const guard = require("./guard.cjs");

const ROOT = "pulumi:pulumi:Stack";
const TOLD_THE_USER = 32; // The exit code of the SDK's own runner after it has printed the error.
const [reads, writes] = process.argv.slice(2, 4).map(Number);
const buffer = Buffer.alloc(1 << 16);
let rest = "";

function receive() {
    while (!rest.includes("\n")) {
        const count = fs.readSync(reads, buffer);
        if (count === 0) throw new Error("the connection to seatrial was closed");
        rest += buffer.toString("latin1", 0, count);
    }
    const end = rest.indexOf("\n");
    const line = Buffer.from(rest.slice(0, end), "latin1").toString("utf8");
    rest = rest.slice(end + 1);
    return JSON.parse(line);
}

function say(message) {
    let left = Buffer.from(JSON.stringify(message) + "\n");
    while (left.length) left = left.subarray(fs.writeSync(writes, left));
}

function ask(message) {
    say(message);
    const answer = receive();
    if (answer.error) throw new Error(answer.error);
    return answer;
}

// Calls run one after another, and only when the program has nothing else to do, so that the order is deterministic.
// Provider functions come last: rendering a chart takes longer than registering a resource.
const registrations = [];
const invocations = [];
let turning = false;

function inTurn(queue, call, callback) {
    queue.push(() => {
        let answer;
        try {
            answer = call();
        } catch (wrong) {
            return callback(wrong, undefined);
        }
        callback(null, answer);
    });
    if (!turning) setImmediate(turn);
    turning = true;
}

function turn() {
    const next = registrations.shift() ?? invocations.shift();
    turning = next !== undefined;
    if (!turning) return;
    next();
    setImmediate(() => setImmediate(turn));
}

function listen(pulumi, heard) {
    const { Struct } = pulumi.require("google-protobuf/google/protobuf/struct_pb");
    const { Empty } = pulumi.require("google-protobuf/google/protobuf/empty_pb");
    const resources = pulumi.require("@pulumi/pulumi/proto/resource_pb");
    const { InvokeResponse } = pulumi.require("@pulumi/pulumi/proto/provider_pb");
    const monitor = pulumi.require("@pulumi/pulumi/runtime/settings").getMonitor();

    monitor.registerResource = (req, callback) =>
        inTurn(registrations, () => {
            const response = new resources.RegisterResourceResponse();
            if (req.getType() === ROOT) {
                response.setUrn(`urn:pulumi:${pulumi.stack}::${pulumi.project}::${ROOT}::${req.getName()}`);
                return response;
            }
            const answer = ask({ do: "register", ...described(req, heard), inputs: inputs(req.getObject()) });
            response.setUrn(answer.urn);
            response.setId(answer.id);
            response.setObject(Struct.fromJavaScript(answer.state));
            return response;
        }, callback);
    monitor.readResource = (req, callback) =>
        inTurn(registrations, () => {
            const read = { ...named(req, heard), dependencies: [...req.getDependenciesList()].sort(), id: req.getId() };
            const answer = ask({ do: "read", ...read, inputs: inputs(req.getProperties()) });
            const response = new resources.ReadResourceResponse();
            response.setUrn(answer.urn);
            response.setProperties(Struct.fromJavaScript(answer.state));
            return response;
        }, callback);
    monitor.invoke = (req, callback) =>
        inTurn(invocations, () => {
            const answer = ask({ do: "call", token: req.getTok(), args: inputs(req.getArgs()) });
            const response = new InvokeResponse();
            response.setReturn(Struct.fromJavaScript(answer.result));
            return response;
        }, callback);
    monitor.registerResourceOutputs = (req, callback) => callback(null, new Empty());
}

function inputs(struct) {
    return struct ? struct.toJavaScript() : {};
}

function named(req, heard) {
    const place = heard.get(`${req.getType()} ${req.getName()}`)?.place;
    return {
        type: req.getType(),
        name: req.getName(),
        parent: req.getParent().includes(`::${ROOT}::`) ? "" : req.getParent(),
        file: place ? pathToFileURL(place[0]).href : "",
        line: place ? place[1] : 0,
    };
}

function described(req, heard) {
    const properties = {};
    req.getPropertydependenciesMap().forEach((found, key) => {
        if (found.getUrnsList().length) properties[key] = [...found.getUrnsList()].sort();
    });
    return {
        ...named(req, heard),
        custom: req.getCustom(),
        remote: req.getRemote(),
        provider: urnIn(req.getProvider() || (req.getProvidersMap().get("kubernetes") ?? "")),
        dependencies: [...req.getDependenciesList()].sort(),
        propertyDependencies: properties,
        aliases: aliases(req),
        asked: heard.get(`${req.getType()} ${req.getName()}`)?.asked ?? [],
        options: options(req),
    };
}

// Each a URN, or the parts that were different: a name, a type, a parent.
function aliases(req) {
    const said = req.getAliasesList().map((alias) => {
        const spec = alias.getSpec();
        if (!spec) return { urn: alias.getUrn() };
        const [name, type, stack, project] = [spec.getName(), spec.getType(), spec.getStack(), spec.getProject()];
        return { name, type, stack, project, parentUrn: spec.getParenturn(), noParent: spec.getNoparent() };
    });
    return [...said, ...req.getAliasurnsList().map((urn) => ({ urn }))];
}

// References to providers end with an id.
function urnIn(reference) {
    return reference.split("::").slice(0, -1).join("::");
}

function options(req) {
    const timeouts = req.getCustomtimeouts();
    return {
        deleteBeforeReplace: req.getDeletebeforereplacedefined() ? req.getDeletebeforereplace() : null,
        replaceOnChanges: req.getReplaceonchangesList(),
        ignoreChanges: req.getIgnorechangesList(),
        protect: Boolean(req.getProtect()),
        retainOnDelete: Boolean(req.getRetainondelete()),
        deletedWith: req.getDeletedwith(),
        import: req.getImportid(),
        customTimeouts: timeouts
            ? { create: timeouts.getCreate(), update: timeouts.getUpdate(), delete: timeouts.getDelete() }
            : {},
    };
}

// The `dependsOn` of each resource before the SDK expands it (outputs are not resolved yet), and the place in the
// program: a component of a package may create the resource, and the SDK does not find the place in ES modules.
function overhear(pulumi) {
    const heard = new Map();
    const runtime = pulumi.require("@pulumi/pulumi/runtime/resource");
    const { registerResource, readResource } = runtime;
    const hear = (type, name, opts) => {
        const others = [opts?.dependsOn ?? []].flat().filter((other) => other?.__pulumiResource);
        const asked = others.map((other) => [other.__pulumiType, other.__name]);
        heard.set(`${type} ${name}`, { asked, place: place() });
    };
    runtime.registerResource = (res, parent, type, name, custom, remote, dependency, props, opts, ...more) => {
        hear(type, name, opts);
        return registerResource(res, parent, type, name, custom, remote, dependency, props, opts, ...more);
    };
    runtime.readResource = (res, parent, type, name, props, opts, ...more) => {
        hear(type, name, opts);
        return readResource(res, parent, type, name, props, opts, ...more);
    };
    return heard;
}

// The innermost frames are ours, two classes of the SDK, and the class of the resource; its creation is the next one.
function place() {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = Infinity;
    const all = frames(new Error().stack).reverse().filter(([file]) => file !== __filename);
    Error.stackTraceLimit = limit;
    return all.slice(3).find(([file]) => !file.includes("/node_modules/"));
}

// Loads a program as the SDK does, for every language, without its command line.
function runner(from) {
    const index = from.resolve("@pulumi/pulumi/cmd/run/index.js");
    from.cache[index] = { id: index, filename: index, loaded: true, exports: {
        nodeJSProcessExitedAfterLoggingUserActionableMessage: TOLD_THE_USER,
    } };
    return from("@pulumi/pulumi/cmd/run/run").run;
}

// ES modules in TypeScript are compiled in a thread of node. No other thread may be started, and it loads nothing else.
function guardModules() {
    const register = Module.register;
    Module.register = (specifier, parent, options) => {
        Module.register = guard.refuse;
        register(pathToFileURL(require.resolve("./guard.cjs")));
        register(specifier, parent, options);
    };
}

function raised(wrong) {
    const known = wrong instanceof Error;
    const denied = known && wrong.code === "ERR_ACCESS_DENIED";
    return {
        do: "raised",
        type: known ? wrong.name : "",
        message: (denied ? refusal(wrong) : known ? reasons(wrong) : words(wrong)).trimEnd(),
        frames: known ? frames(wrong.stack).map((frame) => [...frame, lineOf(frame)]) : [],
    };
}

function refusal(wrong) {
    const what = { FileSystemRead: "lets this program read only its project", FileSystemWrite: "does not let this program write files" };
    if (wrong.permission in what) return `seatrial ${what[wrong.permission]}: ${wrong.resource}`;
    return `${guard.WORDS}: ${wrong.permission}`;
}

function reasons(wrong) {
    return wrong.cause instanceof Error ? `${wrong.message}: ${wrong.cause.message}` : wrong.message;
}

// Of an error in another thread only the message is known.
function words(thrown) {
    return typeof thrown === "object" ? inspect(thrown) : String(thrown);
}

// File, line and function of each frame of a stack, the outermost first.
function frames(stack) {
    const found = [...String(stack).matchAll(/^ +at (?:(.*) \()?(?:file:\/\/)?(\/.*?):(\d+):\d+\)?$/gm)];
    return found.reverse().map(([, name, file, line]) => [file, Number(line), name ?? "<module>"]);
}

function lineOf([file, line]) {
    try {
        return fs.readFileSync(file, "utf8").split("\n")[line - 1].trim();
    } catch {
        return ""; // It is shown without its text.
    }
}

// Files of the program that are read from these texts. ES modules are read by node itself, from disk.
function readInstead(texts) {
    const { readFileSync } = fs;
    fs.readFileSync = (path, options, ...more) => {
        const found = typeof path === "string" && texts[path];
        if (typeof found !== "string") return readFileSync(path, options, ...more);
        return options ? found : Buffer.from(found);
    };
}

function main() {
    const setting = receive();
    if (Object.keys(setting.instead).length) readInstead(setting.instead);
    const from = Module.createRequire(setting.within);
    const pulumi = { require: from, project: setting.project, stack: setting.stack };
    let over = false;
    const end = (message, code) => {
        if (!over) say(message);
        over = true;
        if (code !== undefined) leave(code);
    };
    const leave = process.exit.bind(process);
    process.exit = (code) => {
        if (code === TOLD_THE_USER) leave(code);
        end({ ...raised(new Error(`it called process.exit(${code ?? ""})`)), type: "" }, code);
    };
    process.on("beforeExit", () => end({ do: "ended" }));
    let run;
    try {
        const runtime = from("@pulumi/pulumi/runtime");
        const refuse = () => Promise.reject(new Error("the monitor answers"));
        runtime.setMocks({ call: refuse, newResource: refuse }, setting.project, setting.stack, true);
        runtime.setAllConfig(setting.config, setting.secrets);
        listen(pulumi, overhear(pulumi));
        run = runner(from);
    } catch (missing) {
        return end({ do: "lacking", message: missing.message.split("\n")[0] });
    }
    guard.close();
    guardModules();
    Object.assign(process.env, setting.environment);
    const wrong = (error) => end(raised(error), 1);
    run({ _: [setting.program] }, () => {}, wrong, () => false).catch(wrong);
}

main();
