"""The verbs. Each is one file, which imports what it works with when it is used: `--help` is quick."""

from __future__ import annotations

from cyclopts import App

from seatrial import __version__
from seatrial.cli.check import check
from seatrial.cli.explain import explain
from seatrial.cli.graph import graph
from seatrial.cli.help import Help
from seatrial.cli.run import run
from seatrial.cli.serve import serve

ABOUT = """Rehearse a Kubernetes release before it reaches a cluster.

Runs the real Helm, or Argo CD, Flux, Pulumi and kubectl as models, against a Kubernetes API in memory, and says which
step breaks or destroys something, why, and where it was written. No cluster, no network.

  seatrial check ./chart                   install, the same again, uninstall
  seatrial check ./chart --from ./old      from the old one to the new one and back
  seatrial check ./infra                   a Pulumi program: a folder with a Pulumi.yaml
  seatrial check ./clusters/prod           what Flux is pointed at
  seatrial check ./overlays/prod           a kustomization, or any manifests: kubectl
  seatrial check ./apps --engine argocd    Applications, or a chart, as Argo CD syncs them
  seatrial check ./new --compare ./old     what a change mends, and what it does not"""

APP = App(
    name="seatrial",
    help=ABOUT,
    help_format="plaintext",
    help_formatter=Help(),
    version=f"seatrial {__version__}",
    version_flags=("--version",),
    help_flags=("--help", "-h"),
    suppress_keyboard_interrupt=False,  # the front door says how it ends
)
APP.command(check, sort_key=1)
APP.command(run, sort_key=2)
APP.command(graph, sort_key=3)
APP.command(serve, sort_key=4)
APP.command(explain, sort_key=5)
