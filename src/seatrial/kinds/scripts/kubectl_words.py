"""A call of kubectl or oc taken apart: its verb, its words, its flags. Knows nothing of what is asked of the API."""

from __future__ import annotations

import re

from msgspec import Struct

from seatrial.model.resource import Body

# Flags that take a word; all others are taken to stand alone.
_VALUED = """
    -n --namespace -l --selector -o --output -f --filename -k --kustomize -c --container -v --v --for --timeout
    --replicas --image --type --patch --field-selector --context --kubeconfig --cluster --user --server -s --token --as
    --as-group --request-timeout --from --from-literal --from-file --from-env-file --tail --since --grace-period
    --sort-by --template --serviceaccount --role --clusterrole --group --verb --resource --resource-name --schedule
    --restart --env --port --target-port --name --duration --audience --revision --to-revision --current-replicas
    --docker-server --docker-username --docker-password --docker-email --cert --key --value --description --hard
    --from-dir --from-archive --from-repo --from-build --commit --param -p --field-manager --subresource --timestamp
"""
VALUED = frozenset(_VALUED.split())
ALONE = {"logs": ("-f", "-p"), "log": ("-f", "-p"), "start-build": ("-F", "-w")}
"""Of these commands, flags of one letter that take no word though others' do."""
TWO_WORDS = ("rollout", "set", "policy", "adm")
SAME = {
    "--namespace": "-n",
    "--selector": "-l",
    "--filename": "-f",
    "--kustomize": "-k",
    "--all-namespaces": "-A",
    "--watch": "-w",
    "--watch-only": "-w",
    "--output": "-o",
}


class Call(Struct, frozen=True):
    """A call of kubectl or oc, taken apart."""

    verb: str
    words: tuple[str, ...]
    flags: dict[str, str]
    namespace: str
    stdin: str
    definitions: tuple[Body, ...]
    feeder: tuple[str, ...]


def taken_apart(
    words: tuple[str, ...], namespace: str, stdin: str, definitions: tuple[Body, ...], feeder: tuple[str, ...]
) -> Call:
    plain: list[str] = []
    flags: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        alone = ALONE.get(plain[0], ()) if plain else ()
        if not equals and re.fullmatch(r"-[nlfoc][^-].*|-f-", word):
            name, value = word[:2], word[2:]
        elif not equals and name in VALUED and name not in alone and rest:
            value = rest.pop(0)
        flags[SAME.get(name, name)] = value
    verb = " ".join(plain[:2]) if plain[:1] and plain[0] in TWO_WORDS else "".join(plain[:1])
    start = len(verb.split())
    verb = "set" if verb.startswith("set ") else verb
    where = "" if "-A" in flags else flags.get("-n", namespace)
    return Call(verb, tuple(plain[start:]), flags, where, stdin, definitions, feeder)
