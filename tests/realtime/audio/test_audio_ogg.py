import struct
from pathlib import Path

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.encoder import make_encoder
from realtime.audio.formats import OPUS_FRAMES_MS, OPUS_RATES, AudioFormat
from realtime.audio.ogg import OggOpusWriter, ogg_crc, opus_head, opus_tags
from tests.support.audio import cut, decode_file, encode_all, lag, run_tool, speech_like

FIRST, LAST = 2, 4


def bitwise_crc(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 1 << 31 else 0)) & 0xFFFF_FFFF
    return crc


def parse_pages(data: bytes) -> list[tuple[int, int, int, int, list[bytes]]]:
    """(flags, granule, serial, sequence, packets) of each page, checksums checked."""
    pages = []
    while data:
        magic, version, flags, granule, serial, sequence, crc, count = struct.unpack_from("<4sBBqIIIB", data)
        assert (magic, version) == (b"OggS", 0)
        lacing = data[27 : 27 + count]
        size = 27 + count + sum(lacing)
        assert len(data) >= size
        assert crc == bitwise_crc(data[:22] + bytes(4) + data[26:size])
        packets, body, at = [], data[27 + count : size], 0
        lengths: list[int] = []
        run = 0
        for segment in lacing:
            run += segment
            if segment < 255:
                lengths.append(run)
                run = 0
        assert not run
        for length in lengths:
            packets.append(body[at : at + length])
            at += length
        pages.append((flags, granule, serial, sequence, packets))
        data = data[size:]
    return pages


def ogg_file(fmt: AudioFormat, samples: int) -> bytes:
    encoder = make_encoder(fmt, fmt.sample_rate)
    pages = OggOpusWriter(fmt.sample_rate, encoder.pre_skip)
    packets = encode_all(encoder, cut(speech_like(samples, fmt.sample_rate), [960]))
    body = [pages.packet(p.payload, p.pts + p.samples, last=p is packets[-1]) for p in packets]
    return pages.headers() + b"".join(body)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_checksum_is_oggs(data: bytes) -> None:
    assert ogg_crc(data) == bitwise_crc(data)


@given(st.lists(st.binary(min_size=1, max_size=1_300), min_size=1, max_size=5))
@settings(deadline=None)
def test_packets_survive_their_pages(payloads: list[bytes]) -> None:
    writer = OggOpusWriter(24_000, 156, serial=7)
    data = writer.headers()
    for number, payload in enumerate(payloads):
        data += writer.packet(payload, 480 * (number + 1), last=number == len(payloads) - 1)
    pages = parse_pages(data)
    assert [page[3] for page in pages] == list(range(len(payloads) + 2))
    assert {page[2] for page in pages} == {7}
    assert [page[0] for page in pages] == [FIRST, *[0] * len(payloads), LAST]
    assert [page[1] for page in pages] == [0, 0, *(960 * (i + 1) for i in range(len(payloads)))]
    assert [page[4] for page in pages] == [
        [opus_head(312, 24_000)],
        [opus_tags("voxwire")],
        *([p] for p in payloads),
    ]


def test_packet_of_a_multiple_of_255_bytes_ends() -> None:
    assert parse_pages(OggOpusWriter(48_000, 312).packet(bytes(510), 960))[0][4] == [bytes(510)]


def test_nothing_over_a_page() -> None:
    with pytest.raises(ValueError, match="page"):
        OggOpusWriter(48_000, 312).packet(bytes(65_025), 960)


def test_rate_divides_the_granule_rate() -> None:
    with pytest.raises(ValueError, match="rate"):
        OggOpusWriter(44_100, 312)


def test_tags_carry_comments() -> None:
    assert opus_tags("v", ("TITLE=ä",)) == b"OpusTags\x01\0\0\0v\x01\0\0\0\x08\0\0\0TITLE=\xc3\xa4"


def test_empty_last_page_ends_no_packet() -> None:
    (page,) = parse_pages(OggOpusWriter(24_000, 156).end())
    assert page[:2] == (LAST, -1)
    assert not page[4]


# Not at 8 kHz: FFmpeg's own decoder is 24 samples late in narrow band and trims wrongly (opusdec does not).
@given(st.integers(1, 9_000), st.sampled_from(OPUS_RATES[1:]), st.sampled_from(OPUS_FRAMES_MS))
@settings(deadline=None, max_examples=60)
def test_player_hears_exactly_what_was_sent(samples: int, rate: int, frame_ms: float) -> None:
    decoded, decoded_rate = decode_file(ogg_file(AudioFormat("opus", rate, frame_ms), samples))
    assert decoded_rate == 48_000
    assert len(decoded) == samples * 48_000 // rate


def test_audio_begins_where_it_should() -> None:
    fmt = AudioFormat("opus", 48_000, application="audio", complexity=10, bitrate=64_000)
    decoded, _ = decode_file(ogg_file(fmt, 24_000))
    assert lag(speech_like(24_000, 48_000), decoded) <= 1


@pytest.mark.parametrize("samples", [1, 3_683, 3_684, 3_685, 48_000])
def test_opusinfo_finds_nothing_to_say(samples: int, tmp_path: Path) -> None:
    path = tmp_path / "speech.opus"
    path.write_bytes(ogg_file(AudioFormat(), samples))
    told = run_tool("opusinfo", path)
    if told is None:
        pytest.skip("opusinfo (opus-tools) is not installed")
    assert "type opus" in told
    assert "WARNING" not in told
    assert f"Playback length: 0m:{samples / 24_000:06.3f}"[:-1] in told


@pytest.mark.parametrize("samples", [1, 80, 3_684, 10_000])
@pytest.mark.parametrize(
    "fmt", [AudioFormat(), AudioFormat("opus", 8_000, 60), AudioFormat("opus", 16_000, 2.5)]
)
def test_opusdec_hears_exactly_what_was_sent(samples: int, fmt: AudioFormat, tmp_path: Path) -> None:
    source, target = tmp_path / "speech.opus", tmp_path / "speech.wav"
    source.write_bytes(ogg_file(fmt, samples))
    if run_tool("opusdec", "--quiet", "--rate", "48000", source, target) is None:
        pytest.skip("opusdec (opus-tools) is not installed")
    with av.open(str(target)) as container:
        assert (
            sum(frame.samples for frame in container.decode(audio=0)) == samples * 48_000 // fmt.sample_rate
        )
