"""Ways out of generated values, certificates and configuration that pods read once."""

from __future__ import annotations

from seatrial.fix.ways.about import About, Way

TEMPLATES = "/templates/"


def _restarted(about: About) -> str:
    """The checksum names the template of the configuration, which is the second place."""
    written = about.there.rpartition(":")[0] or about.there
    path = written.partition(TEMPLATES)[2]
    if not path:
        return (
            "Let the pods of {others} change with {object}: put a hash of its content into its name or their "
            "annotations."
        )
    return (
        "Add to the pod annotations of {others} ({at}): checksum/config: {{{{ include (print $.Template.BasePath "
        f'"/{path}") . | sha256sum }}}}}}}}. Their pods then restart when {{object}} changes.'
    )


def _read_back(about: About) -> str:
    return (
        "Take the value of {object} at {at} from .Values with required, or from an existing Secret; or read it back: "
        '{{{{ ((lookup "v1" "Secret" .Release.Namespace "{name}").data).KEY | default NEW }}}}.'
    )


WAYS: dict[str, Way] = {
    "random-secret-rotates-on-upgrade": _read_back,
    "regenerated-cert-ca-mismatch": "Let cert-manager issue the certificate and inject the CA into {object} ({at}), or "
    "read both back with lookup. At least put a checksum of the certificate into the pod template.",
    "self-pruning-template-guard": "Render {object} always: remove the condition around it ({at}), and read its "
    "content back with lookup if it must not change.",
    "secret-produced-asynchronously": "Mount {other} in {object} ({there}) instead of reading it into the "
    "environment, or restart the pods with a reloader that watches it.",
    "certificate-secret-needs-cert-manager": "Make the Certificate of {other} and its issuer regular resources.",
    "image-or-registry-not-ready": "Run {object} ({at}) after its image is built.",
    "config-change-without-restart": _restarted,
}
