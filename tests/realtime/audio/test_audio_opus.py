import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from realtime.audio.encoder import make_encoder
from realtime.audio.formats import OPUS_FRAMES_MS, OPUS_RATES, AudioFormat
from realtime.audio.libopus import OpusFault, OpusUnavailable, load_libopus
from realtime.audio.opus import Backend, PyAvOpus, open_live_opus, open_opus
from tests.support.audio import LossyDecoder, cut, decode_opus, encode_all, lag, snr_db, speech_like

BACKENDS: list[Backend] = ["pyav", "libopus"]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param  # type: ignore[no-any-return]


def bitrate(payloads: list[bytes], frame_ms: float) -> float:
    return sum(map(len, payloads)) * 8 / (len(payloads) * frame_ms / 1000)


def payloads_of(fmt: AudioFormat, backend: Backend, samples: int = 48_000, gain: float = 1.0) -> list[bytes]:
    speech = speech_like(samples * fmt.sample_rate // 24_000, fmt.sample_rate) * np.float32(gain)
    encoder = make_encoder(fmt, fmt.sample_rate, backend=backend)
    return [packet.payload for packet in encode_all(encoder, [speech])]


def sound(decoded: np.ndarray, pre_skip_48k: int, samples: int) -> np.ndarray:
    return decoded[pre_skip_48k : pre_skip_48k + samples]


@pytest.mark.parametrize("rate", OPUS_RATES)
@pytest.mark.parametrize("frame_ms", OPUS_FRAMES_MS)
def test_every_rate_and_frame_gives_packets_of_its_length(
    backend: Backend, rate: int, frame_ms: float
) -> None:
    fmt = AudioFormat("opus", rate, frame_ms)
    packets = encode_all(make_encoder(fmt, rate, backend=backend), [speech_like(rate // 2, rate)])
    assert {packet.samples for packet in packets[:-1]} == {fmt.frame_samples}
    assert len(decode_opus(packets)) == len(packets) * fmt.frame_samples * 48_000 // rate


@pytest.mark.parametrize("bitrate", [6_000, 128_000])
@pytest.mark.parametrize("vbr", [True, False])
@pytest.mark.parametrize("frame_ms", [2.5, 20, 60])
def test_extreme_bitrates_open(backend: Backend, bitrate: int, vbr: bool, frame_ms: float) -> None:
    assert payloads_of(AudioFormat("opus", frame_ms=frame_ms, bitrate=bitrate, vbr=vbr), backend, 4_800)


@pytest.mark.parametrize("application", ["voip", "audio", "lowdelay"])
@pytest.mark.parametrize("rate", OPUS_RATES)
def test_pre_skip_is_where_the_audio_begins(backend: Backend, application: str, rate: int) -> None:
    # Complexity 5 and this bitrate choose a mode that keeps the waveform, except voip, which may shape it.
    fmt = AudioFormat("opus", rate, 20, 64_000, application=application)  # type: ignore[arg-type]
    encoder = make_encoder(fmt, rate, backend=backend)
    speech = speech_like(rate, rate)
    decoded = decode_opus(encode_all(encoder, [speech]))
    scale = 48_000 // rate
    upsampled = np.repeat(speech, scale)
    assert abs(lag(upsampled, decoded) - encoder.pre_skip * scale) <= max(scale, 24)


def test_speech_keeps_its_waveform(backend: Backend) -> None:
    fmt = AudioFormat("opus", 48_000, 20, 64_000, application="audio", complexity=5)
    encoder = make_encoder(fmt, 48_000, backend=backend)
    speech = speech_like(96_000, 48_000)
    decoded = decode_opus(encode_all(encoder, cut(speech, [1_000])))
    assert snr_db(speech, sound(decoded, encoder.pre_skip, len(speech))) > 10


def test_default_keeps_the_spectrum_of_speech(backend: Backend) -> None:
    speech = speech_like(48_000, 24_000)
    encoder = make_encoder(AudioFormat(), 24_000, backend=backend)
    decoded = decode_opus(encode_all(encoder, cut(speech, [480])))[2 * encoder.pre_skip :][::2][: len(speech)]

    def envelope(pcm: np.ndarray) -> np.ndarray:
        # Energy of 20 bands up to 4 kHz, every 20 ms.
        frames = pcm[: len(pcm) // 480 * 480].reshape(-1, 480) * np.hanning(480)
        power = np.square(np.abs(np.fft.rfft(frames)))[:, 2:82].reshape(len(frames), 20, 4).sum(2)
        return np.asarray(10 * np.log10(power + 1e-3))

    assert np.abs(envelope(speech) - envelope(decoded)).mean() < 3


def test_constant_bitrate_is_constant(backend: Backend) -> None:
    assert {len(p) for p in payloads_of(AudioFormat(bitrate=24_000, vbr=False), backend)} == {60}


def test_variable_bitrate_follows_its_target(backend: Backend) -> None:
    for target in (16_000, 24_000, 48_000):
        rate = bitrate(payloads_of(AudioFormat(bitrate=target), backend), 20)
        assert 0.5 * target < rate < 1.15 * target


def test_complexity_and_application_reach_the_codec(backend: Backend) -> None:
    default = payloads_of(AudioFormat(), backend)
    assert payloads_of(AudioFormat(complexity=0), backend) != default
    # The upper five bits of a packet's first byte: below 16 is SILK or hybrid, from 16 on CELT.
    assert {payload[0] >> 3 >= 16 for payload in default} == {False}
    assert {p[0] >> 3 >= 16 for p in payloads_of(AudioFormat(application="lowdelay"), backend)} == {True}


def test_dtx_sends_next_to_nothing_for_silence() -> None:
    silent = payloads_of(AudioFormat(dtx=True), "libopus", gain=0.0)
    assert sum(len(payload) <= 2 for payload in silent) > 0.7 * len(silent)
    assert all(payload for payload in silent)
    assert sum(len(p) <= 2 for p in payloads_of(AudioFormat(), "libopus", gain=0.0)) == 0


def test_options_that_a_binding_lacks_are_refused_not_dropped() -> None:
    # A later PyAV may have it; then it must work.
    told = ""
    try:
        silent = payloads_of(AudioFormat(dtx=True), "pyav", gain=0.0)
    except OpusUnavailable as error:
        told = str(error)
    assert "dtx" in told or min(map(len, silent)) <= 2


@pytest.mark.parametrize(
    "fmt",
    [
        AudioFormat(),
        AudioFormat("opus", 16_000, 60, 20_000, vbr=False),
        AudioFormat("opus", 48_000, 2.5, 64_000),
        AudioFormat("opus", 24_000, 20, fec=True, packet_loss=10, complexity=9),
        AudioFormat(application="audio"),
    ],
    ids=lambda fmt: f"{fmt.sample_rate}-{fmt.frame_ms:g}-{fmt.application}",
)
def test_bindings_agree(fmt: AudioFormat) -> None:
    if "av.libs" not in load_libopus()._name:
        pytest.skip("the two bindings use different versions of libopus here")
    assert payloads_of(fmt, "libopus") == payloads_of(fmt, "pyav")


def test_fec_hides_a_lost_packet(backend: Backend) -> None:
    speech = speech_like(32_000, 16_000)

    def recovered_db(fmt: AudioFormat) -> float:
        packets = encode_all(make_encoder(fmt, 16_000, backend=backend), [speech])
        complete, lossy = LossyDecoder(16_000), LossyDecoder(16_000)
        want, got = [], []
        for number, packet in enumerate(packets[:-1]):
            heard = complete.decode(packet.payload, 320)
            if number % 5 < 4:
                lossy.decode(packet.payload, 320)
            else:
                want.append(heard)
                got.append(lossy.decode(packets[number + 1].payload, 320, lost=True))
        return snr_db(np.concatenate(want), np.concatenate(got))

    plain = AudioFormat("opus", 16_000, 20, 32_000)
    protected = AudioFormat("opus", 16_000, 20, 32_000, fec=True, packet_loss=20)
    assert recovered_db(protected) > recovered_db(plain) + 3


def test_live_bitrate_holds_from_the_next_frame() -> None:
    port = open_live_opus(AudioFormat(bitrate=48_000, vbr=False))
    frames = cut(speech_like(960), [480])
    assert len(port.encode(frames[0])) == 120
    port.set_bitrate(16_000)
    assert len(port.encode(frames[1])) == 40


def test_live_dtx_holds_from_the_next_silence() -> None:
    port = open_live_opus(AudioFormat())
    zeros = np.zeros(480, np.float32)
    assert min(len(port.encode(zeros)) for _ in range(50)) > 2
    port.set_dtx(True)
    assert min(len(port.encode(zeros)) for _ in range(50)) <= 2


def test_live_fec_holds_from_the_next_frame() -> None:
    frames = cut(speech_like(9_600, 16_000), [320])
    steady, switched = (open_live_opus(AudioFormat("opus", 16_000)) for _ in range(2))
    assert [steady.encode(f) for f in frames[:15]] == [switched.encode(f) for f in frames[:15]]
    switched.set_fec(True, 20)
    assert [steady.encode(f) for f in frames[15:]] != [switched.encode(f) for f in frames[15:]]


def test_libopus_never_reads_past_a_frame() -> None:
    port = open_live_opus(AudioFormat())
    for wrong in (np.zeros(479, np.float32), np.zeros(480), np.zeros(960, np.float32)[::2]):
        with pytest.raises(ValueError, match="must be float32"):
            port.encode(wrong)


def test_refusals_of_libopus_carry_its_code() -> None:
    with pytest.raises(OpusFault) as caught:
        open_live_opus(AudioFormat()).set_fec(True, 101)
    assert caught.value.code == -1


def test_no_library_is_a_typed_error_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    load_libopus.cache_clear()
    monkeypatch.setattr("realtime.audio.libopus.find_library", lambda name: None)
    monkeypatch.setattr("realtime.audio.libopus._BUNDLED", ())
    assert open_opus(AudioFormat()).encode(np.zeros(480, np.float32))
    with pytest.raises(OpusUnavailable, match="libopus0"):
        open_opus(AudioFormat(), "libopus")


def test_an_encoder_holds_no_threads() -> None:
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("needs /proc")
    before = len(list(tasks.iterdir()))
    ports = [PyAvOpus(AudioFormat()) for _ in range(8)]
    for port in ports:
        port.encode(np.zeros(480, np.float32))
    assert len(list(tasks.iterdir())) == before


def test_encoding_lets_other_threads_run(backend: Backend) -> None:
    """With a switch interval of minutes, this thread gets turns only when the encoder gives up the GIL."""
    port = open_opus(AudioFormat(complexity=10), backend)
    frames = cut(speech_like(96_000), [480])
    done = threading.Event()

    def work() -> None:
        for frame in frames:
            port.encode(frame)
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(300)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        turns = 0
        while not done.wait(0.0001):
            turns += 1
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert turns > 5


def test_what_one_binding_cannot_do_the_other_is_taken_for() -> None:
    encoder = make_encoder(AudioFormat(dtx=True), 24_000)
    packets = [*encoder.encode(np.zeros(24_000, np.float32)), *encoder.finish()]
    assert min(len(packet.payload) for packet in packets) <= 2
