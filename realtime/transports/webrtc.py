"""WebRTC: one peer is one native session, its control on a data channel and its audio on an RTP track."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from aiortc import RTCDataChannel, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.exceptions import InvalidAccessError, OperationError
from aiortc.sdp import candidate_from_sdp

from realtime.driver import ChannelClosed, SessionDriver
from realtime.errors import InvalidRequest, NotFound, RateLimited, RealtimeError, ServerOverloaded
from realtime.messages import AppendText
from realtime.metering import Caller, MeteredAdapter
from realtime.protocols.base import Adapter
from realtime.protocols.native import error_frame
from realtime.protocols.native_rtc import RtcAdapter
from realtime.registry import SessionHub
from realtime.rtp.offer import Offer, read_candidates, read_offer
from realtime.transports.rtc_channel import RtcChannel
from realtime.transports.rtc_ice import configuration, gather
from realtime.transports.rtc_options import RtcOptions
from realtime.transports.rtc_track import PacedTrack, PacingObserver

logger = logging.getLogger(__name__)

LABEL: Final = "voxwire"
"""Of the data channel."""

_RETRY_AFTER_S: Final = 2.0
_ANSWER_S: Final = 8.0
"""For an answer: STUN and TURN servers get five seconds of it."""
_CLOSE_S: Final = 3.0
_UNREADABLE: Final = (
    ValueError,
    AssertionError,
    LookupError,
    AttributeError,
    TypeError,
    StopIteration,
    OperationError,
    InvalidAccessError,
)
"""What aiortc raises for SDP that it cannot read; it has no type of its own for that."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client gets for its offer."""

    session: str
    sdp: str


Lease = Callable[["RtcPeer"], AbstractContextManager[None]]
"""What a peer holds as long as its session lasts. Raises `RateLimited` when there is no more of it."""


def free(_peer: "RtcPeer") -> AbstractContextManager[None]:
    """The lease of a peer that holds nothing."""
    return nullcontext()


class RtcPeer:
    """One peer from its offer to its end. `answer`, then `run`, each once."""

    def __init__(self, session: str, offer: Offer, peers: "RtcPeers", caller: Caller | None) -> None:
        self.id, self.offer = session, offer
        self._caller = caller
        self._driver: SessionDriver | None = None
        self._hub, self._options = peers.hub, peers.options
        self._connection = RTCPeerConnection(configuration(peers.options))
        self._track = PacedTrack(peers.hub.clock, peers.observer)
        self._opened = asyncio.Event()
        self._channel: RtcChannel | None = None
        self._connection.on("datachannel", self._take_data)
        self._connection.on("connectionstatechange", self._state_changed)

    async def answer(self) -> str:
        """The answer's SDP. Raises `InvalidRequest`."""
        opus = [c for c in RTCRtpSender.getCapabilities("audio").codecs if c.mimeType == "audio/opus"]
        audio = self._connection.addTransceiver(self._track, direction="sendonly")
        audio.setCodecPreferences(opus)
        try:
            await self._connection.setRemoteDescription(RTCSessionDescription(self.offer.sdp, "offer"))
            await gather(self._connection, self._options)
            await self._connection.setLocalDescription(await self._connection.createAnswer())
        except _UNREADABLE as error:
            why = str(error)[:200] if isinstance(error, ValueError | OperationError) else "not well formed"
            raise InvalidRequest(f"this offer cannot be used: {why}", "sdp") from error
        return self._connection.localDescription.sdp

    async def add_candidates(self, fragment: str) -> None:
        """Take a trickle-ICE fragment. Raises `InvalidRequest`."""
        for text in read_candidates(fragment, self.offer):
            if not self._options.trusts_candidates:
                return
            try:
                candidate = candidate_from_sdp(text.partition(":")[2])
            except _UNREADABLE as error:
                raise InvalidRequest("this candidate cannot be read", "candidate") from error
            candidate.sdpMLineIndex = 0
            await self._connection.addIceCandidate(candidate)

    async def run(self, lease: Lease) -> None:
        """Serve the session until it is over; nothing of the peer is left then."""
        try:
            hub = self._hub
            await hub.clock.wait(self._opened, hub.clock.now() + self._options.handshake_s)
            channel = self._channel
            if channel is None:
                logger.info("no data channel in time", extra={"session": self.id})
                return
            self._driver = SessionDriver(hub, channel, self._adapter(), self.id)
            try:
                with lease(self):
                    await self._driver.run()
            except RateLimited as error:
                await self._refuse(channel, error)
        finally:
            await self.close()

    def end(self, error: RealtimeError) -> None:
        """Tell the client and close."""
        if self._driver is not None:
            self._driver.stop(error)
        else:
            self.drop()

    def drop(self) -> None:
        """Let go of the peer; what is said to it now may not arrive."""
        self._opened.set()
        if self._channel is not None:
            self._channel.lost("the connection was dropped")

    async def close(self) -> None:
        """Close the connection; as often as one likes."""
        self._track.stop()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._connection.close()
        except TimeoutError:
            logger.warning("peer did not close in time", extra={"session": self.id})

    def _adapter(self) -> Adapter:
        adapter = RtcAdapter(self._hub.limits.message_bytes, self._track.heard_s)
        caller = self._caller
        if caller is None:
            return adapter

        def take(piece: AppendText) -> None:
            caller.take_text(self.id, piece.utterance, piece.text)

        return MeteredAdapter(adapter, take)

    async def _refuse(self, channel: RtcChannel, error: RealtimeError) -> None:
        text, code, reason = error_frame(error)
        try:
            async with asyncio.timeout(_CLOSE_S):
                await channel.send(text)
                await channel.close(code, reason)
        except (ChannelClosed, TimeoutError):
            return

    def _take_data(self, data: RTCDataChannel) -> None:
        reliable = data.ordered and data.maxRetransmits is None and data.maxPacketLifeTime is None
        if self._channel is not None or data.label != LABEL or not reliable:
            wanted = f"one data channel is served: {LABEL!r}, ordered and reliable"
            text, _, _ = error_frame(InvalidRequest(wanted, "data_channel"))
            data.send(text)
            data.close()
            return
        # At once: a browser sends its first messages right behind the opening.
        self._channel = RtcChannel(data, self._track, self.drop)
        self._opened.set()

    def _state_changed(self) -> None:
        state = self._connection.connectionState
        logger.debug("peer state", extra={"session": self.id, "state": state})
        if state in ("failed", "closed"):
            self.drop()


class RtcPeers:
    """All peers of a server. Their sessions are the hub's like any other."""

    def __init__(self, hub: SessionHub, options: RtcOptions, observer: PacingObserver) -> None:
        self.hub, self.options, self.observer = hub, options, observer
        self._peers: dict[str, RtcPeer] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def live(self) -> Mapping[str, RtcPeer]:
        """Peers by session id, those that are still connecting included."""
        return MappingProxyType(self._peers)

    async def open(self, sdp: str, caller: Caller | None = None, lease: Lease = free) -> Answer:
        """Answer an offer of ``caller``; the session runs from then on.

        Raises `InvalidRequest`, `TooLarge`, `ServerOverloaded`, `Draining`.
        """
        offer = read_offer(sdp, trust_candidates=self.options.trusts_candidates)
        self.hub.admit()
        if len(self._peers) >= self.hub.limits.sessions:
            raise ServerOverloaded(f"all {self.hub.limits.sessions} sessions are in use", _RETRY_AFTER_S)
        peer = RtcPeer(self.hub.new_id(), offer, self, caller)
        self._peers[peer.id] = peer
        async with AsyncExitStack() as unless_answered:
            unless_answered.push_async_callback(self._forget, peer)
            try:
                async with asyncio.timeout(_ANSWER_S):
                    answer = await peer.answer()
            except TimeoutError as error:
                raise ServerOverloaded("no answer could be made in time", _RETRY_AFTER_S) from error
            unless_answered.pop_all()
        task = asyncio.create_task(peer.run(lease), name=f"peer {peer.id}")
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._over(peer, done))
        logger.info("peer answered", extra={"session": peer.id, "key": caller.name if caller else None})
        return Answer(peer.id, answer)

    def get(self, session: str) -> RtcPeer:
        """A live peer. Raises `NotFound`."""
        peer = self._peers.get(session)
        if peer is None:
            raise NotFound("there is no such WebRTC session", "session")
        return peer

    async def close(self) -> None:
        """Let go of all peers and wait until nothing of them is left."""
        for peer in list(self._peers.values()):
            peer.drop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.hub.tuning.close_s + _CLOSE_S)

    async def _forget(self, peer: RtcPeer) -> None:
        self._peers.pop(peer.id, None)
        await peer.close()

    def _over(self, peer: RtcPeer, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._peers.pop(peer.id, None)
        if not task.cancelled() and task.exception() is not None:
            logger.error("peer broke", exc_info=task.exception(), extra={"session": peer.id})
