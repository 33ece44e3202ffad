"""The end-of-stream contract, checked on what a client received."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from realtime.protocols.base import Frame
from realtime.protocols.frames import AudioFrame, Flags


@dataclass
class Received:
    """One utterance as the client saw it."""

    name: str
    frames: int = 0
    crc32: int = 0
    sentinel: int | None = None
    terminal: str | None = None


def check_wire(frames: Sequence[Frame]) -> dict[int, Received]:
    """Every utterance started once, ends at most once, and in the right way; the utterances by index."""
    utterances: dict[int, Received] = {}
    failed = False
    for frame in frames:
        assert not failed, "nothing follows an error"
        if isinstance(frame, bytes):
            _audio(AudioFrame.parse(frame), utterances)
            continue
        body = json.loads(frame)
        failed = body["type"] == "error"
        match body["type"]:
            case "utterance.start":
                assert body["index"] not in utterances
                utterances[body["index"]] = Received(body["utterance"])
            case "words" | "utterance.done" | "utterance.cancelled":
                one = next(u for u in reversed(utterances.values()) if u.name == body["utterance"])
                assert one.terminal is None, "nothing follows a terminal"
                if body["type"] == "utterance.done":
                    assert one.sentinel == body["samples"]
                    assert (one.frames, one.crc32) == (body["frames"], body["crc32"])
                if body["type"] != "words":
                    one.terminal = body["type"]
    if failed:
        for one in utterances.values():
            one.terminal = one.terminal or "error"
    return utterances


def _audio(frame: AudioFrame, utterances: dict[int, Received]) -> None:
    one = utterances[frame.index]
    assert one.terminal is None, "nothing follows a terminal"
    assert one.sentinel is None, "nothing but utterance.done follows a sentinel"
    assert frame.sequence == one.frames
    assert bool(frame.flags & Flags.FIRST) == (frame.sequence == 0 and not frame.flags & Flags.EOS)
    if frame.flags & Flags.EOS:
        assert not frame.payload
        one.sentinel = frame.pts
        return
    assert frame.payload
    one.frames += 1
    one.crc32 = zlib.crc32(frame.payload, one.crc32)
