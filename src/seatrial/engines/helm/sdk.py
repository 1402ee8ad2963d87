"""The real Helm as an engine, against any API. Knows Helm's flags and messages; renders nothing.

Helm's behaviour is not modelled here: the SDK is Helm 4.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from msgspec.structs import replace

from seatrial.engines import Api, Ended, Stalled, Stuck
from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.engines.helm.errors import in_order
from seatrial.engines.helm.waiting import waited_for
from seatrial.helm import hooks
from seatrial.helm import sdk as helmsdk
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref
from seatrial.readiness import helm3
from seatrial.readiness.kstatus import (
    is_ready_for_wait,
    is_ready_with_jobs,
    is_ready_without_wait,
)
from seatrial.sandbox.watchdog import limited
from seatrial.text.durations import seconds_in

NAME = "helm"
VERSION = helmsdk.version()
MAJOR = int(VERSION.partition(".")[0])

TIMEOUT = "5m0s"
"""Helm's own default of --timeout. A hang never takes so long here: it is a fixpoint."""
TIMEOUT_SECONDS = 300
STEP_TIMES = 10
"""How often the time limit of one rendering a whole step may take."""
PATIENCE_SECONDS = 0.02
FAREWELL_SECONDS = 5.0
"""How long a cancelled Helm may take to stop."""

DEPLOYS = ("install", "upgrade")
CHANGES = (*DEPLOYS, "rollback")
ACTS = (*CHANGES, "uninstall")
INSTALLS = "--install"
INSTALLS_OVER = ("", "uninstalled")
"""What a release is where `upgrade --install` installs it: unknown, or known from `uninstall --keep-history`."""
FLAGS: dict[str, tuple[tuple[str, ...], Body]] = {
    "--wait": (ACTS, {"wait": "watcher"}),
    "--wait=true": (ACTS, {"wait": "watcher"}),
    "--wait=watcher": (ACTS, {"wait": "watcher"}),
    "--wait=legacy": (ACTS, {"wait": "legacy"}),
    "--wait=hookOnly": (ACTS, {"wait": "hookOnly"}),
    "--wait-for-jobs": (CHANGES, {"wait_for_jobs": True}),
    "--atomic": (DEPLOYS, {"rollback_on_failure": True}),
    "--rollback-on-failure": (DEPLOYS, {"rollback_on_failure": True}),
    "--no-hooks": (ACTS, {"disable_hooks": True}),
    "--skip-crds": (DEPLOYS, {"skip_crds": True}),
    "--take-ownership": (DEPLOYS, {"take_ownership": True}),
    "--force": (CHANGES, {"force_replace": True}),
    "--force-replace": (CHANGES, {"force_replace": True}),
    "--force-conflicts": (CHANGES, {"force_conflicts": True}),
    "--server-side=false": (CHANGES, {"server_side_apply": "false"}),
    "--server-side=true": (CHANGES, {"server_side_apply": "true"}),
    "--cleanup-on-fail": (("upgrade", "rollback"), {"cleanup_on_fail": True}),
    "--create-namespace": (DEPLOYS, {"create_namespace": True}),
    "--replace": (("install",), {"replace": True}),
    INSTALLS: (("upgrade",), {}),
    "--reuse-values": (("upgrade",), {"reuse_values": True}),
    "--reset-values": (("upgrade",), {"reset_values": True}),
    "--reset-then-reuse-values": (("upgrade",), {"reset_then_reuse_values": True}),
    "--keep-history": (("uninstall",), {"keep_history": True}),
    "--cascade=background": (("uninstall",), {"deletion_propagation": "background"}),
    "--cascade=foreground": (("uninstall",), {"deletion_propagation": "foreground"}),
    "--cascade=orphan": (("uninstall",), {"deletion_propagation": "orphan"}),
    "--ignore-not-found": (("uninstall",), {"ignore_not_found": True}),
    "--disable-openapi-validation": (DEPLOYS, {"disable_openapi_validation": True}),
    "--skip-schema-validation": (DEPLOYS, {"skip_schema_validation": True}),
}
"""Helm's own flags: which acts take each, and the options of the library that it sets."""
WITHOUT_CONTEXT = ("rollback", "uninstall", "test")
"""Acts that the SDK cannot cancel."""


def run(act: HelmAct, api: Api) -> Ended:
    """Run one act of the real Helm against `api`; a hang is ended as soon as it is certain."""
    renders = f"helm {act.action} of {act.release}: render the chart"
    with helmsdk.connection(api.kubeconfig, act.namespace) as config, limited(renders, times=STEP_TIMES):
        return _acted(act, api, config)


def _acted(act: HelmAct, api: Api, config: helmsdk.Config) -> Ended:
    options, timeout = options_of(act)
    if INSTALLS in act.flags and (status := _status(config, act.release)) in INSTALLS_OVER:
        act = as_install(act)
        options = {**options_of(act)[0], **({"replace": True} if status else {})}
    context = helmsdk.HelmContext()
    call = _call(act, config, context, options)
    api.believes(_content(options), partial(waited_for, act.action))
    ended = _Call(call)
    stuck: Stuck | None = None
    while not is_final(stuck) and not ended.wait(PATIENCE_SECONDS):
        stuck = api.stuck(patience_seconds(timeout)) or stuck
        if api.silent():
            raise Stalled(f"helm {act.action} neither ended nor asked for anything any more")
    if is_final(stuck):
        if act.action in WITHOUT_CONTEXT:
            api.hang_up()
        else:
            context.cancel()
    # A cancelled Helm that waits for watchers may lock itself up. It is left behind then: nothing hears it any more.
    if ended.wait(FAREWELL_SECONDS):
        config.close()
        context.close()
    if stuck is not None and is_final(stuck):
        return Ended("hung", f"{stuck.sentence}. Helm times out after {timeout} (--timeout)", stuck=stuck)
    return Ended("failed", ended.error, stuck=stuck) if ended.error else Ended("ok")


def _content(options: Body) -> Callable[[Body], bool]:
    if options.get("wait") == "legacy":
        return helm3.is_ready_for_wait
    if "wait" not in options and "rollback_on_failure" not in options:
        return is_ready_without_wait
    return is_ready_with_jobs if "wait_for_jobs" in options else is_ready_for_wait


def is_final(stuck: Stuck | None) -> bool:
    """Whether a wait cannot end, not even by a deadline."""
    return stuck is not None and not stuck.passed_seconds


def options_of(act: HelmAct) -> tuple[Body, str]:
    """The SDK's options for Helm's own flags, and the timeout as the user wrote it."""
    options: Body = {"timeout_seconds": TIMEOUT_SECONDS}
    timeout = TIMEOUT
    for flag in act.flags:
        name, _, value = flag.replace(" ", "=", 1).partition("=")
        if name == "--timeout":
            timeout = value
            continue
        acts, said = FLAGS.get(flag, ((), {}))
        if act.action not in acts:
            known = ", ".join(sorted(known for known, (acts, _) in FLAGS.items() if act.action in acts)) or "none"
            raise CannotContinue(f"step {act.action}: the flag {flag} cannot be rehearsed; known are {known}")
        options.update(said)
    if act.action == "install" and "server_side_apply" in options:
        options["server_side_apply"] = options["server_side_apply"] == "true"  # `auto` is for what is there already
    if act.action == "upgrade":
        options.pop("create_namespace", None)  # only for what `--install` installs
    return options, timeout


def patience_seconds(timeout: str) -> float:
    return seconds_in(timeout) or TIMEOUT_SECONDS


def as_install(act: HelmAct) -> HelmAct:
    """What `upgrade --install` does where there is nothing to upgrade; flags that install does not know are dropped."""
    return replace(act, action="install", flags=tuple(flag for flag in act.flags if _is_for("install", flag)))


def _is_for(action: str, flag: str) -> bool:
    return flag.startswith("--timeout") or action in FLAGS.get(flag, ((), {}))[0]


def _status(config: helmsdk.Config, release: str) -> str:
    """Of the last revision; empty where Helm knows none."""
    try:
        return str(config.history(release)[-1]["status"])
    except helmsdk.HelmError:
        return ""


def expected(planned: PlannedStep[HelmAct], ended: Ended) -> Iterable[Ref]:
    """What should be in the cluster when an act on a release has succeeded."""
    resources = planned.release.resources if planned.release else ()
    return (resource.ref for resource in resources if _stays(resource.body, planned.step.action))


def _stays(body: Body, action: str) -> bool:
    if not hooks.is_hook(body):
        return True
    return hooks.runs_at(body, action) and hooks.SUCCEEDED not in hooks.delete_policies(body)


def _call(act: HelmAct, config: helmsdk.Config, context: helmsdk.HelmContext, options: Body) -> Callable[[], Any]:
    release, namespace = act.release, act.namespace
    match act.action:
        case "install" | "upgrade":
            assert act.chart is not None
            function = helmsdk.install if act.action == "install" else helmsdk.upgrade
            loaded = act.chart()
            return lambda: function(config, context, loaded, release, act.values, namespace=namespace, **options)
        case "rollback":
            return lambda: helmsdk.rollback(config, release, version=act.revision or None, **options)
        case "uninstall":
            return lambda: helmsdk.uninstall(config, release, **options)
        case "test":
            return lambda: helmsdk.run_tests(config, release, **options)
    raise CannotContinue(f"helm has no step {act.action}; it knows {', '.join(hooks.EVENTS_OF)}")


class _Call:
    """A call of the SDK in a thread of its own, so that a hang can be seen and ended."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.error = ""
        self._thread = threading.Thread(target=self._run, name="helm", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._call()
        except helmsdk.HelmError as wrong:
            self.error = in_order(str(wrong))
