"""Every bound a session is held to. They come from the settings, and `session.ready` tells them."""

from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of sessions, messages and uploads; all positive.

    Attributes:
        message_bytes: one client message, in bytes of UTF-8.
        utterance_chars: text of one utterance, in Unicode code points.
        pending_utterances: utterances of a session without a terminal yet, the one being spoken included.
        pending_chars: text of all those utterances together.
        start_s: seconds from the connection to the first message.
        idle_s: seconds without a message, not counting the speaking of what was asked for.
        send_buffer_ms: audio made but not yet taken by the client.
        send_timeout_s: seconds one frame may wait for the client to read.
        sessions: live sessions of the server.
        voices: voices of the server, built-in and uploaded.
        upload_s: seconds of audio in one voice upload.
        upload_bytes: bytes of one voice upload.
    """

    message_bytes: int = 65_536
    utterance_chars: int = 20_000
    pending_utterances: int = 64
    pending_chars: int = 60_000
    start_s: float = 10.0
    idle_s: float = 60.0
    send_buffer_ms: float = 10_000.0
    send_timeout_s: float = 10.0
    sessions: int = 256
    voices: int = 256
    upload_s: float = 30.0
    upload_bytes: int = 10_000_000

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not value > 0:
                raise ValueError(f"limit {item.name} is {value}; it must be positive")

    def told(self) -> dict[str, int | float]:
        """The limits by name, for `session.ready`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Tuning:
    """Pace and patience of the server; nothing a client has to know. All positive.

    Attributes:
        lead_ms: audio generated ahead of the listener at most.
        lead_step_ms: how finely the lead is extended as the listener plays.
        first_lead_ms: audio an utterance may have even while the listener still hears the one before.
        stall_s: seconds without a sign of life from the engine while it has words to speak.
        close_s: seconds for the last frames of a connection.
    """

    lead_ms: float = 4_000.0
    lead_step_ms: float = 250.0
    first_lead_ms: float = 500.0
    stall_s: float = 30.0
    close_s: float = 2.0

    def __post_init__(self) -> None:
        for item in fields(self):
            if not getattr(self, item.name) > 0:
                raise ValueError(f"tuning {item.name} must be positive")
