"""The real Helm, as an engine: acts on any API it is given. Knows Helm's flags and words; renders nothing.

Helm's behaviour is not modelled here: the SDK is Helm 4.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from seatrial import helmsdk, hooks
from seatrial.case import Release
from seatrial.engines import Api, Ended, Stuck
from seatrial.errors import CannotContinue
from seatrial.readiness.kstatus import content_as_hook, content_when_waited_for
from seatrial.resource import Body, Ref
from seatrial.trial import Step

NAME = "helm"
VERSION = helmsdk.VERSION

UNORDERED: dict[str, tuple[str, ...]] = {"install": ("apply", "create"), "uninstall": ("delete",)}
"""What Helm sends at once for all objects of a kind; everything else is one after another."""

TIMEOUT = "5m0s"
"""Helm's own default of --timeout. A hang never takes so long here: it is a fixpoint."""
TIMEOUT_SECONDS = 300
PATIENCE_SECONDS = 0.02

FLAGS: dict[str, Body] = {
    "--wait": {"wait": "watcher"},
    "--wait=true": {"wait": "watcher"},
    "--wait=watcher": {"wait": "watcher"},
    "--wait=legacy": {"wait": "legacy"},
    "--wait=hookOnly": {"wait": "hookOnly"},
    "--wait-for-jobs": {"wait_for_jobs": True},
    "--atomic": {"rollback_on_failure": True},
    "--rollback-on-failure": {"rollback_on_failure": True},
    "--no-hooks": {"disable_hooks": True},
    "--skip-crds": {"skip_crds": True},
    "--take-ownership": {"take_ownership": True},
    "--force": {"force_replace": True},
    "--force-replace": {"force_replace": True},
    "--force-conflicts": {"force_conflicts": True},
    "--server-side=false": {"server_side_apply": False},
    "--cleanup-on-fail": {"cleanup_on_fail": True},
    "--create-namespace": {"create_namespace": True},
    "--reuse-values": {"reuse_values": True},
    "--reset-values": {"reset_values": True},
    "--reset-then-reuse-values": {"reset_then_reuse_values": True},
    "--keep-history": {"keep_history": True},
    "--disable-openapi-validation": {"disable_openapi_validation": True},
}
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
    options, timeout = options_of(step)
    config = helmsdk.Config(kubeconfig_content=api.kubeconfig(namespace), namespace=namespace)
    context = helmsdk.HelmContext()
    call = _call(step, config, context, release, namespace, chart, values, options)
    waits = "wait" in options or "rollback_on_failure" in options
    api.believes(content_when_waited_for if waits else content_as_hook)
    ended = _Call(call)
    stuck: Stuck | None = None
    while not ended.wait(PATIENCE_SECONDS):
        if stuck is None and (stuck := api.stuck()) is not None:
            if step.action in WITHOUT_CONTEXT:
                api.hang_up()
            else:
                context.cancel()
    config.close()
    context.close()
    if stuck is not None:
        return Ended("hung", f"{stuck.sentence}. Helm would fail when --timeout ({timeout}) is over", stuck=stuck)
    return Ended("failed", ended.error) if ended.error else Ended("ok")


def options_of(step: Step) -> tuple[Body, str]:
    """The SDK's options for Helm's own flags, and the timeout as the user wrote it."""
    options: Body = {"timeout_seconds": TIMEOUT_SECONDS}
    timeout = TIMEOUT
    for flag in step.flags:
        name, _, value = flag.replace(" ", "=", 1).partition("=")
        if name == "--timeout":
            timeout = value
            continue
        if flag not in FLAGS:
            known = ", ".join(sorted(FLAGS))
            raise CannotContinue(f"step {step.action}: the flag {flag} is not one that can be rehearsed ({known})")
        options.update(FLAGS[flag])
    return options, timeout


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
