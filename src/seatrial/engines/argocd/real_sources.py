"""The repositories that a real Argo CD fetches from, under their own URLs, with the files that the simulated one reads.

A proxy in the sandbox answers for every host (`sandbox/repositories.py`). It speaks HTTP only: sources that are fetched
otherwise get another URL, in Applications that the user gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from seatrial.engines.act import Repository
from seatrial.engines.argocd.controlled import PRIVATE
from seatrial.engines.argocd.projects import IN_CLUSTER
from seatrial.engines.controllers import FLAG
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, dig, listed, name_of
from seatrial.sources.charts.chart import open_any_chart
from seatrial.sources.charts.files import ChartFiles, archived
from seatrial.sources.charts.output import output
from seatrial.sources.repos import Repos, chart_in, plain_url
from seatrial.sources.trees import tree_at

HTTP = ("https://", "http://")
COMMIT = lazy_re.compile(r"[0-9a-fA-F]{40}")
VERSION = lazy_re.compile(r"v?\d+\.\d+\.\d+[\w.+-]*")
CERTIFICATES = (
    '{{ $ca := genCA "seatrial" 3650 }}{{ $own := genSignedCert "localhost" nil .Values.hosts 3650 $ca }}'
    '{{ dict "proxy/ca.pem" $ca.Cert "proxy/served.pem" $own.Cert "proxy/served.key" $own.Key | toJson }}'
)
"""Files of the proxy. Helm makes the certificates: it has functions for that."""
DOING = "make a repository of it"


def reachable(application: Body) -> Body:
    """An Application of the user whose sources the controllers can fetch, and that deploys to the rehearsed cluster."""
    spec = dict(application["spec"])
    if listed(application, "spec", "sources"):
        spec["sources"] = [_reachable(source) for source in spec["sources"]]
    else:
        spec["source"] = _reachable(spec.get("source") or {})
    if _is_elsewhere(application):
        namespace = str(dig(application, "spec", "destination", "namespace") or "")
        spec["destination"] = {"server": IN_CLUSTER[0], "namespace": namespace}
    return {**application, "spec": spec}


def refuse_unreachable(ref: Ref, application: Body) -> None:
    """Raise for an Application that Argo CD itself creates, and whose sources or cluster are out of reach."""
    why = ""
    for source in sources_of(application):
        url, revision = str(source.get("repoURL") or ""), str(source.get("targetRevision") or "")
        if not url.startswith(HTTP):
            why = f"its source {url} is not fetched over HTTP"
        elif not source.get("chart") and COMMIT.fullmatch(revision):
            why = f"its source {url} is pinned to the commit {revision}"
    if _is_elsewhere(application):
        where = dig(application, "spec", "destination") or {}
        why = f"its destination {where.get('server') or where.get('name')} is another cluster"
    if why:
        raise CannotContinue(f"{FLAG} argocd: {ref}: {why}; only the simulated Argo CD knows that")


def sources_of(application: Body) -> list[Body]:
    return listed(application, "spec", "sources") or [dig(application, "spec", "source") or {}]


def repositories(applications: Iterable[Body], sets: Iterable[Body], repos: Repos) -> tuple[Repository, ...]:
    """The repositories of these Applications and ApplicationSets, each once."""
    found: dict[str, Repository] = {}
    named = [*(source for body in applications for source in sources_of(body)), *map(_generating, _generators(sets))]
    for source in named:
        url = str(source.get("repoURL") or "")
        one = found.get(plain_url(url)) or Repository(_url(url), "" if url.startswith(HTTP) else url)
        add = _with_chart if source.get("chart") else _with_files
        found[plain_url(url)] = add(one, source, repos)
    return tuple(found.values())


def certificates(repositories: Iterable[Repository]) -> dict[str, bytes]:
    """What the proxy needs to be taken for the hosts of repositories."""
    return _certificates(tuple(sorted({urlsplit(one.url).hostname or "" for one in repositories})))


@lru_cache(maxsize=8)
def _certificates(hosts: tuple[str, ...]) -> dict[str, bytes]:
    files = {"Chart.yaml": b"apiVersion: v2\nname: proxy\nversion: 0.0.1\n", "templates/t.txt": CERTIFICATES.encode()}
    chart, options = ChartFiles("", files), {"name": "proxy", "namespace": "default"}
    texts = output(chart, archived(chart, "proxy"), "proxy", {"hosts": list(hosts)}, options).texts
    made = msgspec.json.decode(texts["proxy/templates/t.txt"], type=dict[str, str])
    return {path: text.encode() for path, text in made.items()}


def _url(url: str) -> str:
    return url if url.startswith(HTTP) else f"{PRIVATE}/{plain_url(url)}"


def _reachable(source: Body) -> Body:
    pinned = COMMIT.fullmatch(str(source.get("targetRevision") or "")) and not source.get("chart")
    revision = {"targetRevision": "HEAD"} if pinned else {}
    return {**source, "repoURL": _url(str(source.get("repoURL") or "")), **revision}


def _is_elsewhere(application: Body) -> bool:
    where = dig(application, "spec", "destination") or {}
    return not {where.get("server"), where.get("name")} <= {None, "", *IN_CLUSTER}


def _generators(sets: Iterable[Body]) -> Iterator[Body]:
    """The git generators of sets, at any depth."""
    for body in sets:
        nodes = [*listed(body, "spec", "generators")]
        while nodes:
            node = nodes.pop()
            if "git" in node:
                if "{{" in (url := str(dig(node, "git", "repoURL"))):
                    raise CannotContinue(
                        f"{FLAG} argocd: ApplicationSet {name_of(body)}: the repoURL {url} of a generator is a template"
                    )
                yield node["git"]
            nodes += [*listed(node, "matrix", "generators"), *listed(node, "merge", "generators")]


def _generating(generator: Body) -> Body:
    return {"repoURL": generator.get("repoURL"), "targetRevision": generator.get("revision")}


def _with_files(one: Repository, source: Body, repos: Repos) -> Repository:
    revision = str(source.get("targetRevision") or "")
    revisions = tuple(dict.fromkeys((*one.revisions, *([revision] if revision else []))))
    return replace(one, files=one.files or tree_at(_root(source, repos), DOING), revisions=revisions)


def _with_chart(one: Repository, source: Body, repos: Repos) -> Repository:
    name, asked = str(source["chart"]), str(source.get("targetRevision") or "")
    chart = open_any_chart(str(chart_in(_root(source, repos), name, asked)))
    version = asked if VERSION.fullmatch(asked) else chart.version
    return replace(one, charts={**one.charts, (name, version): chart.archive})


def _root(source: Body, repos: Repos) -> Path:
    root = repos.find(str(source.get("repoURL") or ""))
    if root is None:
        raise CannotContinue(f"{FLAG} argocd: the source {source.get('repoURL')} is not on disk; pass --repo")
    return root
