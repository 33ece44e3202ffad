"""voxwire.v1 on the wire: every message both ways, and everything a client can do wrong."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.contract import PrefixUsage, Sampling, Usage
from engine.errors import EngineDead
from realtime import messages as msg
from realtime.audio.formats import AudioFormat, FormatRequest
from realtime.audio.packets import AudioPacket
from realtime.errors import InvalidRequest, ServerOverloaded, TooLarge, fault_of
from realtime.limits import Limits
from realtime.options import SessionOptions
from realtime.protocols.frames import AudioFrame, Flags, FrameError
from realtime.protocols.native import NativeAdapter, error_frame

MAX = 65_536


def receive(message: Any) -> list[msg.Command]:
    return NativeAdapter(MAX).receive(message if isinstance(message, str | bytes) else json.dumps(message))


def rejected(message: Any) -> InvalidRequest | TooLarge:
    (command,) = receive(message)
    assert isinstance(command, msg.Reject)
    assert isinstance(command.error, InvalidRequest | TooLarge)
    return command.error


def rendered(event: msg.Event) -> Any:
    (frame,) = NativeAdapter(MAX).render(event)
    assert isinstance(frame, str)
    return json.loads(frame)


class TestClientMessages:
    @pytest.mark.parametrize(
        ("message", "command"),
        [
            ({"type": "session.start"}, msg.StartSession()),
            ({"type": "session.update", "speed": 1.5}, msg.UpdateSession(SessionOptions(speed=1.5))),
            ({"type": "text", "text": "Hi"}, msg.AppendText("Hi")),
            ({"type": "text", "text": "Hi", "utterance": "a"}, msg.AppendText("Hi", "a")),
            ({"type": "text", "text": ""}, msg.AppendText("")),
            ({"type": "text", "text": "Hi", "utterance": None}, msg.AppendText("Hi")),
            ({"type": "flush"}, msg.Flush()),
            ({"type": "flush", "utterance": "a"}, msg.Flush("a")),
            ({"type": "end"}, msg.End()),
            ({"type": "end", "utterance": "a"}, msg.End("a")),
            ({"type": "cancel"}, msg.Cancel()),
            ({"type": "cancel", "utterance": "a", "played_ms": 12}, msg.Cancel("a", 12)),
            ({"type": "keepalive"}, msg.KeepAlive()),
            ({"type": "close"}, msg.Close()),
        ],
        ids=lambda value: value.get("type") if isinstance(value, dict) else "",
    )
    def test_each(self, message: dict[str, Any], command: msg.Command) -> None:
        assert receive(message) == [command]

    def test_every_field_of_start(self) -> None:
        message = {
            "type": "session.start",
            "voice": "ada",
            "format": {"encoding": "opus", "sample_rate": 48000, "frame_ms": 2.5, "bitrate": 24000},
            "ttfp_budget_ms": 150,
            "on_budget_miss": "fail",
            "words": True,
            "sampling": {"temperature": 0.7, "top_p": 1, "top_k": 5, "repetition_penalty": 1.1, "seed": 9},
            "language": "en",
            "speed": 1.1,
            "segment": {"mode": "clause", "min_chars": 20},
        }
        options = SessionOptions(
            voice="ada",
            format=FormatRequest("opus", 48000, 2.5, 24000),
            ttfp_budget_ms=150,
            on_budget_miss="fail",
            words=True,
            sampling=Sampling(0.7, 1, 5, 1.1, 9),
            language="en",
            speed=1.1,
            segment_mode="clause",
            min_chars=20,
        )
        assert receive(message) == [msg.StartSession(options)]


class TestBadMessages:
    @pytest.mark.parametrize(
        ("message", "field", "told"),
        [
            ("{not json", None, "not valid JSON"),
            ("", None, "not valid JSON"),
            ("[1]", None, "JSON object"),
            ('"text"', None, "JSON object"),
            ("[" * 60_000, None, "nested too deep"),
            ('{"type":"text","text":"a","\\udcb8":1}', None, "Unicode"),
            ("1" * 5_000, None, "number"),
            ('{"type":"cancel","played_ms":NaN}', None, "number"),
            ({}, "type", "missing"),
            ({"type": "speak"}, "type", "session.start, session.update, text, flush, end"),
            ({"type": ["text"]}, "type", "allowed"),
            ({"type": "text"}, "text", "missing"),
            ({"type": "text", "text": 5}, "text", "str"),
            ({"type": "text", "text": "x", "uterance": "a"}, "uterance", "is not a field"),
            ({"type": "text", "text": "x", "utterance": 5}, "utterance", "str"),
            ({"type": "session.start", "format": {"sample_rate": "24k"}}, "format.sample_rate", "int"),
            ({"type": "session.start", "format": {"rate": 24000}}, "format.rate", "is not a field"),
            ({"type": "session.start", "format": "opus"}, "format", "object"),
            ({"type": "session.start", "words": 1}, "words", "bool"),
            ({"type": "session.start", "sampling": {"top_k": 1.5}}, "sampling.top_k", "int"),
            ({"type": "cancel", "played_ms": -1}, "played_ms", "0 or more"),
            ('{"type":"cancel","played_ms":1e999}', "played_ms", "0 or more"),
            (b"\x01\x02", None, "binary"),
            (b"", None, "binary"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_is_told_what_and_what_is_allowed(self, message: Any, field: str | None, told: str) -> None:
        error = rejected(message)
        assert error.field == field
        assert told in str(error)
        assert fault_of(error).close == 1008

    def test_ten_megabytes(self) -> None:
        error = rejected({"type": "text", "text": "a" * 10_000_000})
        assert isinstance(error, TooLarge)
        assert str(MAX) in str(error)
        assert fault_of(error).close == 1009

    def test_size_counts_bytes(self) -> None:
        message = json.dumps({"type": "text", "text": "é" * 40_000}, ensure_ascii=False)
        assert isinstance(rejected(message), TooLarge)

    @given(st.one_of(st.text(), st.binary()))
    def test_no_message_raises(self, message: str | bytes) -> None:
        for command in receive(message):
            assert isinstance(command, msg.Reject)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
        ),
        st.sampled_from(["session.start", "session.update", "text", "flush", "end", "cancel", "keepalive"]),
        st.sampled_from(["text", "utterance", "played_ms", "format", "sampling", "segment", "voice", "x"]),
    )
    def test_no_field_raises(self, value: Any, kind: str, field: str) -> None:
        for command in receive(json.dumps({"type": kind, field: value})):
            assert isinstance(
                command,
                msg.Reject
                | msg.AppendText
                | msg.StartSession
                | msg.UpdateSession
                | msg.Flush
                | msg.End
                | msg.Cancel
                | msg.KeepAlive,
            )


class TestCutInsideACharacter:
    def texts(self, *messages: Any) -> list[msg.Command]:
        adapter = NativeAdapter(MAX)
        return [command for message in messages for command in adapter.receive(message)]

    def test_halves_of_an_emoji_are_joined(self) -> None:
        commands = self.texts('{"type":"text","text":"Hi \\ud83d"}', '{"type":"text","text":"\\ude00!"}')
        assert commands == [msg.AppendText("Hi "), msg.AppendText("😀!")]

    def test_halves_with_a_keepalive_between(self) -> None:
        first, second = '{"type":"text","text":"\\ud83d"}', '{"type":"text","text":"\\ude00"}'
        commands = self.texts(first, '{"type":"keepalive"}', second)
        assert commands == [msg.AppendText(""), msg.KeepAlive(), msg.AppendText("😀")]

    @pytest.mark.parametrize(
        "after", ['{"type":"end"}', '{"type":"flush"}', '{"type":"close"}', '{"type":"cancel"}']
    )
    def test_a_half_that_stays_alone(self, after: str) -> None:
        commands = self.texts('{"type":"text","text":"a\\ud83d"}', after)
        assert commands[:2] == [msg.AppendText("a"), msg.AppendText("\ufffd")]
        assert len(commands) == 3

    def test_a_half_of_another_utterance(self) -> None:
        commands = self.texts(
            '{"type":"text","text":"\\ud83d","utterance":"a"}',
            '{"type":"text","text":"\\ude00","utterance":"b"}',
        )
        assert commands == [
            msg.AppendText("", "a"),
            msg.AppendText("\ufffd", "a"),
            msg.AppendText("\ufffd", "b"),
        ]

    def test_lone_surrogates_become_the_replacement_character(self) -> None:
        assert self.texts('{"type":"text","text":"a\\udc00b\\ud800c"}') == [msg.AppendText("a\ufffdb\ufffdc")]

    def test_nul_is_text(self) -> None:
        assert self.texts('{"type":"text","text":"a\\u0000b"}') == [msg.AppendText("a\0b")]

    @given(st.text(st.characters(exclude_categories=()), max_size=20), st.integers(0, 40))
    def test_any_cut_in_utf16_is_the_same_text(self, text: str, at: int) -> None:
        units = text.encode("utf-16-le", "surrogatepass")
        parts = units[: 2 * at], units[2 * at :]
        cut = [
            json.dumps({"type": "text", "text": part.decode("utf-16-le", "surrogatepass")}) for part in parts
        ]
        said = [*cut, '{"type":"end"}']
        whole = "".join(command.text for command in self.texts(*said) if isinstance(command, msg.AppendText))
        assert whole == units.decode("utf-16-le", "replace")


FORMAT = AudioFormat(encoding="pcm_s16le", sample_rate=24000)


class TestServerMessages:
    def test_ready(self) -> None:
        limits = Limits().told()
        event = msg.SessionReady("s_1", "ember", "ada", FORMAT, 0, PrefixUsage(96, 64), limits)
        assert rendered(event) == {
            "type": "session.ready",
            "session": "s_1",
            "protocol": "voxwire.v1",
            "model": "ember",
            "voice": "ada",
            "format": {
                "encoding": "pcm_s16le",
                "sample_rate": 24000,
                "frame_ms": 20.0,
                "bitrate": None,
                "pre_skip": 0,
            },
            "prefix": {"tokens": 96, "cached": 64},
            "limits": limits,
        }

    def test_start(self) -> None:
        told = {"type": "utterance.start", "utterance": "a", "index": 3}
        assert rendered(msg.UtteranceStarted("a", 3)) == told

    def test_words(self) -> None:
        event = msg.WordsSpoken("a", 0, (msg.Word("Hi", 0, 120.00001, 0, 2),))
        word = {"text": "Hi", "start_ms": 0, "end_ms": 120, "char_start": 0, "char_end": 2}
        assert rendered(event) == {"type": "words", "utterance": "a", "words": [word]}

    def test_done(self) -> None:
        parts = msg.TtfpParts(1, 2, 3, 4, 5, 6, 7)
        event = msg.UtteranceDone(
            "a", 0, "complete", 20.0, 480, 1, 0xFFFFFFFF, 28.0, parts, True, 2, Usage(96, 64, 1)
        )
        assert rendered(event) == {
            "type": "utterance.done",
            "utterance": "a",
            "reason": "complete",
            "audio_ms": 20.0,
            "samples": 480,
            "frames": 1,
            "crc32": 0xFFFFFFFF,
            "ttfp_ms": 28.0,
            "ttfp_parts": {
                "segment": 1,
                "queue": 2,
                "prefill": 3,
                "decode": 4,
                "vocode": 5,
                "encode": 6,
                "send": 7,
            },
            "budget_met": True,
            "text_chars": 2,
            "usage": {"prompt_tokens": 96, "cached_tokens": 64, "codec_tokens": 1},
        }

    def test_cancelled(self) -> None:
        assert rendered(msg.UtteranceCancelled("a", 0, 500, 250, "One", " two \ud800", "client")) == {
            "type": "utterance.cancelled",
            "utterance": "a",
            "sent_ms": 500,
            "heard_ms": 250,
            "heard_text": "One",
            "unheard_text": " two \ud800",
            "clock": "client",
        }

    def test_warning(self) -> None:
        assert rendered(msg.Warned("text_dropped", "emoji")) == {
            "type": "warning",
            "code": "text_dropped",
            "message": "emoji",
        }

    def test_error(self) -> None:
        assert rendered(msg.Failed(fault_of(EngineDead("gone")), "a")) == {
            "type": "error",
            "code": "engine_failure",
            "message": "gone",
            "utterance": "a",
            "retryable": True,
        }

    def test_error_without_a_session(self) -> None:
        text, close, reason = error_frame(ServerOverloaded("full", 2.5))
        assert json.loads(text) == {
            "type": "error",
            "code": "overloaded",
            "message": "full",
            "utterance": None,
            "retryable": True,
            "retry_after_s": 2.5,
        }
        assert (close, reason) == (1013, "overloaded")

    def test_the_close_is_no_message(self) -> None:
        assert NativeAdapter(MAX).render(msg.CloseConnection(1000)) == []


class TestAudioFrames:
    def test_the_bytes(self) -> None:
        event = msg.AudioReady(0x10203, 0, AudioPacket(b"\xaa\xbb", 5, 480))
        frame = bytes.fromhex("01 02 0203 00000000 0000000000000005 aabb")
        assert NativeAdapter(MAX).render(event) == [frame]

    def test_later_ones_are_not_first(self) -> None:
        (frame,) = NativeAdapter(MAX).render(msg.AudioReady(0, 7, AudioPacket(b"\xaa", 3360, 480)))
        assert AudioFrame.parse(bytes(frame)) == AudioFrame(0, 7, 3360, b"\xaa")  # type: ignore[arg-type]

    def test_the_sentinel(self) -> None:
        frame = bytes.fromhex("01 01 0002 00000009 0000000000000f00")
        assert NativeAdapter(MAX).render(msg.AudioEnded(2, 9, 3840)) == [frame]

    @given(
        st.integers(0, 0xFFFF),
        st.integers(0, 0xFFFFFFFF),
        st.integers(0, 2**64 - 1),
        st.binary(max_size=50),
        st.integers(0, 7),
    )
    def test_round_trip(self, index: int, sequence: int, pts: int, payload: bytes, flags: int) -> None:
        frame = AudioFrame(index, sequence, pts, payload, Flags(flags))
        assert AudioFrame.parse(frame.to_bytes()) == frame

    @given(st.binary(max_size=40))
    def test_other_bytes_are_a_frame_error_at_most(self, message: bytes) -> None:
        try:
            frame = AudioFrame.parse(message)
        except FrameError:
            return
        assert frame.to_bytes() == message
