import asyncio
import random

import numpy as np
import pytest
import torch

from engine.errors import EngineDead, Overloaded, VocoderFailed
from engine.models.ember.codec import CodecConfig, EmberCodec
from engine.models.ember.streaming import EmberDecoder
from engine.vocoder import Vocoder, step_size
from tests.support.tiny_model import FRAME, TinyCodec, offline


@pytest.fixture
async def codec():
    return TinyCodec()


@pytest.fixture
async def vocoder(codec):
    vocoder = Vocoder(codec, rows=4, speaker_size=1)
    await vocoder.start()
    yield vocoder
    await vocoder.stop()


def speaker(value: float) -> np.ndarray:
    return np.full(1, value, np.float32)


def test_step_sizes_are_few():
    assert [step_size(n) for n in (0, 1, 3, 7, 11, 500)] == [0, 1, 2, 4, 8, 12]


async def test_streams_are_independent_and_rows_start_afresh(vocoder):
    rng = random.Random(1)

    async def speak(name: str, value: float) -> None:
        codes = [rng.randrange(8000) for _ in range(60)]
        vocoder.open(name, speaker(value))
        out, at = [], 0
        while at < len(codes):
            size = step_size(rng.randint(1, len(codes) - at))
            out.append(await vocoder.decode(name, codes[at : at + size]))
            at += size
        vocoder.release(name)
        assert np.allclose(np.concatenate(out), offline(codes, value), atol=1e-6)

    for round_ in range(3):
        await asyncio.gather(*(speak(f"{round_}.{i}", i / 10) for i in range(4)))
    assert vocoder.open_streams == 0


async def test_a_bad_row_fails_alone(vocoder, codec):
    codec.fail_on, codec.nan_on = {13}, {14}
    for name in "abc":
        vocoder.open(name, speaker(0.1))
    jobs = [vocoder.decode("a", [1]), vocoder.decode("b", [13]), vocoder.decode("c", [14])]
    a, b, c = await asyncio.gather(*jobs, return_exceptions=True)
    assert len(a) == FRAME
    assert isinstance(b, VocoderFailed)
    assert "finite" in str(c)
    assert len(await vocoder.decode("a", [2])) == FRAME


async def test_release_is_idempotent_on_every_path(vocoder):
    vocoder.open("idle", speaker(0))
    vocoder.release("idle")
    vocoder.release("idle")
    vocoder.open("busy", speaker(0))
    job = vocoder.decode("busy", [1] * 12)
    vocoder.release("busy")  # the worker may have it: the row is free once it is done
    vocoder.release("never")
    await job
    await asyncio.sleep(0)
    assert vocoder.open_streams == 0
    for name in "abcd":
        vocoder.open(name, speaker(0))
    with pytest.raises(Overloaded):
        vocoder.open("e", speaker(0))


async def test_stop_fails_what_waits():
    vocoder = Vocoder(TinyCodec(), rows=2, speaker_size=1)
    await vocoder.start()
    vocoder.open("a", speaker(0))
    await vocoder.stop()
    with pytest.raises(EngineDead):
        vocoder.decode("a", [1])
    with pytest.raises(EngineDead):
        vocoder.open("b", speaker(0))


async def test_the_real_codec_at_any_chunking_among_others():
    """Random weights: any split, alone or in a batch, equals decoding at once to float tolerance."""
    torch.manual_seed(0)
    codec = EmberCodec(
        CodecConfig(dim=32, inner=64, decoder_low=2, decoder_high=2, encoder_high=1, encoder_low=1)
    )
    codec.eval().requires_grad_(False)
    with torch.no_grad():
        codec.decoder.condition.weight.normal_(std=0.05)  # it starts at zero: speakers would not show
    vocoder = Vocoder(EmberDecoder(codec, bfloat16=False), rows=3, speaker_size=192)
    await vocoder.start()
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8000, (3, 40))
    speakers = rng.standard_normal((3, 192)).astype(np.float32)
    whole = codec.decode(torch.from_numpy(codes), torch.from_numpy(speakers)).clamp(-1, 1).numpy()

    async def speak(row: int) -> np.ndarray:
        vocoder.open(str(row), speakers[row])
        out, at = [], 0
        while at < 40:
            size = step_size(int(rng.integers(1, 41 - at)))
            out.append(await vocoder.decode(str(row), codes[row, at : at + size].tolist()))
            at += size
        vocoder.release(str(row))
        return np.concatenate(out)

    got = await asyncio.gather(*map(speak, range(3)))
    await vocoder.stop()
    assert np.abs(np.stack(got) - whole).max() < 1e-4


async def test_bfloat16_is_close_and_leaves_the_codec_alone():
    torch.manual_seed(0)
    codec = EmberCodec(
        CodecConfig(dim=32, inner=64, decoder_low=2, decoder_high=2, encoder_high=1, encoder_low=1)
    )
    codec.eval().requires_grad_(False)
    codes, speakers = torch.randint(0, 8000, (2, 20)), torch.randn(2, 192)
    whole = codec.decode(codes, speakers)
    fast = EmberDecoder(codec, bfloat16=True)
    state = fast.init_state(2)
    made = torch.cat([fast.step(part, fast.condition(speakers), state) for part in codes.split(7, 1)], 1)
    assert made.dtype == torch.float32
    noise = (made - whole).square().sum() / whole.square().sum()
    assert noise < 10**-2.5
    assert torch.equal(codec.decode(codes, speakers), whole)
