"""The page that describes the interface: whole, and from this server alone."""

import re

from engine.fake import FakeEngine
from tests.support.browser import browser, chromium_or_skip
from tests.support.running import running

FILES = ("/static/docs.js", "/static/docs.css", "/static/style.css")

SHOWN = """
(async () => {
  const note = document.querySelector("#note");
  for (let i = 0; i < 100 && note.textContent; i++) await new Promise((done) => setTimeout(done, 50));
  return {
    note: note.textContent,
    routes: [...document.querySelectorAll(".route summary")]
      .map((item) => item.innerText.replace(/\\s+/g, " ")),
    text: document.querySelector("main").textContent,
    loaded: performance.getEntriesByType("resource").map((item) => new URL(item.name).origin),
    origin: location.origin,
  };
})()
"""


async def test_it_refers_to_no_other_host() -> None:
    async with running(FakeEngine()) as server, server.client() as client:
        page = await client.get("/docs")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["content-security-policy"].startswith("default-src 'self'")
        assert set(FILES) < set(re.findall(r'(?:src|href)="([^"]+)"', page.text))
        for text in [page.text, *[(await client.get(path)).text for path in FILES]]:
            assert not re.search(r"\w+://|[\"'(]//", text)
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", page.text)


async def test_it_shows_every_route() -> None:
    async with running(FakeEngine()) as server, browser(chromium_or_skip()) as page:
        await page.goto(f"{server.url}/docs")
        shown = await page.js(SHOWN)
        async with server.client() as client:
            paths = (await client.get("/openapi.json")).json()["paths"]
        assert shown["note"] == ""
        for path, methods in paths.items():
            for method in methods:
                assert any(line.startswith(f"{method.upper()} {path}") for line in shown["routes"])
        for word in ("response_format", "trickle-ice-sdpfrag", "ErrorDetail", "retryable", "session.start"):
            assert word in shown["text"]
        assert set(shown["loaded"]) == {shown["origin"]}
        assert not page.console
