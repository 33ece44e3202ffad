import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.resample import Resampler
from tests.support.audio import Pcm, chunk_sizes, cut, snr_db, speech_like, whole

RATES = [8_000, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]
PAIRS = [(24_000, rate) for rate in RATES] + [(16_000, 24_000), (22_050, 24_000), (44_100, 8_000)]


def resample(pcm: Pcm, in_rate: int, out_rate: int, sizes: list[int] | None = None) -> Pcm:
    stream = Resampler(in_rate, out_rate)
    return whole(stream.push, cut(pcm, sizes or [len(pcm) or 1]), stream.finish)


def tone(frequency: float, rate: int, samples: int) -> Pcm:
    return (np.sin(2 * np.pi * frequency * np.arange(samples) / rate) * np.hanning(samples)).astype(
        np.float32
    )


@given(st.sampled_from(PAIRS), st.integers(0, 6_000), chunk_sizes)
@settings(deadline=None)
def test_output_does_not_depend_on_the_chunks(pair: tuple[int, int], samples: int, sizes: list[int]) -> None:
    pcm = np.random.default_rng(samples).uniform(-1, 1, samples).astype(np.float32)
    assert np.array_equal(resample(pcm, *pair, sizes), resample(pcm, *pair))


@given(st.sampled_from(PAIRS), st.integers(0, 5_000))
@settings(deadline=None)
def test_length_is_exact(pair: tuple[int, int], samples: int) -> None:
    in_rate, out_rate = pair
    out = resample(np.zeros(samples, np.float32), in_rate, out_rate)
    assert len(out) == int(np.floor(samples * out_rate / in_rate + 0.5))


@given(st.sampled_from(RATES), st.sampled_from(RATES), st.integers(0, 3_000))
@settings(deadline=None)
def test_any_pair_of_rates_keeps_a_constant(in_rate: int, out_rate: int, samples: int) -> None:
    out = resample(np.full(samples, 0.5, np.float32), in_rate, out_rate)
    edge = 2 * Resampler(in_rate, out_rate).lookahead * out_rate // in_rate + 2
    assert np.allclose(out[edge : len(out) - edge], 0.5, atol=1e-6)


@pytest.mark.parametrize(("in_rate", "out_rate"), PAIRS)
def test_tones_of_the_pass_band_come_out_in_place(in_rate: int, out_rate: int) -> None:
    for part in (0.02, 0.3, 0.6, 0.85):
        frequency = part * min(in_rate, out_rate) / 2
        got = resample(tone(frequency, in_rate, in_rate // 2), in_rate, out_rate)
        length = in_rate // 2 * out_rate / in_rate
        at = np.arange(len(got))
        window = 0.5 - 0.5 * np.cos(2 * np.pi * at * in_rate / out_rate / (in_rate // 2 - 1))
        want = np.sin(2 * np.pi * frequency * at / out_rate) * window
        assert abs(len(got) - length) <= 0.5
        assert np.abs(got - want).max() < 5e-4


@pytest.mark.parametrize("out_rate", [8_000, 12_000, 16_000, 22_050])
def test_what_the_output_cannot_hold_is_gone_not_folded(out_rate: int) -> None:
    for part in (1.01, 1.3, 1.9):
        high = tone(min(part * out_rate / 2, 11_900), 24_000, 12_000)
        assert np.abs(resample(high, 24_000, out_rate)).max() < 10 ** (-75 / 20)


def test_no_clicks_at_chunk_edges() -> None:
    # A click would be a jump; the second difference of a 300 Hz tone is small everywhere.
    out = resample(tone(300, 24_000, 24_000), 24_000, 8_000, [480])
    assert np.abs(np.diff(out, 2)).max() < 1.05 * (2 * np.pi * 300 / 8_000) ** 2


@pytest.mark.parametrize("out_rate", RATES)
def test_looks_ahead_five_milliseconds_at_most(out_rate: int) -> None:
    stream = Resampler(24_000, out_rate)
    assert stream.lookahead <= 120
    given_samples = len(stream.push(np.zeros(480, np.float32)))
    assert given_samples >= (480 - 120) * out_rate // 24_000


@pytest.mark.parametrize(("in_rate", "out_rate"), PAIRS)
def test_agrees_with_soxr(in_rate: int, out_rate: int) -> None:
    soxr = pytest.importorskip("soxr")
    speech = speech_like(in_rate, in_rate)
    want = soxr.resample(speech.astype(np.float64), in_rate, out_rate, quality="VHQ").astype(np.float32)
    got = resample(speech, in_rate, out_rate)
    assert abs(len(want) - len(got)) <= 1
    n = min(len(want), len(got))
    assert snr_db(want[:n], got[:n]) > 28  # the breath noise between the two pass bands' edges


def test_same_rate_passes_through() -> None:
    pcm = speech_like(1_000)
    assert np.array_equal(resample(pcm, 24_000, 24_000, [7]), pcm)


def test_rates_are_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Resampler(24_000, 0)
