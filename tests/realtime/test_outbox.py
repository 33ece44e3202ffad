"""The two lanes."""

import pytest

from realtime import messages as msg
from realtime.audio.packets import AudioPacket
from realtime.errors import SlowConsumer
from realtime.outbox import Outbox


def audio(index: int, sequence: int) -> msg.AudioReady:
    return msg.AudioReady(index, sequence, AudioPacket(b"x", sequence * 480, 480))


def drained(outbox: Outbox) -> list[msg.Event]:
    events = []
    while (event := outbox.pop()) is not None:
        events.append(event)
    return events


def test_urgent_events_overtake_a_second_of_audio() -> None:
    outbox = Outbox()
    for sequence in range(50):
        outbox.push(audio(0, sequence), 20)
    assert outbox.audio_ms == 1000
    outbox.push_urgent(msg.Warned("a", ""))
    outbox.push_urgent(msg.Warned("b", ""))
    assert drained(outbox)[:3] == [msg.Warned("a", ""), msg.Warned("b", ""), audio(0, 0)]
    assert outbox.audio_ms == 0


def test_drop_takes_one_utterance_and_leaves_the_others() -> None:
    outbox = Outbox()
    outbox.push(audio(0, 5), 20)
    outbox.push(msg.AudioEnded(0, 6, 2880))
    outbox.push(msg.UtteranceStarted("b", 1))
    outbox.push(audio(1, 0), 20)
    outbox.push(msg.UtteranceStarted("c", 2))
    assert outbox.drop(1)
    assert not outbox.drop(0)
    assert outbox.audio_ms == 0
    assert drained(outbox) == [msg.UtteranceStarted("c", 2)]


def test_close_leaves_only_the_last_words() -> None:
    outbox = Outbox()
    outbox.push(audio(0, 0), 20)
    outbox.push_urgent(msg.Warned("a", ""))
    outbox.close(msg.Warned("last", ""), code=1011, reason="r")
    assert drained(outbox) == [msg.Warned("last", ""), msg.CloseConnection(1011, "r")]


def test_urgent_events_are_bounded() -> None:
    outbox = Outbox()

    def flood() -> None:
        for _ in range(1000):
            outbox.push_urgent(msg.Warned("a", ""))

    with pytest.raises(SlowConsumer):
        flood()
    assert len(outbox) < 300
