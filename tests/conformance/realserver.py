"""A real API server on loopback, started from the envtest binaries."""

from __future__ import annotations

import secrets
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from apiclient import Api

LOOPBACK = "127.0.0.1"
START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 20
CIDR = "10.0.0.0/16"


@contextmanager
def real_server(assets: Path, folder: Path, *, users: tuple[str, ...] = (), audit_policy: str = "") -> Iterator[Api]:
    """etcd and kube-apiserver from `assets`, and kube-controller-manager and kube-scheduler if they are there.

    Other users than admin have all rights too. With a policy, the API server writes audit.log.
    """
    if not (assets / "kube-apiserver").exists():
        pytest.skip(f"KUBEBUILDER_ASSETS: there is no kube-apiserver in {assets}")
    etcd_port, peer_port, port = _free_ports(3)
    tokens = {user: secrets.token_hex(16) for user in ("admin", *users)}
    token, key, certificates = tokens["admin"], folder / "sa.key", folder / "certificates"
    lines = (f"{secret},{user},{user},system:masters\n" for user, secret in tokens.items())
    (folder / "tokens.csv").write_text("".join(lines))
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    with ExitStack() as processes:
        start = _Starter(processes, assets, folder)
        start("etcd", *_etcd(folder, etcd_port, peer_port))
        start("kube-apiserver", *_api_server(folder, key, certificates, etcd_port, port), *_audit(folder, audit_policy))
        api = _when_ready(port, token, certificates / "apiserver.crt")
        config = folder / "kubeconfig"
        config.write_text(kubeconfig(port, token, certificates / "apiserver.crt"))
        if (assets / "kube-controller-manager").exists():
            start("kube-controller-manager", *_controllers(config, key, certificates / "apiserver.crt"))
        if (assets / "kube-scheduler").exists():
            start("kube-scheduler", f"--kubeconfig={config}", *_serving_nothing())
        with api:
            yield api


class _Starter:
    """Starts processes that end with their ExitStack."""

    def __init__(self, processes: ExitStack, assets: Path, folder: Path) -> None:
        self._processes = processes
        self._assets = assets
        self._folder = folder

    def __call__(self, name: str, *arguments: str) -> None:
        log = self._processes.enter_context((self._folder / f"{name}.log").open("w"))
        process = subprocess.Popen([self._assets / name, *arguments], stdout=log, stderr=log, cwd=self._folder)
        self._processes.callback(_stop, process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _etcd(folder: Path, port: int, peer_port: int) -> Iterator[str]:
    own, peers = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peer_port}"
    yield from (f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", "--name=real", f"--initial-cluster=real={peers}")
    yield from (f"--listen-client-urls={own}", f"--advertise-client-urls={own}")
    yield from (f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}")


def _api_server(folder: Path, key: Path, certificates: Path, etcd_port: int, port: int) -> Iterator[str]:
    yield from (f"--etcd-servers=http://{LOOPBACK}:{etcd_port}", f"--bind-address={LOOPBACK}", f"--secure-port={port}")
    # Loopback cannot be advertised. Nothing listens on this documentation address.
    yield from ("--advertise-address=192.0.2.1", f"--cert-dir={certificates}", f"--service-cluster-ip-range={CIDR}")
    yield from (f"--token-auth-file={folder / 'tokens.csv'}", "--authorization-mode=RBAC", "--allow-privileged=true")
    yield from (f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}")
    # As on most managed clusters: webhooks are called at the endpoints of their Service, not at its cluster IP.
    yield from ("--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--enable-aggregator-routing")


def _audit(folder: Path, policy: str) -> Iterator[str]:
    if policy:
        (folder / "audit.yaml").write_text(policy)
        yield from (f"--audit-policy-file={folder / 'audit.yaml'}", f"--audit-log-path={folder / 'audit.log'}")


def _controllers(config: Path, key: Path, authority: Path) -> Iterator[str]:
    yield from (f"--kubeconfig={config}", f"--service-account-private-key-file={key}", f"--root-ca-file={authority}")
    yield from _serving_nothing()
    yield from ("--use-service-account-credentials=true", f"--service-cluster-ip-range={CIDR}")
    # No kubelet renews a Lease here. What is looked at every 15 seconds by default is looked at more often.
    yield from ("--controllers=*,-node-lifecycle-controller", "--pvclaimbinder-sync-period=1s")
    yield "--horizontal-pod-autoscaler-sync-period=500ms"


def _serving_nothing() -> tuple[str, ...]:
    return f"--bind-address={LOOPBACK}", "--secure-port=0", "--leader-elect=false"


def kubeconfig(port: int, token: str, authority: Path, namespace: str = "default") -> str:
    return (
        "{apiVersion: v1, kind: Config, current-context: real, contexts: [{name: real, context: {cluster: real, user: "
        f"real, namespace: {namespace}}}}}], users: [{{name: real, user: {{token: {token}}}}}], clusters: [{{name: "
        f"real, cluster: {{server: 'https://{LOOPBACK}:{port}', certificate-authority: {authority}}}}}]}}"
    )


def _when_ready(port: int, token: str, authority: Path) -> Api:
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        time.sleep(0.2)
        try:
            tls = ssl.create_default_context(cafile=str(authority))
            with Api(f"https://{LOOPBACK}:{port}", token=token, tls=tls) as api:
                if api.get("/readyz").code == 200:
                    return api
        except OSError:
            continue
    pytest.fail(f"the API server of KUBEBUILDER_ASSETS was not ready after {START_SECONDS_MAX} seconds")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [found.getsockname()[1] for found in sockets]
