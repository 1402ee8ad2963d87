"""A parsed call of kubectl or oc: its verb, arguments and flags. Knows nothing of API requests."""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.model.resource import Body

# Flags with a value; all others are assumed to have none.
_VALUED = """
    -n --namespace -l --selector -o --output -f --filename -k --kustomize -c --container -v --v --for --timeout
    --replicas --image --type --patch --field-selector --context --kubeconfig --cluster --user --server -s --token --as
    --as-group --request-timeout --from --from-literal --from-file --from-env-file --tail --since --grace-period
    --sort-by --template --serviceaccount --role --clusterrole --group --verb --resource --resource-name --schedule
    --restart --env --port --target-port --name --duration --audience --revision --to-revision --current-replicas
    --docker-server --docker-username --docker-password --docker-email --cert --key --value --description --hard
    --from-dir --from-archive --from-repo --from-build --commit --param -p --field-manager --subresource --timestamp
    --patch-file --cascade --local-storage --tcp --rule --class --non-resource-url --resource-version
"""
WITH_VALUE = frozenset(_VALUED.split())
WITHOUT_VALUE = {"logs": ("-f", "-p"), "log": ("-f", "-p"), "start-build": ("-F", "-w")}
"""One-letter flags without a value in these commands, though they have one in others."""
TWO_WORDS = ("rollout", "set", "policy", "adm")
SYNONYMS = {
    "--namespace": "-n",
    "--selector": "-l",
    "--filename": "-f",
    "--kustomize": "-k",
    "--all-namespaces": "-A",
    "--watch": "-w",
    "--watch-only": "-w",
    "--output": "-o",
}


class KubectlCall(Struct, frozen=True):
    """A parsed call of kubectl or oc."""

    verb: str
    words: tuple[str, ...]
    """Without the verb."""
    flags: dict[str, str]
    namespace: str
    stdin: str
    crds: tuple[Body, ...]
    feeder: tuple[str, ...]
    given: tuple[tuple[str, str], ...] = ()
    """All flags in order, also those that are given more than once."""
    what: str = ""
    """`image` in `set image`."""

    def every(self, flag: str) -> list[str]:
        """The values of a flag that may be given more than once."""
        return [value for name, value in self.given if name == flag]


def parse_call(
    words: tuple[str, ...], namespace: str, stdin: str, crds: tuple[Body, ...], feeder: tuple[str, ...]
) -> KubectlCall:
    plain: list[str] = []
    given: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        without_value = WITHOUT_VALUE.get(plain[0], ()) if plain else ()
        if not equals and re.fullmatch(r"-[nlfoc][^-].*|-f-", word):
            name, value = word[:2], word[2:]
        elif not equals and name in WITH_VALUE and name not in without_value and rest:
            value = rest.pop(0)
        given.append((SYNONYMS.get(name, name), value))
    verb = " ".join(plain[:2]) if plain[:1] and plain[0] in TWO_WORDS else "".join(plain[:1])
    start, flags = len(verb.split()), dict(given)
    verb, _, what = verb.partition(" ") if verb.startswith("set ") else (verb, "", "")
    where = "" if "-A" in flags else flags.get("-n", namespace)
    return KubectlCall(verb, tuple(plain[start:]), flags, where, stdin, crds, feeder, tuple(given), what)
