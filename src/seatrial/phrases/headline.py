"""Headlines: at most 100 characters. Where one is longer, names give way, the objects of a finding stay whole."""

from __future__ import annotations

import re

HEADLINE_MAX = 100
NAME_MAX = 24
"""A name is cut in the middle only if it is longer than this."""
SHORT_KINDS = {"CustomResourceDefinition/": "CRD ", "PersistentVolumeClaim/": "PVC "}
_NAMESPACE = re.compile(r"\b([A-Z]\w+[/ ])[a-z0-9.-]+/(?=\w)")
_NAME = re.compile(rf"(?<=[/ ])[a-z0-9.-]{{{NAME_MAX + 1},}}")


def fit(headline: str) -> str:
    """A headline that fits: with short kinds, then without namespaces, then with long names cut in the middle."""
    if len(headline) <= HEADLINE_MAX:
        return headline
    for kind, short in SHORT_KINDS.items():
        headline = headline.replace(kind, short)
    if len(headline) > HEADLINE_MAX:
        headline = _NAMESPACE.sub(r"\1", headline)
    if len(headline) > HEADLINE_MAX:
        headline = _NAME.sub(lambda name: _cut(name[0]), headline)
    return headline


def fit_quote(before: str, quote: str) -> str:
    """A headline that ends with words of an engine, of which it keeps the first that fit."""
    whole = fit(before + quote)
    if len(whole) <= HEADLINE_MAX:
        return whole
    return whole[: HEADLINE_MAX - len(" ...")].rpartition(" ")[0].rstrip(" :,") + " ..."


def _cut(name: str) -> str:
    half = (NAME_MAX - len("...")) // 2
    return f"{name[:half]}...{name[-half:]}"
