"""The commands. Each is one file that imports its dependencies when it runs, so that `--help` is fast."""

from __future__ import annotations

from cyclopts import App, Group

from seatrial import __version__
from seatrial.cli.apply import apply
from seatrial.cli.check import check
from seatrial.cli.compare_live import compare_live
from seatrial.cli.explain import explain
from seatrial.cli.fleet import fleet
from seatrial.cli.generate import GENERATE
from seatrial.cli.graph import graph
from seatrial.cli.help import Help
from seatrial.cli.preflight import preflight
from seatrial.cli.run import run
from seatrial.cli.serve import serve
from seatrial.cli.snapshot import snapshot
from seatrial.cli.verify import verify
from seatrial.cli.wait import wait

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
APP.command(check, group=REHEARSE, sort_key=1)
APP.command(run, group=REHEARSE, sort_key=2)
APP.command(fleet, group=REHEARSE, sort_key=3)
APP.command(serve, group=REHEARSE, sort_key=4)
APP.command(explain, group=READ, sort_key=5)
APP.command(graph, group=READ, sort_key=6)
GENERATE.group = (READ,)
APP.command(GENERATE)
APP.command(preflight, group=LIVE, sort_key=8)
APP.command(apply, group=LIVE, sort_key=9)
APP.command(wait, group=LIVE, sort_key=10)
APP.command(verify, group=LIVE, sort_key=11)
APP.command(snapshot, group=LIVE, sort_key=12)
APP.command(compare_live, group=LIVE, sort_key=13)
APP.register_install_completion_command(
    help="Install completion for bash, zsh or fish in your home directory.", sort_key=99
)
