import warnings

import numpy as np
import pytest

from realtime.audio.g711 import decode_alaw, decode_mulaw, encode_alaw, encode_mulaw
from realtime.audio.pcm import to_int16
from tests.support.audio import snr_db, speech_like

EVERY = np.arange(-32_768, 32_768).astype(np.int16)
EVERY_CODE = bytes(range(256))

# Code and decoder output of ITU-T G.711, tables 1 and 2, scaled to 16 bits: ends of the segments.
MULAW = {
    0x80: 32_124, 0x8F: 16_764, 0x90: 15_996, 0x9F: 8_316, 0xA0: 7_932, 0xAF: 4_092, 0xB0: 3_900, 0xBF: 1_980,
    0xC0: 1_884, 0xCF: 924, 0xD0: 876, 0xDF: 396, 0xE0: 372, 0xEF: 132, 0xF0: 120, 0xFE: 8, 0xFF: 0,
}  # fmt: skip
ALAW = {
    0xAA: 32_256, 0xA5: 16_896, 0xBA: 16_128, 0xB5: 8_448, 0x8A: 8_064, 0x85: 4_224, 0x9A: 4_032, 0x95: 2_112,
    0xEA: 2_016, 0xE5: 1_056, 0xFA: 1_008, 0xF5: 528, 0xCA: 504, 0xC5: 264, 0xDA: 248, 0xD5: 8,
}  # fmt: skip


@pytest.mark.parametrize(("code", "value"), MULAW.items())
def test_mulaw_vectors(code: int, value: int) -> None:
    assert decode_mulaw(bytes([code, code ^ 0x80])).tolist() == [value, -value]
    assert encode_mulaw(np.array([value], np.int16)) == bytes([code])


@pytest.mark.parametrize(("code", "value"), ALAW.items())
def test_alaw_vectors(code: int, value: int) -> None:
    assert decode_alaw(bytes([code, code ^ 0x80])).tolist() == [value, -value]
    assert encode_alaw(np.array([value, -value], np.int16)) == bytes([code, code ^ 0x80])


def test_codes_survive_a_round_trip() -> None:
    assert encode_alaw(decode_alaw(EVERY_CODE)) == EVERY_CODE
    # Mu-law has two zeros; the negative one becomes the other.
    assert encode_mulaw(decode_mulaw(EVERY_CODE)) == EVERY_CODE.replace(b"\x7f", b"\xff")


@pytest.mark.parametrize(("encode", "decode"), [(encode_mulaw, decode_mulaw), (encode_alaw, decode_alaw)])
def test_error_is_within_half_a_step(encode, decode) -> None:
    # Beyond the last decision value the coder saturates.
    inside = EVERY[np.abs(EVERY.astype(np.int32)) < 32_124]
    error = np.abs(decode(encode(inside)).astype(np.int32) - inside)
    # 16 steps a segment, so half a step is 1/32 of the segment's start, which is 132 (mu-law's bias) or more
    # from zero on the logarithmic scale; and one for the negative side, which is coded in one's complement.
    assert (error <= (np.abs(inside.astype(np.int32)) + 132) / 32 + 4).all()


@pytest.mark.parametrize("encode", [encode_mulaw, encode_alaw])
def test_both_signs_code_alike(encode) -> None:
    positive = encode(EVERY[EVERY >= 0])
    assert encode(~EVERY[EVERY >= 0]) == bytes(code ^ 0x80 for code in positive)


def test_agrees_with_the_standard_library_while_there_is_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        audioop = pytest.importorskip("audioop", exc_type=ImportError)
    assert decode_mulaw(EVERY_CODE).tobytes() == audioop.ulaw2lin(EVERY_CODE, 2)
    assert decode_alaw(EVERY_CODE).tobytes() == audioop.alaw2lin(EVERY_CODE, 2)
    assert encode_alaw(EVERY) == audioop.lin2alaw(EVERY.tobytes(), 2)
    # Where a negative sample is exactly between two mu-law codes, audioop takes the other one.
    positive = EVERY[EVERY >= 0]
    assert encode_mulaw(positive) == audioop.lin2ulaw(positive.tobytes(), 2)


@pytest.mark.parametrize(("encode", "decode"), [(encode_mulaw, decode_mulaw), (encode_alaw, decode_alaw)])
def test_speech_has_telephone_quality(encode, decode) -> None:
    speech = speech_like(16_000, 8_000)
    decoded = decode(encode(to_int16(speech))).astype(np.float32) / 32_768
    assert snr_db(speech, decoded) > 34
