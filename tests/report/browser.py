"""A headless Chromium, driven over a pipe (DevTools protocol): how a page looks, what it asks for and complains of."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 120
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
AT_3_AND_4 = """
import os, sys
ours = [os.dup(int(number)) for number in sys.argv[1:3]]
high = [os.dup2(each, 50 + place) for place, each in enumerate(ours)]
for place, each in enumerate(high):
    os.dup2(each, 3 + place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A browser reads its commands at 3 and answers at 4."""


class Browser:
    """One page of one browser. `events` holds what the browser said of its own accord."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        arguments = [str(to_browser), str(from_browser), CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", AT_3_AND_4, *arguments],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.events: list[dict] = []
        self._rest, self._n, self._session = b"", 0, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = None
            self.send("Browser.close")
            self._process.wait(SECONDS)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            os.close(self._write)
            os.close(self._read)

    def send(self, method: str, **parameters: object) -> dict:
        """One command and its answer; what comes before the answer are events."""
        self._n += 1
        asked = {"id": self._n, "method": method, "params": parameters}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._n:
                assert "error" not in said, said["error"]
                return said["result"]
            self.events.append(said)

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Show a file at this width, and wait until it is loaded."""
        self.events.clear()
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        self.run("document.fonts.ready.then(() => 1)")

    def run(self, script: str) -> object:
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def asked_for(self) -> list[str]:
        """Every address that the page asked for."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        """What stands in the console: errors, refusals of the content security policy, exceptions."""
        loud = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in loud]

    def picture(self, height: int | None = None) -> bytes:
        """The whole page as PNG, or its first so many pixels."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        taken = self.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(taken["data"])

    def printed(self) -> bytes:
        """The page as PDF, on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        return base64.b64decode(self.send("Page.printToPDF", printBackground=False, **paper)["data"])

    def _next(self) -> dict:
        until = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            got = os.read(self._read, 1 << 20)
            assert got, "the browser is gone"
            self._rest += got
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)
