"""The real Helm, as an engine: acts on any API it is given. Knows Helm's flags and words; renders nothing.

Helm's behaviour is not modelled here: the SDK is Helm 4.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from seatrial.engines import Api, Ended, Stalled, Stuck
from seatrial.engines.durations import seconds_in
from seatrial.helm import hooks
from seatrial.helm import sdk as helmsdk
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref
from seatrial.model.trial import Step
from seatrial.readiness import helm3
from seatrial.readiness.kstatus import (
    is_ready_for_wait,
    is_ready_with_jobs,
    is_ready_without_wait,
)

NAME = "helm"
VERSION = helmsdk.VERSION
MAJOR = int(VERSION.partition(".")[0])

UNORDERED: dict[str, tuple[str, ...]] = {"install": ("apply", "create"), "uninstall": ("delete",)}
"""What Helm sends at once for all objects of a kind; everything else is one after another."""

TIMEOUT = "5m0s"
"""Helm's own default of --timeout. A hang never takes so long here: it is a fixpoint."""
TIMEOUT_SECONDS = 300
PATIENCE_SECONDS = 0.02
FAREWELL_SECONDS = 5.0
"""How long a Helm that was told to stop may take to."""

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


def act(
    step: Step,
    api: Api,
    *,
    release: str,
    namespace: str,
    chart: Callable[[], helmsdk.Chart] | None,
    values: Body,
) -> Ended:
    """Play one step with the real Helm against `api`; a hang is ended as soon as it is certain."""
    with helmsdk.connection(api.kubeconfig, namespace) as config:
        return _acted(step, api, config, release, namespace, chart, values)


def _acted(
    step: Step,
    api: Api,
    config: helmsdk.Config,
    release: str,
    namespace: str,
    chart: Callable[[], helmsdk.Chart] | None,
    values: Body,
) -> Ended:
    options, timeout = options_of(step)
    if INSTALLS in step.flags and (status := _status(config, release)) in INSTALLS_OVER:
        step = as_install(step)
        options = {**options_of(step)[0], **({"replace": True} if status else {})}
    context = helmsdk.HelmContext()
    call = _call(step, config, context, release, namespace, chart, values, options)
    api.believes(_content(options))
    ended = _Call(call)
    stuck: Stuck | None = None
    while not is_final(stuck) and not ended.wait(PATIENCE_SECONDS):
        stuck = api.stuck(patience_seconds(timeout)) or stuck
        if api.silent():
            raise Stalled(f"helm {step.action} neither ended nor asked for anything any more")
    if is_final(stuck):
        if step.action in WITHOUT_CONTEXT:
            api.hang_up()
        else:
            context.cancel()
    # A cancelled Helm that waits for watchers may lock itself up. It is left behind then: nobody hears it any more.
    if ended.wait(FAREWELL_SECONDS):
        config.close()
        context.close()
    if stuck is not None and is_final(stuck):
        return Ended("hung", f"{stuck.sentence}. Helm would fail when --timeout ({timeout}) is over", stuck=stuck)
    return Ended("failed", ended.error, stuck=stuck) if ended.error else Ended("ok")


def _content(options: Body) -> Callable[[Body], bool]:
    if options.get("wait") == "legacy":
        return helm3.is_ready_for_wait
    if "wait" not in options and "rollback_on_failure" not in options:
        return is_ready_without_wait
    return is_ready_with_jobs if "wait_for_jobs" in options else is_ready_for_wait


def is_final(stuck: Stuck | None) -> bool:
    """Whether nothing will come of a wait, not even that a deadline passes."""
    return stuck is not None and not stuck.passed_seconds


def options_of(step: Step) -> tuple[Body, str]:
    """The SDK's options for Helm's own flags, and the timeout as the user wrote it."""
    options: Body = {"timeout_seconds": TIMEOUT_SECONDS}
    timeout = TIMEOUT
    for flag in step.flags:
        name, _, value = flag.replace(" ", "=", 1).partition("=")
        if name == "--timeout":
            timeout = value
            continue
        acts, said = FLAGS.get(flag, ((), {}))
        if step.action not in acts:
            known = ", ".join(sorted(known for known, (acts, _) in FLAGS.items() if step.action in acts)) or "none"
            raise CannotContinue(f"step {step.action}: the flag {flag} cannot be rehearsed; known are {known}")
        options.update(said)
    if step.action == "install" and "server_side_apply" in options:
        options["server_side_apply"] = options["server_side_apply"] == "true"  # `auto` is for what is there already
    if step.action == "upgrade":
        options.pop("create_namespace", None)  # only for what `--install` installs
    return options, timeout


def patience_seconds(timeout: str) -> float:
    return seconds_in(timeout) or TIMEOUT_SECONDS


def as_install(step: Step) -> Step:
    """What `upgrade --install` does where there is nothing to upgrade; flags that install does not know are dropped."""
    return replace(step, action="install", flags=tuple(flag for flag in step.flags if _is_for("install", flag)))


def _is_for(action: str, flag: str) -> bool:
    return flag.startswith("--timeout") or action in FLAGS.get(flag, ((), {}))[0]


def _status(config: helmsdk.Config, release: str) -> str:
    """Of the last revision; empty where Helm knows none."""
    try:
        return str(config.history(release)[-1]["status"])
    except helmsdk.HelmError:
        return ""


def expected(release: Release, action: str) -> tuple[Ref, ...]:
    """What should be in the cluster when an act on this release has succeeded."""
    return tuple(dict.fromkeys(r.ref for r in release.resources if _stays(r.body, action)))


def _stays(body: Body, action: str) -> bool:
    if not hooks.is_hook(body):
        return True
    return hooks.runs_at(body, action) and hooks.SUCCEEDED not in hooks.delete_policies(body)


def _call(
    step: Step,
    config: helmsdk.Config,
    context: helmsdk.HelmContext,
    release: str,
    namespace: str,
    chart: Callable[[], helmsdk.Chart] | None,
    values: Body,
    options: Body,
) -> Callable[[], Any]:
    match step.action:
        case "install" | "upgrade":
            assert chart is not None
            function = helmsdk.install if step.action == "install" else helmsdk.upgrade
            loaded = chart()
            return lambda: function(config, context, loaded, release, values, namespace=namespace, **options)
        case "rollback":
            return lambda: helmsdk.rollback(config, release, version=step.revision or None, **options)
        case "uninstall":
            return lambda: helmsdk.uninstall(config, release, **options)
        case "test":
            return lambda: helmsdk.run_tests(config, release, **options)
    raise CannotContinue(f"helm has no step {step.action}; it knows {', '.join(hooks.EVENTS_OF)}")


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
            self.error = str(wrong)
