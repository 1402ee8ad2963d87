"""Which versions of Helm do what, where that matters here: a table. Knows no release.

Read from the tags of helm/helm: pkg/action (install.go, hooks.go, uninstall.go), pkg/kube (client.go, statuswait.go).
`docs/helm-3-and-4.md` shows the same table.
"""

from __future__ import annotations

from msgspec import Struct

Numbers = tuple[int, ...]
NEWEST = (
    *("3.14.4", "3.15.4", "3.16.4", "3.17.4", "3.18.6", "3.19.5", "3.20.2", "3.21.4", "3.22.0"),
    *("4.0.5", "4.1.4", "4.2.4", "4.3.1"),
)
"""The last patch version of each minor version that users have."""


class Versions(Struct, frozen=True):
    """The versions from one to another, both included; `last` is empty if the newest one is among them."""

    first: Numbers
    last: Numbers = ()

    def __str__(self) -> str:
        first, last = (".".join(map(str, version)) for version in (self.first, self.last))
        if first == last:
            return f"Helm {first}"
        return f"Helm {first} to {last}" if last else f"Helm {first} and later"

    def __contains__(self, numbers: Numbers) -> bool:
        return self.first <= numbers and (not self.last or numbers <= self.last)


class Behaviour(Struct, frozen=True):
    """Something that only some versions do."""

    about: str
    versions: Versions
    does: str
    source: str
    """Where upstream decides it: a file, or an issue."""
    seen: tuple[str, ...] = ()
    """The versions whose binaries were seen to do it, or not to."""
    known: bool = False
    """Whether `--engine helm@VERSION` takes it into account without a binary."""


CRDS_NOT_AWAITED = Versions((4, 0, 0), (4, 3, 0))
"""Without --wait, the CRDs of crds/ are not waited for. Before and after, they always are."""
API_VERSION_IS_IDENTITY = Versions((4, 0, 0), (4, 1, 0))
GROUP_IS_NO_IDENTITY = Versions((3, 0, 0), (3, 17, 0))
HOOK_DELETION_TIMES_OUT = Versions((4, 2, 1), (4, 2, 1))
FAILED_IS_AWAITED = Versions((4, 0, 0), (4, 1, 0))
NOT_IN_REVISION_IS_REFUSED = Versions((3, 0, 0), (3, 21, 4))

SEEN = ("3.14.4", "4.0.0")
SEEN_BETWEEN = ("3.14.4", "3.19.4", "4.0.0")

TABLE = (
    Behaviour(
        "CRDs in crds/, without --wait",
        CRDS_NOT_AWAITED,
        "are not waited for: a custom resource of the chart may be too early. All other versions wait up to 60s",
        "installCRDs in pkg/action/install.go",
        seen=SEEN_BETWEEN,
        known=True,
    ),
    Behaviour(
        "A CRD in crds/ that exists",
        Versions((4, 0, 0)),
        "is applied again by an install, and a conflict with its last writer fails it. Helm 3 skips it. No version "
        "upgrades crds/",
        "installCRDs in pkg/action/install.go",
        seen=SEEN_BETWEEN,
        known=True,
    ),
    Behaviour(
        "A hook that is deleted before it is created again",
        Versions((4, 0, 0)),
        "is not waited for without --wait. Helm 3 waits until it is gone",
        "deleteHookByPolicy in pkg/action/hooks.go",
        seen=SEEN_BETWEEN,
        known=True,
    ),
    Behaviour(
        "A hook that is deleted before it is created again, with --wait",
        HOOK_DELETION_TIMES_OUT,
        "waits until --timeout even if there is nothing to delete",
        "helm/helm#32214",
        known=True,
    ),
    Behaviour(
        "Hooks with hook-succeeded",
        Versions((3, 16, 3)),
        "are deleted in the reverse of the order in which they ran; by older versions, in that order",
        "execHook in pkg/action/hooks.go",
        seen=SEEN_BETWEEN,
    ),
    Behaviour(
        "helm.sh/hook-output-log-policy",
        Versions((3, 18, 0)),
        "prints the logs of failed or successful hooks. Older versions ignore the annotation; their logs are lost with "
        "hook-failed",
        "pkg/action/hooks.go",
    ),
    Behaviour(
        "Fields that another client changed",
        Versions((4, 0, 0)),
        "are conflicts of server-side apply, and fail an upgrade without --force-conflicts. Helm 3 overwrites them",
        "pkg/kube/client.go",
        seen=SEEN_BETWEEN,
        known=True,
    ),
    Behaviour(
        "An object that an upgrade adds",
        Versions((4, 0, 0), (4, 0, 5)),
        "is created without server-side apply: the server drops unknown fields instead of refusing them",
        "Update in pkg/kube/client.go",
        seen=SEEN,
    ),
    Behaviour(
        "A ResourceQuota that changes during an apply",
        Versions((4, 0, 0), (4, 2, 3)),
        "fails the step: `Operation cannot be fulfilled on resourcequotas`. All other versions try again",
        "helm/helm#32088",
    ),
    Behaviour(
        "An object whose API version changes",
        API_VERSION_IS_IDENTITY,
        "is updated, and then deleted as removed from the chart",
        "helm/helm#31768",
        seen=SEEN_BETWEEN,
        known=True,
    ),
    Behaviour(
        "An object whose API group changes",
        GROUP_IS_NO_IDENTITY,
        "counts as the same object: the old one is left behind",
        "helm/helm#12578",
        seen=SEEN_BETWEEN,
        known=True,
    ),
    Behaviour(
        "--wait and a Job or Deployment that has failed",
        FAILED_IS_AWAITED,
        "waits until --timeout. Later versions fail at once",
        "statuswait.go: `do not wait forever on failed resources`",
        seen=SEEN,
    ),
    Behaviour(
        "A rollback to an object that exists and that the last revision did not contain, such as a hook",
        NOT_IN_REVISION_IS_REFUSED,
        'fails: `no ConfigMap with the name "..." found`. Helm 3.22 patches it',
        "Update in pkg/kube/client.go",
        seen=SEEN_BETWEEN[:2],
        known=True,
    ),
    Behaviour(
        "The same with Helm 4",
        Versions((4, 0, 0), (4, 1, 4)),
        'fails: `original object ConfigMap with the name "..." not found`. Later versions apply it',
        "Update in pkg/kube/client.go",
        seen=SEEN[1:],
    ),
    Behaviour(
        "Uninstall of an object whose annotations name another release",
        Versions((4, 3, 0)),
        "keeps the object. Older versions delete it",
        "pkg/action/uninstall.go",
        seen=SEEN_BETWEEN[1:2],
    ),
    Behaviour(
        "--take-ownership",
        Versions((3, 17, 0)),
        "adopts objects without or with other annotations. Older versions do not know the flag",
        "pkg/cmd/install.go",
        seen=SEEN_BETWEEN,
    ),
)


def full_version(asked: str) -> str:
    """The version that is asked for: `4.0` is its last patch version; empty if users do not have it."""
    wanted = asked.removeprefix("v")
    if wanted.count(".") == 2:
        minor = wanted.rpartition(".")[0]
        return wanted if any(known.startswith(f"{minor}.") for known in NEWEST) else ""
    return next((known for known in reversed(NEWEST) if f"{known}.".startswith(f"{wanted}.")), "")
