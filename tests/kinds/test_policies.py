"""Which traffic NetworkPolicies allow: each row is a policy for a database's pods, and a client at port 5432."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from seatrial.kinds.network.policies import Peer, blocking

DB = Peer("shop", {"app": "db"})
WEB = Peer("shop", {"app": "web"})
REPORTS = Peer("reports", {"app": "web"}, {"team": "data"})
API_SERVER = None


@pytest.mark.parametrize(
    ("spec", "client", "open_"),
    [
        ("{podSelector: {}}", WEB, False),
        ("{podSelector: {matchLabels: {app: cache}}}", WEB, True),
        ("{podSelector: {}, policyTypes: [Egress]}", WEB, True),
        ("{podSelector: {}, ingress: [{}]}", WEB, True),
        ("{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}", WEB, True),
        ("{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}", REPORTS, False),
        ("{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: job}}}]}]}", WEB, False),
        ("{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: data}}}]}]}", REPORTS, True),
        ("{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: data}}}]}]}", WEB, False),
        (
            "{podSelector: {}, ingress: [{from: [{namespaceSelector: "
            "{matchLabels: {kubernetes.io/metadata.name: reports}}, podSelector: {matchLabels: {app: job}}}]}]}",
            REPORTS,
            False,
        ),
        ("{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}", WEB, True),
        ("{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}", API_SERVER, False),
        ("{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}", API_SERVER, True),
        ("{podSelector: {}, ingress: [{ports: [{port: 5432}]}]}", API_SERVER, True),
        ("{podSelector: {}, ingress: [{ports: [{port: 5400, endPort: 5500}]}]}", WEB, True),
        ("{podSelector: {}, ingress: [{ports: [{port: 53}]}]}", WEB, False),
        ("{podSelector: {}, ingress: [{ports: [{port: postgres}]}]}", WEB, True),
    ],
)
def test_a_policy_allows_the_peers_it_names(spec: str, client: Peer | None, open_: bool) -> None:
    assert blocking([_policy("one", spec)], "Ingress", DB, client, (5432,)) == ([] if open_ else [_policy("one", spec)])


def test_policies_are_additive() -> None:
    shut, opened = _policy("shut", "{podSelector: {}}"), _policy("opened", "{podSelector: {}, ingress: [{}]}")
    assert blocking([shut, opened], "Ingress", DB, WEB, (5432,)) == []


def test_a_policy_of_another_namespace_does_not_apply() -> None:
    assert blocking([_policy("shut", "{podSelector: {}}")], "Ingress", REPORTS, WEB, (80,)) == []


def test_egress_rules_imply_the_policy_type_egress() -> None:
    policy = _policy("dns", "{podSelector: {}, egress: [{ports: [{port: 53}]}]}")
    assert blocking([policy], "Egress", WEB, DB, (5432,)) == [policy]


def _policy(name: str, spec: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": yaml.safe_load(spec)}
