// Closes what node's permission model leaves open to a program: the network, if the kernel has not removed it, and
// threads that do not inherit the model. Loaded into every thread before the program.

"use strict";

const WORDS = "seatrial runs this program without a network and without processes";

function refuse() {
    throw new Error(WORDS);
}

function close() {
    const [net, dgram, dns, threads] = ["net", "dgram", "dns", "worker_threads"].map(require);
    for (const name of ["connect", "bind", "send"]) dgram.Socket.prototype[name] = refuse;
    for (const one of [net.Socket.prototype, net.Server.prototype]) one.connect = one.listen = refuse;
    for (const one of [dns, dns.promises]) {
        for (const name of Object.keys(one)) if (/^(lookup|resolve|reverse)/.test(name)) one[name] = refuse;
    }
    threads.Worker = refuse;
    process.kill = process._kill = refuse;
    require("module").syncBuiltinESMExports();
}

if (!require("worker_threads").isMainThread) close();

module.exports = { WORDS, close, refuse };
