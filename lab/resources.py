"""The kinds that the real API server serves, and their paths."""

from __future__ import annotations

from collections.abc import Iterator

from apiclient import Api
from msgspec import Struct

from seatrial.model.resource import Body, group_of, listed, name_of, version_of

AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"


class Resource(Struct, frozen=True):
    """A kind that the API server lists."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}".lstrip("/")

    def path(self, namespace: str = "", name: str = "") -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        home = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{home}/{self.plural}" + (f"/{name}" if name else "")


def discovered(api: Api) -> Iterator[Resource]:
    """The kinds that can be listed, in the version that the API server prefers."""
    for root in ("/api", "/apis"):
        for group in listed(api.send("GET", root, accept=AGGREGATED).body, "items"):
            seen: set[str] = set()
            for version in listed(group, "versions"):
                for one in listed(version, "resources"):
                    kind = str(one["responseKind"].get("kind") or one.get("singularResource"))
                    if "list" in one["verbs"] and one["resource"] not in seen:
                        seen.add(one["resource"])
                        namespaced = one["scope"] == "Namespaced"
                        yield Resource(name_of(group), version["version"], kind, one["resource"], namespaced)


def find(api: Api, body: Body) -> Resource | None:
    """The kind of an object in its own version."""
    group, version = group_of(str(body.get("apiVersion"))), version_of(str(body.get("apiVersion")))
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    for one in listed(api.get(root).body, "resources"):
        if one["kind"] == body.get("kind") and "/" not in one["name"]:
            return Resource(group, version, one["kind"], one["name"], one["namespaced"])
    return None
