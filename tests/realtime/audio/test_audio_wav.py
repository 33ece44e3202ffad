import io
import wave

import numpy as np
import pytest

from realtime.audio.pcm import f32le, s16le
from realtime.audio.wav import MAX_DATA_BYTES, wav_header
from tests.support.audio import decode_file, speech_like


def test_known_length_reads_back() -> None:
    speech = speech_like(2_401)
    data = wav_header(24_000, len(speech)) + s16le(speech)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        assert file.getnframes() == 2_401
        assert file.readframes(2_401) == s16le(speech)


def test_unknown_length_reads_to_the_end() -> None:
    speech = speech_like(2_401)
    data = wav_header(24_000) + s16le(speech)
    assert data[4:8] == data[40:44] == b"\xff\xff\xff\xff"
    with wave.open(io.BytesIO(data)) as file:
        assert file.readframes(file.getnframes()) == s16le(speech)
    decoded, rate = decode_file(data)
    assert rate == 24_000
    assert np.allclose(decoded, speech, atol=1 / 32_768)


@pytest.mark.parametrize("samples", [None, 500])
def test_soundfile_reads_it(samples: int | None) -> None:
    soundfile = pytest.importorskip("soundfile")
    speech = speech_like(500)
    got, rate = soundfile.read(io.BytesIO(wav_header(16_000, samples) + s16le(speech)), dtype="float32")
    assert rate == 16_000
    assert np.allclose(got, speech, atol=1 / 32_768)


def test_float_samples() -> None:
    speech = speech_like(500)
    decoded, _ = decode_file(wav_header(48_000, 500, "f32") + f32le(speech))
    assert np.array_equal(decoded, speech)


def test_a_length_over_4_gib_is_refused() -> None:
    with pytest.raises(ValueError, match="samples"):
        wav_header(24_000, MAX_DATA_BYTES // 2 + 1)
