"""The real Helm, in this process. The only module that knows the option names of its C library. Makes no decisions.

The library accepts more options than the wheel's Python wrapper passes on (see docs/adr/0002), so calls go to `_native`
directly. `tests/conformance/test_helm_sdk.py` fails when a new version of the wheel changes any of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from seatrial.helm.environment import QPS
from seatrial.helm.library import refuse_small_system
from seatrial.model import lazy_re

refuse_small_system()

from seatrial.model.errors import CannotContinue  # noqa: E402
from seatrial.model.resource import Body  # noqa: E402
from seatrial.sandbox import folders  # noqa: E402

try:
    from helm_python import Chart, Config, HelmCancelledError, HelmContext, HelmError
    from helm_python import _native as native
except (ImportError, OSError) as _why:  # This platform has no wheel of it: a helm binary takes its place.
    missing = str(_why)
else:
    missing = ""
"""Why there is no library; empty if there is one."""

__all__ = ["Chart", "Config", "HelmCancelledError", "HelmContext", "HelmError"]

FIELD_MANAGER = Path(sys.orig_argv[0]).name
"""The field manager that the library writes: the name of the program that loaded it. Helm's own is `helm`."""
MODELLED_VERSION = "4.2.3"
"""That of the library which this was written for."""

UPWARDS = "/.." * 32
SAFE_PATH = lazy_re.compile(r"[\w/.()]+", re.ASCII)


def version() -> str:
    """The first call of the library waits for Go's runtime, which starts in threads of its own: not at import."""
    return MODELLED_VERSION if missing else native.helm_sdk_version().removeprefix("v")


def require() -> None:
    if missing:
        words = "name a helm with --helm-binary PATH, which renders and deploys in its place"
        raise CannotContinue(f"load Helm's library (helm-python-sdk): {missing}; {words}")


@contextmanager
def connection(kubeconfig: Callable[[str, str], str], namespace: str) -> Iterator[Config]:
    """A Helm connection to a server, and the files Helm writes for it. Both are removed at the end.

    Helm caches discovery in the user's home, by host and port. That cache would outlive this process and answer for
    another cluster. `KUBECACHEDIR` cannot be set from here: the Go runtime copies the environment at process start. But
    the name of the cache folder contains the whole address, and `..` in its path leads out of any folder. So
    `kubeconfig`, which takes the namespace and a path, gives the server a URL below a path that ends in our folder.
    """
    default = folders.parent()
    parent = default if SAFE_PATH.fullmatch(default) else "/tmp"
    with folders.temporary("seatrial_", parent) as folder:
        file = Path(folder, "kubeconfig")
        file.write_text(kubeconfig(namespace, f"{UPWARDS}{folder}"))
        yield Config(kubeconfig_path=file, namespace=namespace, qps=QPS, burst_limit=QPS)


def render(chart: Chart, values: Body, **options: Any) -> dict[str, str]:
    """Rendered text by template path (`demo/templates/cm.yaml`), NOTES.txt and blank files included.

    Options: name, namespace, revision, is_install, is_upgrade, kube_version, api_versions.
    """
    text = native.call_string("helm_render", chart._raw(), json.dumps(values), _options(options))
    return cast(dict[str, str], json.loads(text))


def install(config: Config, context: HelmContext, chart: Chart, name: str, values: Body, **options: Any) -> Body:
    """More options than the wrapper's: disable_hooks, skip_crds, take_ownership, server_side_apply, force_conflicts."""
    return _release("helm_install", config, context, chart, name, values, options)


def upgrade(config: Config, context: HelmContext, chart: Chart, name: str, values: Body, **options: Any) -> Body:
    return _release("helm_upgrade", config, context, chart, name, values, options)


def rollback(config: Config, name: str, **options: Any) -> None:
    native.call_status("helm_rollback", config._raw(), name, _options(options))


def uninstall(config: Config, name: str, **options: Any) -> Body:
    text = native.call_string("helm_uninstall", config._raw(), name, _options(options))
    return cast(Body, json.loads(text))


def run_tests(config: Config, name: str, **options: Any) -> Body:
    text = native.call_string("helm_test_run", config._raw(), name, _options(options))
    return cast(Body, json.loads(text))


def parse_set(flavour: str, expression: str) -> Body:
    """Helm's parser for `--set` (flavour ""), `--set-string`, `--set-json`, `--set-literal` and `--set-file`."""
    function = f"helm_strvals_parse_{flavour}" if flavour else "helm_strvals_parse"
    return cast(Body, json.loads(native.call_string(function, expression)))


def _release(
    function: str, config: Config, context: HelmContext, chart: Chart, name: str, values: Body, options: Body
) -> Body:
    handles = (config._raw(), context._raw(), chart._raw(), None)
    text = native.call_string(function, *handles, name, json.dumps(values), _options(options))
    return cast(Body, json.loads(text))


def _options(options: Body) -> str | None:
    given = {key: value for key, value in options.items() if value is not None}
    return json.dumps(given) if given else None
