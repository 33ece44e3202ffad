"""WebRTC in headless Chromium, with the JavaScript client: what is heard, when, and how it is interrupted."""

from collections.abc import Iterator
from typing import Any

import pytest

from scripts.bench.served import free_port
from tests.support.browser import browser, chromium_or_skip
from tests.support.fake_server import fake_server
from tests.support.heard import heard, lines, tap

_READY = "document.querySelector('#state').dataset.state === 'ready'"
_TEXT = "One two three four five six seven eight nine ten."

_OPEN = """
(async () => {
  const { connect } = await import("/static/voxwire.js");
  const { WebRtcTransport } = await import("/static/voxwire/webrtc.js");
  const session = await connect({ transport: new WebRtcTransport(), words: true });
  const player = await session.transport.createPlayer();
  await player.unlock();
  const told = [];
  for (const type of ["started", "word", "ended", "stopped", "failed"]) {
    player.addEventListener(type, ({ detail }) => told.push(detail.word ? detail.word.text : type));
  }
  globalThis.rtc = { session, player, told, blocks: [], closed: null };
  session.addEventListener("close", ({ detail }) => (rtc.closed = String(detail)));
  player.tap((block) => rtc.blocks.push(block));
  await new Promise((resolve) => setTimeout(resolve, 500));
})()
"""

_SPEAK = """
(async () => {
  const utterance = rtc.session.utterance();
  const playback = rtc.player.play(utterance);
  utterance.send(TEXT);
  utterance.end();
  await utterance.finished;
  while (!playback.over) await new Promise((resolve) => setTimeout(resolve, 10));
  let run = 0;
  let gap = 0;
  for (const { frame, samples } of rtc.blocks) {
    for (const [at, sample] of samples.entries()) {
      const inside = frame + at >= playback.startFrame && frame + at < playback.endFrame;
      run = inside && sample === 0 ? run + 1 : 0;
      gap = Math.max(gap, run);
    }
  }
  return {
    state: playback.state, played: playback.played, samples: utterance.done.samples,
    lastedMs: ((playback.endFrame - playback.startFrame) * 1000) / rtc.player.context.sampleRate,
    audioMs: utterance.done.audio_ms, gapMs: (gap * 1000) / rtc.player.context.sampleRate,
    firstMs: playback.heardAt - utterance.sentAt[0],
  };
})()
"""

_INTERRUPT = """
(async () => {
  const utterance = rtc.session.utterance();
  const playback = rtc.player.play(utterance);
  utterance.send(TEXT);
  utterance.end();
  while (playback.heardMs < 900) await new Promise((resolve) => setTimeout(resolve, 10));
  const { context } = rtc.player;
  const at = context.currentTime * context.sampleRate;
  const said = await playback.interrupt();
  await new Promise((resolve) => setTimeout(resolve, 500));
  let last = at;
  for (const { frame, samples } of rtc.blocks) {
    samples.forEach((sample, n) => { if (Math.abs(sample) > 1e-3) last = Math.max(last, frame + n); });
  }
  return { ...said, state: playback.state, silentAfterMs: ((last - at) * 1000) / context.sampleRate };
})()
"""


@pytest.fixture
def site() -> Iterator[str]:
    port = free_port()
    with fake_server(port):
        yield f"http://127.0.0.1:{port}"


async def test_a_browser_hears_it_and_can_interrupt(site: str) -> None:
    async with browser(chromium_or_skip()) as page:
        await page.goto(site)
        await page.js(_OPEN)
        for text in ("One two three.", "Four."):
            spoken: dict[str, Any] = await page.js(_SPEAK.replace("TEXT", repr(text)))
            assert spoken["state"] == "ended"
            assert spoken["played"] == spoken["samples"] > 0
            assert abs(spoken["lastedMs"] - spoken["audioMs"]) < 1
            # How long a gap is depends on who else uses the machine; that there is none is for a quiet one.
            assert spoken["gapMs"] <= 200
            print(
                f"first sound {spoken['firstMs']:.0f} ms after the text, longest gap {spoken['gapMs']:.0f} ms"
            )
        assert await page.js("rtc.told") == [
            *("started", "One", "two", "three", "ended"),
            *("started", "Four", "ended"),
        ]
        said = await page.js(_INTERRUPT.replace("TEXT", repr(_TEXT)))
        assert said["state"] == "stopped"
        assert said["silentAfterMs"] <= 200
        assert said["heardText"] + said["unheardText"] == _TEXT
        assert said["heardText"].startswith("One two")
        again = await page.js(_SPEAK.replace("TEXT", repr("Again.")))
        assert again["state"] == "ended", "the next one is heard"
        assert page.console == []


async def test_the_page_over_webrtc(site: str) -> None:
    async with browser(chromium_or_skip()) as page:
        await page.size(1280, 860)
        await page.goto(site)
        await page.until(_READY, 30)
        for select, value in (("encoding", "pcm_s16le"), ("transport", "webrtc")):
            await page.js(
                f"(() => {{ const list = document.querySelector('#{select}'); list.value = '{value}';"
                " list.dispatchEvent(new Event('change')); })()"
            )
            await page.until(_READY, 30)
        await tap(page)
        assert await page.js("tapped.speaker.session.transport.media") == "track"
        await page.js("document.querySelector('#sheet').focus()")
        await page.type("One two three. ")
        [line] = await lines(page, within_s=30)
        assert (line["state"], line["error"]) == ("ended", None)
        assert line["played"] == line["done"]["samples"]
        sound = await heard(page)
        spoken = sound.between(round(line["start"]), round(line["end"]))
        assert abs(spoken).max() > 0.05
        assert page.console == []


async def test_a_server_that_dies() -> None:
    port = free_port()
    async with browser(chromium_or_skip()) as page:
        with fake_server(port) as process:
            await page.goto(f"http://127.0.0.1:{port}")
            await page.js(_OPEN)
            process.kill()
            process.wait()
        # A killed process says nothing: the browser finds out when nothing comes any more.
        await page.until("rtc.closed !== null", 45)
        assert "StreamTruncated" in await page.js("rtc.closed")
