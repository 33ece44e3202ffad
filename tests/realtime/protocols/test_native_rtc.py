"""The native protocol over RTP and a data channel, without either."""

import json

from engine.contract import PrefixUsage
from realtime import messages as msg
from realtime.audio.formats import AudioFormat
from realtime.protocols.frames import AudioFrame, Flags
from realtime.protocols.native_rtc import RtcAdapter

HEARD = {0: 1.0, 1: None}


def adapter() -> RtcAdapter:
    ready = msg.SessionReady("s", "m", "ada", AudioFormat(), 156, PrefixUsage(1, 0), {})
    made = RtcAdapter(1000, lambda index: HEARD.get(index, 0.001))
    made.render(ready)
    return made


def say(made: RtcAdapter, **message: object) -> list[msg.Command]:
    return made.receive(json.dumps(message))


def test_the_format_is_opus_in_20_ms() -> None:
    (start,) = say(adapter(), type="session.start", format={"sample_rate": 48000})
    assert isinstance(start, msg.StartSession)
    chosen = start.options.format
    assert (chosen.encoding, chosen.frame_ms, chosen.sample_rate) == ("opus", 20.0, 48000)
    for other in ({"encoding": "pcm_s16le"}, {"frame_ms": 10}):
        (refused,) = say(adapter(), type="session.start", format=other)
        assert isinstance(refused, msg.Reject)
        assert refused.error.field == "format"
    (refused,) = say(adapter(), type="session.update", format={"bitrate": 24000})
    assert isinstance(refused, msg.Reject)
    (update,) = say(adapter(), type="session.update", voice="bob")
    assert isinstance(update, msg.UpdateSession)


def test_a_cancel_brings_what_was_heard() -> None:
    made = adapter()
    assert say(made, type="cancel") == [msg.Cancel(None, None)], "nothing was said yet"
    made.render(msg.UtteranceStarted("first", 0))
    assert say(made, type="cancel") == [msg.Played(0, 24_000 - 156), msg.Cancel(None, None)]
    assert say(made, type="cancel", utterance="first")[0] == msg.Played(0, 24_000 - 156)
    assert say(made, type="cancel", utterance="other") == [msg.Cancel("other", None)]
    made.render(msg.UtteranceStarted("second", 1))
    assert say(made, type="cancel") == [msg.Cancel(None, None)], "the pacer does not know"
    made.render(msg.UtteranceStarted("third", 2))
    assert say(made, type="cancel")[0] == msg.Played(2, 0), "less than the decoder's delay was heard"


def test_a_cancelled_utterance_is_dropped_from_the_track_first() -> None:
    order, told = adapter().render(msg.UtteranceCancelled("u", 3, 0, 0, "", "", "sent"))
    assert isinstance(order, bytes)
    frame = AudioFrame.parse(order)
    assert (frame.index, frame.flags, frame.payload) == (3, Flags.DISCONTINUITY, b"")
    assert isinstance(told, str)
    assert json.loads(told)["type"] == "utterance.cancelled"
