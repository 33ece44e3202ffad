"""A WebRTC client on the loopback interface that keeps what comes: messages, and RTP packets as they are."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import av
import numpy as np
from aiortc import RTCBundlePolicy, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.rtp import RtpPacket

from engine.fake import FakeEngine
from realtime.limits import Limits, Tuning
from realtime.protocols.frames import AudioFrame
from realtime.registry import SessionHub
from realtime.rtp.pacer import SILENCE
from realtime.transports.rtc_ice import gather
from realtime.transports.rtc_options import RtcOptions
from realtime.transports.webrtc import RtcPeers
from tests.support.loopback import until
from tests.support.observer import RecordingObserver

Negotiate = Callable[[str], Awaitable[str]]
"""Gives the answer to an offer's SDP."""


@dataclass
class RecordingPacing:
    """See `PacingObserver`."""

    late_s: list[float] = field(default_factory=list)
    over: list[tuple[int, int]] = field(default_factory=list)

    def paced(self, late_s: float) -> None:
        self.late_s.append(late_s)

    def media_over(self, gaps: int, stalls: int) -> None:
        self.over.append((gaps, stalls))


@dataclass(frozen=True)
class Arrived:
    """One RTP packet. ``told`` is how many messages had come before it."""

    at: float
    told: int
    packet: RtpPacket

    @property
    def audible(self) -> bool:
        return self.packet.payload != SILENCE


class RtcClient:
    """One peer with a data channel and an audio track to receive."""

    def __init__(self, label: str | None = "voxwire", **channel: Any) -> None:
        self.peer = RTCPeerConnection(
            RTCConfiguration(iceServers=[], bundlePolicy=RTCBundlePolicy.MAX_BUNDLE)
        )
        self.rtp: list[Arrived] = []
        self.told: list[dict[str, Any] | AudioFrame] = []
        self.opened, self.left = asyncio.Event(), asyncio.Event()
        self._changed = asyncio.Condition()
        transceiver = self.peer.addTransceiver("audio", direction="recvonly")
        transceiver.receiver._handle_rtp_packet = self._rtp  # type: ignore[method-assign, assignment]
        self.data = self.peer.createDataChannel(label or "other", **channel)
        self.data.on("open", self.opened.set)
        self.data.on("message", self._message)
        self.data.on("close", self.left.set)

    async def offer(self) -> str:
        """The SDP to send; candidates are of the loopback interface."""
        offer = await self.peer.createOffer()
        await gather(self.peer, RtcOptions(candidates="loopback"))
        await self.peer.setLocalDescription(offer)
        return str(self.peer.localDescription.sdp)

    async def connect(self, negotiate: Negotiate) -> "RtcClient":
        answer = await negotiate(await self.offer())
        await self.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        async with asyncio.timeout(10):
            await self.opened.wait()
        return self

    def say(self, *messages: dict[str, Any] | str | bytes) -> None:
        for message in messages:
            self.data.send(json.dumps(message) if isinstance(message, dict) else message)

    async def until(self, kind: str, count: int = 1, within_s: float = 10.0) -> dict[str, Any]:
        """Wait for the ``count``-th message of that type."""
        async with asyncio.timeout(within_s), self._changed:
            await self._changed.wait_for(lambda: len(self.messages(kind)) >= count)
        return self.messages(kind)[count - 1]

    def messages(self, kind: str | None = None) -> list[dict[str, Any]]:
        return [m for m in self.told if isinstance(m, dict) and kind in (None, m["type"])]

    def sentinels(self) -> list[AudioFrame]:
        return [m for m in self.told if isinstance(m, AudioFrame)]

    def voice(self) -> list[Arrived]:
        """Packets that are not the silence between utterances."""
        return [arrived for arrived in self.rtp if arrived.audible]

    async def close(self) -> None:
        await self.peer.close()

    def vanish(self) -> None:
        """Be gone without a word: no packet of this peer leaves any more."""
        for protocol in self.peer.sctp.transport.transport._connection._protocols:  # type: ignore[union-attr]
            protocol.transport.abort()

    async def _rtp(self, packet: RtpPacket, arrival_time_ms: int) -> None:
        self.rtp.append(Arrived(asyncio.get_running_loop().time(), len(self.told), packet))

    async def _message(self, message: str | bytes) -> None:
        self.told.append(json.loads(message) if isinstance(message, str) else AudioFrame.parse(message))
        async with self._changed:
            self._changed.notify_all()


@dataclass
class Served:
    """What a test needs of the server's side."""

    peers: RtcPeers
    hub: SessionHub
    engine: FakeEngine
    observer: RecordingObserver
    pacing: RecordingPacing

    async def negotiate(self, sdp: str) -> str:
        return (await self.peers.open(sdp)).sdp

    async def client(self, **channel: Any) -> RtcClient:
        """A connected client."""
        return await RtcClient(**channel).connect(self.negotiate)

    async def until_gone(self) -> None:
        """Nothing of any peer is left."""
        await until(lambda: not (self.peers.live or self.hub.live or self.engine.live), 10.0)


@asynccontextmanager
async def serving_rtc(
    engine: FakeEngine | None = None, limits: Limits | None = None, options: RtcOptions | None = None
) -> AsyncIterator[Served]:
    """Peers of a hub of their own; at the end no session, stream or task is left."""
    engine = engine or FakeEngine()
    await engine.start()
    observer, pacing = RecordingObserver(), RecordingPacing()
    before = asyncio.all_tasks()
    hub = SessionHub(engine, limits=limits or Limits(), tuning=Tuning(close_s=1.0), observer=observer)
    peers = RtcPeers(hub, options or RtcOptions(), pacing)
    served = Served(peers, hub, engine, observer, pacing)
    try:
        yield served
    finally:
        await peers.close()
        await served.until_gone()
        await until(lambda: asyncio.all_tasks() <= before, 10.0)
        hub.close()


def decode(arrived: list[Arrived]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """One decoder over all packets, as a browser has: mono float32 at 48 kHz."""
    decoder: Any = av.CodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.layout = 48_000, "mono"
    frames = [
        frame.to_ndarray().reshape(-1)
        for item in arrived
        for frame in decoder.decode(av.Packet(item.packet.payload))
    ]
    pcm = np.concatenate(frames)
    return (pcm / 32_768 if pcm.dtype == np.int16 else pcm).astype(np.float32)
