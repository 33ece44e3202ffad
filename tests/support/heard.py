"""What a page really put out: a tap on its player, in samples."""

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.browser import Page

_INSTALL = """
(async () => {
  const { speaker } = await import("/static/app.js");
  const tapped = { blocks: [], lines: [], speaker };
  speaker.player.tap((block) => tapped.blocks.push(block));
  speaker.addEventListener("over", ({ detail }) => tapped.lines.push(detail));
  globalThis.tapped = tapped;
})()
"""

_LINES = """
tapped.lines.map(({ kind, utterance, playback, outcome, error }) => ({
  kind, text: utterance.text, words: utterance.words, done: utterance.done, cancelled: utterance.cancelled,
  played: playback.played, state: playback.state, underruns: playback.underruns,
  start: playback.startFrame, end: playback.endFrame, outcome, error: error ? String(error) : null,
  first_ms: playback.heardAt === null ? null : playback.heardAt - utterance.sentAt[0],
}))
"""

_AUDIO = """
(() => {
  const { blocks } = tapped;
  const last = blocks.at(-1);
  const all = new Float32Array(last.frame + last.samples.length - blocks[0].frame);
  for (const { frame, samples } of blocks) all.set(samples, frame - blocks[0].frame);
  const bytes = new Uint8Array(all.buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return { first: blocks[0].frame, rate: tapped.speaker.player.context.sampleRate, pcm: btoa(text) };
})()
"""


@dataclass(frozen=True)
class Heard:
    """Output of the page from frame ``first`` of its audio clock on, float32 at ``rate``."""

    first: int
    rate: int
    pcm: npt.NDArray[np.float32]

    def between(self, start: int, end: int) -> npt.NDArray[np.float32]:
        """Samples of these frames."""
        return self.pcm[start - self.first : end - self.first]

    def last_sound(self) -> int:
        """The frame behind the last one that is not silent."""
        return self.first + int(np.flatnonzero(self.pcm)[-1]) + 1


async def tap(page: Page) -> None:
    """Record everything from now on."""
    await page.js(_INSTALL)


async def lines(page: Page, count: int = 1, within_s: float = 20.0) -> list[dict[str, Any]]:
    """What became of the lines spoken since `tap`, once there are ``count``."""
    await page.until(f"tapped.lines.length >= {count}", within_s)
    found: list[dict[str, Any]] = await page.js(_LINES)
    return found


async def heard(page: Page) -> Heard:
    """The samples since `tap`, up to now."""
    await asyncio.sleep(0.15)  # for what is on its way from the audio thread
    answer = await page.js(_AUDIO)
    return Heard(answer["first"], answer["rate"], np.frombuffer(base64.b64decode(answer["pcm"]), np.float32))


def longest_silence(pcm: npt.NDArray[np.float32], rate: int) -> float:
    """The longest run of digital silence, in ms: a player without audio gives exact zeros."""
    edges = np.flatnonzero(np.concatenate([[True], pcm != 0, [True]]))
    return float(np.diff(edges).max() - 1) * 1000 / rate
