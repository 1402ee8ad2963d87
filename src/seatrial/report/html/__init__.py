"""One self-contained HTML page: the timeline as a picture, and the findings in it. Needs no network and no build step.

The page is data (`data`), and the scripts and the style of `static/`, which are the same in every report. Text of
charts is only in the data, and the scripts write it as text. The content security policy of the page allows exactly
these scripts and this style, no other source, and no way to turn text into markup.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from seatrial.model.result import Result
from seatrial.report.html.data import data_of
from seatrial.report.page import Page

STATIC = Path(__file__).with_name("static")
SCRIPTS = ("data.js", "layout.js", "lanes.js", "details.js", "controls.js")
"""In this order they are one script."""
MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""Characters of JSON that HTML would interpret. What else could harm is not ASCII, and escaped for that reason."""


def render(result: Result, page: Page) -> str:
    script = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = (STATIC / "report.css").read_text(encoding="utf-8")
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>seatrial</title>
<style>{style}</style>
</head>
<body>
<noscript>This report needs JavaScript. The same as text: seatrial check -o full</noscript>
<div id="report"></div>
<script type="application/json" id="data">{_embedded(data_of(result))}</script>
<script>{script}</script>
</body>
</html>
"""


def _policy(script: str, style: str) -> str:
    """Trusted Types make the browser refuse `innerHTML` and its like, also to the page's own script."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _embedded(data: object) -> str:
    """JSON that no HTML parser can take for markup."""
    text = json.dumps(data, separators=(",", ":"))
    for character, escaped in MARKUP.items():
        text = text.replace(character, escaped)
    return text
