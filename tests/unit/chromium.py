"""A headless Chromium for tests, driven over a pipe with the DevTools protocol. Needs no package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage")


class Browser:
    """One tab. It remembers what a page writes to the console."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._left, self._id, self._session = to, back, b"", 0, ""
        self.console: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False, at: str = "") -> None:
        """A page, as soon as it has drawn itself."""
        self.console.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"{path.as_uri()}{at}")
        drawn = "new Promise(done => document.readyState === 'complete' ? done(1) : addEventListener('load', done))"
        self.run(f"{drawn}.then(() => 1)")

    def run(self, script: str) -> Any:
        """The value of a script in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def call(self, method: str, **params: Any) -> Any:
        self._id += 1
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps({"id": self._id, "method": method, "params": params, **session}).encode() + b"\0")
        while True:
            heard = self._message()
            if heard.get("id") == self._id:
                assert "error" not in heard, heard
                return heard["result"]
            if heard.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                self.console.append(json.dumps(heard["params"]))

    def _message(self) -> Any:
        while b"\0" not in self._left:
            more = os.read(self._back, 1 << 20)
            assert more, "Chromium has ended"
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Chromium with a profile of its own in `folder`."""
    theirs, ours = os.pipe()
    back, answers = os.pipe()
    command = f'exec "$0" "$@" 3<&{theirs} 4>&{answers}'
    flags = (*FLAGS, f"--user-data-dir={folder}", "--remote-debugging-pipe")
    process = subprocess.Popen(
        ["bash", "-c", command, str(PROGRAM), *flags],
        pass_fds=(theirs, answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    os.close(answers)
    try:
        yield Browser(ours, back)
    finally:
        process.terminate()
        process.wait()
        os.close(ours)
        os.close(back)
