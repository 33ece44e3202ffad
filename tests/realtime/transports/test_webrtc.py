"""WebRTC between two peers on the loopback interface."""

import asyncio
import random
import time
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from aioice import ice

from engine.errors import GenerationFailed
from engine.fake import FakeEngine, FakeTiming, tone_hz
from engine.fake import Fault as EngineFault
from realtime.errors import Draining, InvalidRequest, NotFound, RateLimited, ServerOverloaded
from realtime.limits import Limits
from realtime.protocols.frames import Flags
from realtime.transports.rtc_options import RtcOptions
from tests.support.loopback import until
from tests.support.rtc import Arrived, RtcClient, decode, serving_rtc

START = {"type": "session.start", "words": True}


def check_continuity(rtp: list[Arrived]) -> None:
    """One stream: sequence numbers by one, timestamps by 960, whatever is spoken or not."""
    for before, after in pairwise(item.packet for item in rtp):
        assert (after.sequence_number - before.sequence_number) % (1 << 16) == 1
        assert (after.timestamp - before.timestamp) % (1 << 32) == 960


async def test_what_is_spoken_arrives() -> None:
    async with serving_rtc() as served:
        client = await served.client()
        client.say(START, {"type": "text", "text": "Golden har"}, {"type": "text", "text": "bours. "})
        client.say({"type": "end"})
        done = await client.until("utterance.done")
        client.say({"type": "text", "text": "Again."}, {"type": "close"})
        again = await client.until("utterance.done", 2)
        async with asyncio.timeout(5):
            await client.left.wait()
        await served.until_gone()
    assert [m["type"] for m in client.messages() if m["type"] != "words"] == [
        "session.ready",
        *["utterance.start", "utterance.done"] * 2,
    ]
    assert client.messages("session.ready")[0]["format"]["encoding"] == "opus"
    check_continuity(client.rtp)

    first, second = client.sentinels()
    assert (first.flags, first.payload, first.pts, first.sequence) == (
        Flags.EOS,
        b"",
        done["samples"],
        done["frames"],
    )
    spoken = client.voice()
    assert len(spoken) == done["frames"] + again["frames"]
    payloads = [item.packet.payload for item in spoken]
    assert zlib.crc32(b"".join(payloads[: done["frames"]])) == done["crc32"], "the encoder's own packets"
    assert zlib.crc32(b"".join(payloads[done["frames"] :])) == again["crc32"]
    # The sentinel comes behind the last packet, and the terminal behind the sentinel.
    told = client.told
    assert told.index(first) + 1 == told.index(done)
    assert spoken[done["frames"] - 2].told <= told.index(first)
    assert told.index(second) + 1 == told.index(again)

    pcm = decode(client.rtp[client.rtp.index(spoken[0]) :])
    for word, text in zip(client.messages("words")[0]["words"], ("golden",), strict=False):
        at = int((word["start_ms"] + 6.5) * 48), int((word["end_ms"] + 6.5) * 48)
        piece = pcm[at[0] : at[1]]
        pitch = np.argmax(np.abs(np.fft.rfft(piece * np.hanning(len(piece)), 48_000)))
        assert abs(int(pitch) - tone_hz(text, "ada")) <= 4
    quiet = pcm[done["frames"] * 960 + 480 : (done["frames"] + 1) * 960]
    assert np.abs(quiet).max() < 0.02, "a silence lies between two utterances"
    assert len(served.pacing.over) == 1


async def test_cancel_stops_within_a_frame() -> None:
    async with serving_rtc() as served:
        client = await served.client()
        text = "One two three four five six seven eight nine ten."
        client.say(START, {"type": "text", "text": text}, {"type": "end"})
        await until(lambda: len(client.voice()) >= 30, 10.0)
        sent = len(client.voice())
        client.say({"type": "cancel"})
        told = await client.until("utterance.cancelled")
        heard = len(client.voice())
        await asyncio.sleep(0.2)
        assert len(client.voice()) - heard <= 1
        assert len(client.voice()) - sent <= 10
        assert told["clock"] == "transport"
        assert abs(told["heard_ms"] - heard * 20) <= 120
        assert told["heard_text"] + told["unheard_text"] == text
        assert told["heard_text"].startswith("One two")
        assert not client.sentinels()
        # The session goes on, and so does the stream.
        client.say({"type": "text", "text": "Yes?"}, {"type": "end"})
        await client.until("utterance.done")
        check_continuity(client.rtp)
        await client.close()
        await served.until_gone()
    assert [report.outcome for report in served.observer.reports] == ["cancelled", "complete"]


async def test_audio_that_comes_late_is_waited_for() -> None:
    """Slower than real time: no packet is lost, none comes twice, the stream stays one."""
    async with serving_rtc(FakeEngine(timing=FakeTiming(frame_s=0.03))) as served:
        client = await served.client()
        client.say(START, {"type": "text", "text": "One two."}, {"type": "end"})
        done = await client.until("utterance.done")
        assert len(client.voice()) == done["frames"]
        check_continuity(client.rtp)
        await client.close()


async def test_a_stall_is_not_made_up_for_with_a_burst() -> None:
    async with serving_rtc() as served:
        client = await served.client()
        client.say(START, {"type": "text", "text": "One two three four five."}, {"type": "end"})
        await until(lambda: len(client.voice()) >= 5, 10.0)
        time.sleep(0.4)  # noqa: ASYNC251 - blocks the loop: that is the stall
        done = await client.until("utterance.done")
        assert len(client.voice()) == done["frames"]
        check_continuity(client.rtp)
        moments = [item.at for item in client.rtp]
        assert moments[-1] - moments[0] > (len(moments) - 1) * 0.02 + 0.25, "later by the stall, and no burst"
        await client.close()
        await served.until_gone()
    assert served.pacing.over[0][1] >= 1


@pytest.mark.parametrize(
    ("messages", "code", "told"),
    [
        (["{nope"], "invalid_request", "JSON"),
        ([{"type": "text", "text": "Hi"}], "invalid_request", "session.start"),
        ([START, b"\x00\x01"], "invalid_request", "text frames"),
        ([{"type": "session.start", "voice": "nobody"}], "not_found", "ada, bob"),
        ([{"type": "session.start", "format": {"encoding": "mulaw"}}], "invalid_request", "opus"),
        ([{"type": "session.start", "format": {"frame_ms": 60}}], "invalid_request", "20 ms"),
        (
            [START, {"type": "session.update", "format": {"sample_rate": 8000}}],
            "invalid_request",
            "keeps its format",
        ),
        ([START, {"type": "text", "text": "a" * 30_000}], "too_large", "utterance_chars"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, list) else "",
)
async def test_bad_input_is_told_and_the_peer_closes(messages: list[Any], code: str, told: str) -> None:
    async with serving_rtc() as served:
        client = await served.client()
        client.say(*messages)
        error = await client.until("error")
        assert error["code"] == code
        assert told in error["message"]
        async with asyncio.timeout(5):
            await client.left.wait()
        await served.until_gone()
        assert not client.sentinels()
        await client.close()


async def test_a_failure_has_no_sentinel() -> None:
    fault = EngineFault(after_frames=10, error=GenerationFailed("it broke"))
    async with serving_rtc(FakeEngine(faults=[fault])) as served:
        client = await served.client()
        client.say(START, {"type": "text", "text": "One two three four."}, {"type": "end"})
        error = await client.until("error")
        assert error["code"] == "engine_failure"
        await served.until_gone()
        assert not client.sentinels()
        assert not client.messages("utterance.done")
        await client.close()


async def test_a_peer_that_closes_frees_everything() -> None:
    async with serving_rtc(FakeEngine(timing=FakeTiming(frame_s=0.01))) as served:
        client = await served.client()
        client.say(START, {"type": "text", "text": "One two three four five six."}, {"type": "end"})
        await until(lambda: len(client.voice()) >= 3, 10.0)
        assert served.engine.live
        await client.close()
        await served.until_gone()
    assert [report.outcome for report in served.observer.reports] == ["lost"]


async def test_a_peer_that_vanishes_frees_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing and answers nothing: its consent to be sent to expires."""
    monkeypatch.setattr(ice, "CONSENT_INTERVAL", 0.1)
    monkeypatch.setattr(ice, "CONSENT_FAILURES", 2)
    async with serving_rtc() as served:
        client = await served.client()
        client.say(START, {"type": "text", "text": "word " * 200}, {"type": "end"})
        await until(lambda: len(client.voice()) >= 3, 10.0)
        client.vanish()
        await until(lambda: not served.hub.live, 10.0)
        await served.until_gone()
        await client.close()


async def test_delete_and_the_end_of_a_lease() -> None:
    async with serving_rtc() as served:
        client = await served.client()
        (session,) = served.peers.live
        client.say(START)
        await client.until("session.ready")
        assert list(served.hub.live) == [session]
        served.peers.get(session).drop()
        await served.until_gone()
        with pytest.raises(NotFound):
            served.peers.get(session)
        await client.close()

        client = await served.client()
        (peer,) = served.peers.live.values()
        client.say(START)
        await client.until("session.ready")
        peer.end(RateLimited("enough", 1.0))
        assert (await client.until("error"))["code"] == "rate_limited"
        await served.until_gone()
        await client.close()


async def test_no_lease_no_session() -> None:
    def none_left(_peer: object) -> Any:
        raise RateLimited("this key may have 0 sessions at once", 5.0)

    async with serving_rtc() as served:

        async def negotiate(sdp: str) -> str:
            return (await served.peers.open(sdp, None, none_left)).sdp

        client = await RtcClient().connect(negotiate)
        assert (await client.until("error"))["code"] == "rate_limited"
        await served.until_gone()
        assert not served.observer.opened
        await client.close()


async def test_data_channels_that_are_not_served() -> None:
    async with serving_rtc(options=RtcOptions(handshake_s=1.0)) as served:
        for channel in ({"label": "chat"}, {"ordered": False}, {"maxRetransmits": 0}):
            client = await served.client(**channel)
            error = await client.until("error")
            assert error["field"] == "data_channel"
            await client.close()
        await served.until_gone()


async def test_a_peer_that_never_connects() -> None:
    async with serving_rtc(options=RtcOptions(handshake_s=0.2)) as served:
        client = RtcClient()
        await served.negotiate(await client.offer())
        assert len(served.peers.live) == 1
        await served.until_gone()
        await client.close()


async def test_room_and_shutdown() -> None:
    async with serving_rtc(limits=Limits(sessions=1)) as served:
        client = await served.client()
        client.say(START)
        await client.until("session.ready")
        other = RtcClient()
        with pytest.raises(ServerOverloaded):
            await served.negotiate(await other.offer())
        client.say({"type": "text", "text": "One two."}, {"type": "end"})
        await client.until("utterance.start")
        assert await served.hub.drain(5.0)
        assert (await client.until("utterance.done"))["reason"] == "complete"
        assert (await client.until("error"))["code"] == "draining"
        with pytest.raises(Draining):
            await served.negotiate(await other.offer())
        await client.close()
        await other.close()


async def test_garbage_leaves_nothing_behind() -> None:
    async with serving_rtc() as served:
        client = RtcClient()
        good = await client.offer()
        for bad in (
            good.replace("a=fingerprint:", "a=fingerprint:x"),
            good.replace("a=ice-pwd:", "a=ice-nothing:"),
            good.replace("a=rtcp-mux\r\n", ""),
            good.replace("UDP/TLS/RTP/SAVPF", "nonsense"),
            good.replace("a=setup:actpass", "a=setup:what"),
            good.replace("a=sctp-port:5000", "a=sctp-port:x"),
            good.replace("96 9 0 8", "96 9 0 999"),
        ):
            assert bad != good
            with pytest.raises(InvalidRequest):
                await served.negotiate(bad)
            assert not served.peers.live
        await client.close()


async def test_mutilated_offers() -> None:
    """Whatever is done to an offer: an answer, or `InvalidRequest`; and nothing stays behind."""
    chance = random.Random(3)
    async with serving_rtc() as served:
        client = RtcClient()
        good = (await client.offer()).splitlines()
        await client.close()
        answered = 0
        for _ in range(120):
            lines = list(good)
            for _ in range(chance.randint(1, 3)):
                at = chance.randrange(1, len(lines))
                line = lines[at]
                cut = chance.randint(0, len(line))
                lines[at : at + 1] = chance.choice(
                    ([], [line, line], [line[:cut]], [line[:cut] + "\u00e9 -1 /" + line[cut:]], [line[::-1]])
                )
            try:
                await served.negotiate("\r\n".join(lines))
                answered += 1
            except InvalidRequest:
                continue
            finally:
                await served.peers.close()
        assert 10 < answered < 110


async def test_twenty_peers() -> None:
    """Order and counts for all; how well it was paced is printed, and measured in the benches."""
    async with serving_rtc() as served:
        clients = await asyncio.gather(*(served.client() for _ in range(20)))
        for number, client in enumerate(clients):
            client.say(START, {"type": "text", "text": f"Peer {number} says this."}, {"type": "end"})
        done = await asyncio.gather(*(client.until("utterance.done", within_s=30) for client in clients))
        for client, end in zip(clients, done, strict=True):
            check_continuity(client.rtp)
            payloads = [item.packet.payload for item in client.voice()]
            assert len(payloads) == end["frames"]
            assert zlib.crc32(b"".join(payloads)) == end["crc32"]
        late = np.array(served.pacing.late_s) * 1000
        print(f"{len(late)} packets: late by p50 {np.percentile(late, 50):.2f}", end=" ")
        print(f"p99 {np.percentile(late, 99):.2f} max {late.max():.2f} ms")
        await asyncio.gather(*(client.close() for client in clients))
