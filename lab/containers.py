"""Runs the commands of containers: shell scripts and kubectl, in a private folder, with nothing else on the PATH.

Other programs are not run. Programs that ask a Service whether it answers are played by `probe.py`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from apiclient import Api

from lab import FASTER, ROOT
from seatrial.kinds.scripts.commands import ANY_RIGHT
from seatrial.kinds.scripts.known_images import entry_of
from seatrial.kinds.scripts.probes import PROBES
from seatrial.kinds.workloads.pod_template import volume_sources
from seatrial.model.resource import Body, annotations_of, dig, listed, metadata, name_of, uid_of

SHELLS = ("sh", "bash", "ash", "dash")
TOOLS = (
    *(
        "awk",
        "base64",
        "basename",
        "cat",
        "cp",
        "cut",
        "date",
        "dirname",
        "env",
        "expr",
        "false",
        "find",
        "grep",
        "head",
    ),
    *(
        "jq",
        "ls",
        "md5sum",
        "mkdir",
        "mktemp",
        "mv",
        "openssl",
        "printf",
        "rm",
        "sed",
        "seq",
        "sha256sum",
        "sort",
        "tail",
    ),
    *("tee", "test", "timeout", "touch", "tr", "true", "uniq", "wc", "xargs", "yes"),
)
UNKNOWN_ENDS_WELL = "() { return 0; }"
"""What bash does with a program that is not there: as in the embedded cluster, it is assumed to succeed."""
SLEEP = f"""#!/bin/sh
case "$1" in inf*) exec /bin/sleep infinity ;; esac
exec /bin/sleep "$(awk "BEGIN {{ n = \\"$1\\" + 0; if (\\"$1\\" ~ /m$/) n *= 60; print n / {FASTER} }}")"
"""
KUBECTL = """#!PYTHON -P
import os, re, sys
def faster(found):
    seconds = sum(float(n) * {"h": 3600, "m": 60, "s": 1}[u] for n, u in re.findall(r"([0-9.]+)([hms])", found[2]))
    return f"{found[1]}{max(seconds / %d, 0.1):.1f}s" if seconds > 0 else found[0]
words, given = [], sys.argv[1:]
for before, word in zip(["", *given], given):
    if before in ("--timeout", "--request-timeout"):
        word = re.sub(r"^()(.*)$", faster, word)
    words.append(re.sub(r"^(--timeout=|--request-timeout=)(.*)$", faster, word))
os.execv(os.environ["LAB_KUBECTL"], ["kubectl", *words])
"""


class Shell:
    """A running script."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        with (folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Sandbox:
    """The folder in which pods live, and the programs that they have."""

    def __init__(self, root: Path, api: Api, kubeconfig: Any) -> None:
        self._root = root
        self._api = api
        self._kubeconfig = kubeconfig
        """From a token and a namespace to the text of a kubeconfig."""
        self._bin = root / "bin"
        self._services = root / "services.json"
        self._known: object = None
        self._bin.mkdir(parents=True)
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self._bin / tool).symlink_to(found)
        for shell in SHELLS:
            (self._bin / shell).symlink_to(shutil.which("bash") or "/bin/sh")
        self._write("sleep", SLEEP)
        self._write("kubectl", KUBECTL.replace("PYTHON", sys.executable) % FASTER)
        for probe in PROBES:
            self._write(probe, f'#!/bin/sh\nexec {sys.executable} -P {ROOT / "lab" / "probe.py"} {probe} "$@"\n')

    def knows_services(self, services: dict[str, list[list[object]]]) -> None:
        if services != self._known:
            self._known = services
            fresh = self._services.with_suffix(".new")
            fresh.write_text(json.dumps(services))
            fresh.replace(self._services)

    def folder(self, pod: Body) -> Path:
        folder = self._root / "pods" / uid_of(pod)
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        return folder

    def remove(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, pod: Body, container: Body, folder: Path) -> Shell | None:
        """The container's script as a process; None if it runs anything else."""
        namespace = str(metadata(pod)["namespace"])
        environment = self._environment(pod, container)
        mounts = self._mounted(pod, container, folder)
        command = [str(word) for word in (*listed(container, "command"), *listed(container, "args"))]
        if not listed(container, "command"):
            command = [*filter(None, [entry_of(str(container.get("image") or ""))]), *command]
        command = [_expanded(word, environment) for word in command]
        if command and str(mounts.get(command[0], "")):
            command = ["sh", *command]
        program = command[0].rpartition("/")[2] if command else ""
        if program not in (*SHELLS, "kubectl", *PROBES):
            return None
        paths = {"/tmp": str(folder / "tmp"), **{at: str(path) for at, path in mounts.items()}}
        words = [moved(word, paths) for word in command[1:]]
        account = str(dig(pod, "spec", "serviceAccountName") or "default")
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(self._kubeconfig(self._token(pod, namespace, account), namespace))
        given = {
            "PATH": str(self._bin),
            "HOME": str(folder),
            "TMPDIR": str(folder / "tmp"),
            "KUBECONFIG": str(kubeconfig),
            "LAB_KUBECTL": shutil.which("kubectl") or "kubectl",
            "LAB_SERVICES": str(self._services),
            "LAB_NAMESPACE": namespace,
            "HOSTNAME": name_of(pod),
            "BASH_FUNC_command_not_found_handle%%": UNKNOWN_ENDS_WELL,
        }
        return Shell([str(self._bin / program), *words], folder, {**environment, **given})

    def _write(self, name: str, text: str) -> None:
        path = self._bin / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o700)

    def _token(self, pod: Body, namespace: str, account: str) -> str:
        """The pod's own token; empty stands for all rights, as the embedded cluster assumes of some accounts."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}"
        if account == "default" or ANY_RIGHT in annotations_of(self._api.get(path).body or {}):
            return ""
        bound = {"kind": "Pod", "apiVersion": "v1", "name": name_of(pod), "uid": uid_of(pod)}
        reply = self._api.post(f"{path}/token", {"spec": {"boundObjectRef": bound, "audiences": None}})
        return str(dig(reply.body, "status", "token") or "none")

    def _environment(self, pod: Body, container: Body) -> dict[str, str]:
        namespace, found = str(metadata(pod)["namespace"]), dict[str, str]()
        for source in listed(container, "envFrom"):
            prefix = str(source.get("prefix") or "")
            for field, plural in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if name := dig(source, field, "name"):
                    data = self._data(namespace, plural, str(name))
                    found.update({f"{prefix}{key}": value for key, value in data.items()})
        fields = {"metadata.name": name_of(pod), "metadata.namespace": namespace}
        for variable in listed(container, "env"):
            name, value = str(variable.get("name")), variable.get("value")
            for field, plural in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
                if ref := dig(variable, "valueFrom", field):
                    value = self._data(namespace, plural, str(ref.get("name"))).get(str(ref.get("key")), "")
            if path := dig(variable, "valueFrom", "fieldRef", "fieldPath"):
                value = fields.get(str(path), "")
            found[name] = _expanded(str(value or ""), found)
        return found

    def _data(self, namespace: str, plural: str, name: str) -> dict[str, str]:
        body = self._api.get(f"/api/v1/namespaces/{namespace}/{plural}/{name}").body
        data = dig(body, "data") or {}
        if plural == "configmaps":
            return {key: str(value) for key, value in data.items()}
        return {key: base64.b64decode(value).decode(errors="replace") for key, value in data.items()}

    def _mounted(self, pod: Body, container: Body, folder: Path) -> dict[str, Path]:
        """Where the files of volumes are, by the path that the container has for them."""
        found: dict[str, Path] = {}
        namespace = str(metadata(pod)["namespace"])
        volumes = {volume.get("name"): volume for volume in listed(pod, "spec", "volumes")}
        for mount in listed(container, "volumeMounts"):
            volume = volumes.get(mount.get("name")) or {}
            home = folder / "volumes" / str(mount.get("name"))
            home.mkdir(parents=True, exist_ok=True)
            path = str(mount.get("mountPath")).rstrip("/")
            if "kubernetes.io/serviceaccount" in path:
                continue
            for source in volume_sources(volume):
                data = self._data(namespace, f"{source.kind.lower()}s", source.name)
                paths = {
                    str(item.get("key")): str(item.get("path"))
                    for item in listed(volume, source.kind[0].lower() + source.kind[1:], "items")
                }
                for key, text in data.items():
                    file = home / paths.get(key, key)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text)
                    if not mount.get("subPath"):
                        found[f"{path}/{file.relative_to(home)}"] = file
            found[path] = home / str(mount["subPath"]) if mount.get("subPath") else home
        return found


def _expanded(word: str, environment: dict[str, str]) -> str:
    """With `$(NAME)` expanded, as a kubelet does."""
    return re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), word)


def moved(word: str, paths: dict[str, str]) -> str:
    """A word of a command line with the paths of volumes and of /tmp replaced by those of the folder of the pod."""
    longest_first = sorted(filter(None, paths), key=len, reverse=True)
    # All at once: the folder of the pod can itself be below /tmp.
    any_path = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<![\w.-])({any_path})(?=$|[/\s\"';)&|>])", lambda found: paths[found[1]], word)
