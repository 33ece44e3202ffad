"""Headless Chromium over its DevTools protocol: enough of it to drive one page, with nothing to install."""

import asyncio
import base64
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--mute-audio",
    "--remote-debugging-port=0",
)
_KEY_CODES = {"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36}
_START_S = 30.0
_CALL_S = 30.0


class PageError(AssertionError):
    """JavaScript in the page threw."""


def find_chromium() -> str | None:
    """Path of a browser: ``CHROMIUM`` if set, else what is installed."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for name in _NAMES if (path := shutil.which(name))), None)


def chromium_or_skip() -> str:
    """Path of a browser. Without one the test is skipped, or fails in CI."""
    found = find_chromium()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have a Chromium: apt-get install -y chromium")
        pytest.skip("no Chromium is installed; apt-get install -y chromium, or set CHROMIUM")
    return found


class Page:
    """One tab. ``console`` collects what the page and the browser complained about."""

    def __init__(self, socket: ClientConnection) -> None:
        self.console: list[str] = []
        self._socket = socket
        self._calls: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name="devtools")

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a DevTools method."""
        number = len(self._calls) + 1
        answer = self._calls[number] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        async with asyncio.timeout(_CALL_S):
            return await answer

    async def goto(self, url: str) -> None:
        """Load a page, to its load event."""
        self._loaded.clear()
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(_CALL_S):
            await self._loaded.wait()

    async def js(self, code: str) -> Any:
        """The value of an expression or of a promise. Raises `PageError`."""
        answer = await self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    async def until(self, condition: str, within_s: float = 10.0) -> None:
        """Wait until a JavaScript expression is truthy."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        while not await self.js(f"Boolean({condition})"):
            if loop.time() > end:
                raise AssertionError(f"not within {within_s:g} s: {condition}")
            await asyncio.sleep(0.02)

    async def key(self, key: str, code: str | None = None, text: str | None = None) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            more: dict[str, Any] = {"text": text} if text and kind == "keyDown" else {}
            if key in _KEY_CODES:
                more["windowsVirtualKeyCode"] = _KEY_CODES[key]
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **more)

    async def type(self, text: str, delay_s: float = 0.0) -> None:
        """Type into whatever has the focus."""
        for char in text:
            await self.key(char, text=char)
            await asyncio.sleep(delay_s)

    async def size(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        """Set the window's size, the colour scheme, and whether it is a touch device."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        answer = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))  # noqa: ASYNC240

    async def close(self) -> None:
        """Let go of the tab."""
        self._reader.cancel()
        await asyncio.wait([self._reader])
        await self._socket.close()

    async def _read(self) -> None:
        async for raw in self._socket:
            message = json.loads(raw)
            if "id" in message:
                answer = self._calls[message["id"]]
                if answer.done():
                    continue
                if "error" in message:
                    answer.set_exception(PageError(message["error"]["message"]))
                else:
                    answer.set_result(message["result"])
            else:
                self._event(message["method"], message["params"])

    def _event(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                values = (str(arg.get("value", arg.get("description"))) for arg in params["args"])
                self.console.append(" ".join(values))
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.console.append(details.get("exception", {}).get("description") or details["text"])
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                entry = params["entry"]
                self.console.append(f"{entry['text']} ({entry.get('url', '')})")


@asynccontextmanager
async def browser(executable: str, *, autoplay: bool = True) -> AsyncIterator[Page]:
    """Run the browser with one blank tab; it is gone at the end of the block.

    Without ``autoplay`` it plays nothing before a user's gesture, as browsers do.
    """
    policy = "no-user-gesture-required" if autoplay else "user-gesture-required"
    with tempfile.TemporaryDirectory(prefix="voxwire-browser-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            executable,
            *_FLAGS,
            f"--autoplay-policy={policy}",
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            page = await _attach(Path(profile))
            try:
                yield page
            finally:
                await page.close()
        finally:
            process.terminate()
            try:
                async with asyncio.timeout(5):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def _attach(profile: Path) -> Page:
    announced = profile / "DevToolsActivePort"
    async with asyncio.timeout(_START_S):
        while not announced.exists() or announced.read_text().count("\n") < 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        port, path = announced.read_text().split()
        async with open_socket(f"ws://127.0.0.1:{port}{path}", proxy=None) as root:
            await root.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
            targets = json.loads(await root.recv())["result"]["targetInfos"]
        tab = next(target["targetId"] for target in targets if target["type"] == "page")
        socket = await open_socket(
            f"ws://127.0.0.1:{port}/devtools/page/{tab}", proxy=None, max_size=None, ping_interval=None
        )
    page = Page(socket)
    for domain in ("Page", "Runtime", "Log"):
        await page.call(f"{domain}.enable")
    return page
