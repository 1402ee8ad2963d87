"""The proxy that answers for the repositories of a real Argo CD, with git and curl's way of asking for files."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.engines.act import Repository
from seatrial.engines.argocd.real_sources import certificates
from seatrial.sandbox import repositories

WHO = {f"GIT_{who}_{field}": "x@example" for who in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables of a program that fetches through the proxy."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "app.yaml").write_text("kind: ConfigMap\n" * 2000)
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "x"], ["tag", "1.2.0"]):
        subprocess.run(["git", "-C", str(repo), *words], check=True, env={**os.environ, **WHO})
    for name, data in certificates((Repository("https://git.example/shop"),)).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    routes = {
        "git": {"git.example/shop": str(repo)},
        "files": {"git.example/charts/index.yaml": str(repo / "app.yaml")},
    }
    (tmp_path / "proxy" / repositories.ROUTES).write_text(json.dumps(routes))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-I", repositories.__file__, str(port), str(tmp_path / "proxy")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        url, ca = f"http://127.0.0.1:{port}", str(tmp_path / "proxy/ca.pem")
        _await(port, server)
        yield {"http_proxy": url, "https_proxy": url, "GIT_SSL_CAINFO": ca}
        server.kill()


def _await(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.02)
    return None


@pytest.mark.parametrize(
    "url", ["https://git.example/shop.git", "http://git.example/shop", "https://git.example/Shop/"]
)
def test_a_repository_is_cloned_from_its_own_url(url: str, proxy: dict[str, str], tmp_path: Path) -> None:
    environment = {**os.environ, **proxy}
    subprocess.run(["git", "clone", "-q", url, str(tmp_path / "got")], check=True, env=environment)
    assert (tmp_path / "got/app.yaml").read_text() == (tmp_path / "repo/app.yaml").read_text()
    asked = ["git", "ls-remote", "--tags", url]
    assert subprocess.run(asked, check=True, env=environment, capture_output=True).stdout.endswith(b"refs/tags/1.2.0\n")


def test_other_repositories_are_not_found(proxy: dict[str, str]) -> None:
    environment = {**os.environ, **proxy, "LC_ALL": "C"}
    asked = ["git", "ls-remote", "https://git.example/other"]
    assert b"not found" in subprocess.run(asked, check=False, env=environment, capture_output=True).stderr


def test_files_of_a_chart_repository_are_served(proxy: dict[str, str], tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=proxy["GIT_SSL_CAINFO"])
    handlers = (
        urllib.request.ProxyHandler({"https": proxy["https_proxy"]}),
        urllib.request.HTTPSHandler(context=context),
    )
    opened = urllib.request.build_opener(*handlers)
    assert opened.open("https://git.example/charts/index.yaml").read() == (tmp_path / "repo/app.yaml").read_bytes()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        opened.open("https://git.example/charts/other.tgz")
