"""The commands. Each is one file, imported when it is called, that imports its dependencies when it runs."""

from __future__ import annotations

from functools import cache

from cyclopts import App, Group, Parameter

from seatrial import __version__
from seatrial.cli.cluster import ClusterFlags
from seatrial.cli.flags import FaultFlags, FindingFlags, FixFlags, OutputFlags, ReleaseFlags
from seatrial.cli.help import Help

ABOUT = """Rehearse a Kubernetes release before it reaches a cluster.

Runs the real Helm, or simulates Argo CD, Flux, Pulumi and kubectl, against a Kubernetes API in memory. Reports which
step breaks or destroys something, why, and the line to change. No cluster, no network.

  seatrial check ./chart                   install, upgrade to the same chart, uninstall
  seatrial check ./chart --from ./old      install the old chart, upgrade, roll back, uninstall, reinstall
  seatrial check ./infra                   a Pulumi program: a folder with a Pulumi.yaml
  seatrial check ./clusters/prod           a folder that Flux reconciles
  seatrial check ./overlays/prod           a kustomization or any manifests, applied with kubectl
  seatrial check ./apps --engine argocd    Argo CD Applications, or a chart as Argo CD syncs it
  seatrial check ./new --compare ./old     which findings a change fixes, adds and keeps
  seatrial check ./chart --fix             write the fixes that are proven into your files"""

REHEARSE = Group("Rehearse", sort_key=1)
READ = Group("Understand and write", sort_key=2)
LIVE = Group("With a real cluster", sort_key=3)

APP = App(
    name="seatrial",
    help=ABOUT,
    help_format="plaintext",
    help_formatter=Help(),
    version=f"seatrial {__version__}",
    version_flags=("--version",),
    help_flags=("--help", "-h"),
    group_commands=Group("Options", sort_key=9),
    suppress_keyboard_interrupt=False,  # main() turns it into an exit code
)
COMMANDS = {
    "check": ("check:check", REHEARSE, 1),
    "run": ("run:run", REHEARSE, 2),
    "fleet": ("fleet:fleet", REHEARSE, 3),
    "serve": ("serve:serve", REHEARSE, 4),
    "explain": ("explain:explain", READ, 5),
    "generate": ("generate:GENERATE", READ, 6),
    "graph": ("graph:graph", READ, 6),
    "preflight": ("preflight:preflight", LIVE, 8),
    "apply": ("apply:apply", LIVE, 9),
    "wait": ("wait:wait", LIVE, 10),
    "verify": ("verify:verify", LIVE, 11),
    "snapshot": ("snapshot:snapshot", LIVE, 12),
    "compare-live": ("compare_live:compare_live", LIVE, 13),
}
"""Where each command is, its group, and its place in `--help`."""
for _flags in (ReleaseFlags, OutputFlags, FindingFlags, FaultFlags, FixFlags, ClusterFlags):
    Parameter(name="*")(_flags)  # The name of the group is no part of the names of its flags.
for _name, (_place, _group, _key) in COMMANDS.items():
    APP.command(f"seatrial.cli.{_place}", name=_name, group=_group, sort_key=_key)


@cache
def all_loaded() -> None:
    """Load what only lists of all commands need: help, completion and suggestions."""
    APP.resolved_commands()
    APP.register_install_completion_command(
        help="Install completion for bash, zsh or fish in your home directory.", sort_key=99
    )
