"""Headlines: at most 100 characters. Where one is longer, names give way, the objects of a finding stay whole."""

from __future__ import annotations

import re

from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.finding import Finding

HEADLINE_MAX = 100
NAME_LIMITS = (24, 20, 16, 12)
"""Names that are longer are cut in the middle: to the first of these lengths with which the headline fits."""
SHORT_KINDS = {
    "CustomResourceDefinition/": "CRD ",
    "PersistentVolumeClaim/": "PVC ",
    "HorizontalPodAutoscaler/": "HPA ",
    "PodDisruptionBudget/": "PDB ",
    "ValidatingWebhookConfiguration/": "webhook configuration ",
    "MutatingWebhookConfiguration/": "webhook configuration ",
}
_NAMESPACE = lazy_re.compile(r"\b([A-Z]\w+/|(?:PVC|HPA|PDB) )[a-z0-9.-]+/(?=\w)")
_NAME = lazy_re.compile(r'(?<=[/ "])[a-z0-9.-]+')
_CUT = " ..."


def fitted(finding: Finding, *endings: str) -> Finding:
    """A finding whose headline fits, with the first of these endings with which it does.

    What does not fit even with short names is cut, and whole in the first detail.
    """
    for ending in endings or ("",):
        headline = fit(finding.message + ending)
        if len(headline) <= HEADLINE_MAX:
            return replace(finding, message=headline)
    whole = finding.message + (endings or ("",))[0]
    begins = _cut_at_end(_with_names_up_to(NAME_LIMITS[0], _with_short_kinds(whole)))
    return replace(finding, message=begins, details=(f"{whole}.", *finding.details))


def fit(headline: str) -> str:
    """A headline that fits: with short kinds, then without namespaces, then with long names cut in the middle."""
    if len(headline) <= HEADLINE_MAX:
        return headline
    headline = whole = _with_short_kinds(headline)
    for limit in NAME_LIMITS:
        if len(headline) > HEADLINE_MAX:
            headline = _with_names_up_to(limit, whole)
    return headline


def fit_quote(before: str, quote: str) -> str:
    """A headline that ends with words of an engine, of which it keeps the first that fit."""
    whole = _with_short_kinds(before + quote)
    return whole if len(whole) <= HEADLINE_MAX else _cut_at_end(whole)


def _with_short_kinds(headline: str) -> str:
    """With short kinds, and without namespaces, as far as that is needed."""
    if len(headline) > HEADLINE_MAX:
        for kind, short in SHORT_KINDS.items():
            headline = headline.replace(kind, short)
    return _NAMESPACE.sub(r"\1", headline) if len(headline) > HEADLINE_MAX else headline


def _cut_at_end(headline: str) -> str:
    return headline[: HEADLINE_MAX - len(_CUT)].rpartition(" ")[0].rstrip(" :,") + _CUT


def _with_names_up_to(limit: int, headline: str) -> str:
    half = (limit - len("...")) // 2

    def cut(found: re.Match[str]) -> str:
        name = found[0]
        return f"{name[:half]}...{name[-half:]}" if len(name) > limit else name

    return _NAME.sub(cut, headline)
