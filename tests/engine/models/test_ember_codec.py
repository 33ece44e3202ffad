"""The codec's streaming promises, on random weights."""

import pytest
import torch
from torch import nn

from engine.models.ember.codec import CodecConfig, DecoderState, EmberCodec

SMALL = CodecConfig(
    dim=16, inner=32, encoder_high=1, encoder_low=1, decoder_low=2, decoder_high=2, speaker_width=16
)


@pytest.fixture(scope="module")
def codec() -> EmberCodec:
    torch.manual_seed(0)
    made = EmberCodec(SMALL).eval().requires_grad_(False)
    nn.init.normal_(made.decoder.condition.weight, std=0.3)
    for block in [*made.decoder.low, *made.decoder.high]:
        block.gain.fill_(1.0)
    return made


def random_codes(batch: int, length: int, seed: int) -> torch.Tensor:
    return torch.randint(0, 8000, (batch, length), generator=torch.Generator().manual_seed(seed))


def speakers(batch: int) -> torch.Tensor:
    rows = torch.randn(batch, 192, generator=torch.Generator().manual_seed(9))
    return nn.functional.normalize(rows, dim=-1)


@pytest.mark.parametrize("seed", range(4))
def test_streamed_equals_whole_at_random_cuts(codec: EmberCodec, seed: int) -> None:
    codes, spk = random_codes(2, 60, seed), speakers(2)
    whole = codec.decode(codes, spk)
    generator = torch.Generator().manual_seed(seed)
    state, at, parts = codec.init_state(2), 0, []
    while at < codes.shape[1]:
        n = int(torch.randint(1, 12, (), generator=generator))
        parts.append(codec.step(codes[:, at : at + n], spk, state))
        at += n
    assert whole.shape == (2, 60 * 480)
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-4)


def test_rows_do_not_hear_each_other(codec: EmberCodec) -> None:
    codes, spk = random_codes(3, 20, 1), speakers(3)
    together = codec.decode(codes, spk)
    for row in range(3):
        alone = codec.decode(codes[row : row + 1], spk[row : row + 1])
        assert torch.allclose(together[row], alone[0], atol=1e-5)


def test_states_stack_split_and_reset(codec: EmberCodec) -> None:
    codes, spk = random_codes(2, 20, 2), speakers(2)
    whole = codec.decode(codes, spk)
    state = codec.init_state(2)
    codec.step(codes[:, :7], spk, state)
    rows = state.split()
    assert [row.rows for row in rows] == [1, 1]
    codec.step(random_codes(1, 3, 3), spk[:1], rows[0])  # row 0 goes its own way
    joined = DecoderState.stack([rows[1], rows[0]])
    later = codec.step(codes[[1, 1], 7:], spk[[1, 1]], joined)
    assert torch.allclose(later[0], whole[1, 7 * 480 :], atol=1e-4)
    joined.reset(1)
    fresh = codec.step(codes[[1, 0]], spk[[1, 0]], joined)
    assert torch.allclose(fresh[1], whole[0], atol=1e-4)


def test_decoder_is_causal(codec: EmberCodec) -> None:
    codes, spk = random_codes(1, 30, 4), speakers(1)
    changed = codes.clone()
    changed[:, 20:] = random_codes(1, 10, 5)
    before = codec.decode(codes, spk)[:, : 20 * 480]
    assert torch.allclose(before, codec.decode(changed, spk)[:, : 20 * 480], atol=1e-6)


def test_codes_do_not_depend_on_the_batch(codec: EmberCodec) -> None:
    wave = torch.randn(1, 24_000, generator=torch.Generator().manual_seed(6)) * 0.1
    padded = torch.cat([wave, torch.zeros(1, 9_600)], 1)
    codes = codec.encode(wave)
    assert codes.shape == (1, 50)
    assert 0 <= int(codes.min()) <= int(codes.max()) < 8000
    assert torch.equal(codec.encode(padded)[:, :50], codes)


def test_code_vectors_round_trip(codec: EmberCodec) -> None:
    codes = torch.arange(8000)[None]
    width = codec.quantiser.width
    levels = (codec.quantiser.vectors(codes) * width + width).round()
    assert torch.equal((levels * codec.quantiser.basis).sum(-1).long(), codes)


def test_speaker_is_a_unit_vector_and_ignores_loudness(codec: EmberCodec) -> None:
    wave = torch.randn(2, 24_000, generator=torch.Generator().manual_seed(7)) * 0.1
    spk = codec.speaker(wave)
    assert torch.allclose(spk.norm(dim=-1), torch.ones(2), atol=1e-5)
    assert torch.allclose(codec.speaker(0.5 * wave), spk, atol=2e-2)


def test_new_codec_ignores_the_speaker() -> None:
    fresh = EmberCodec(SMALL).eval()
    codes = random_codes(1, 8, 8)
    first, second = speakers(2)[:1], speakers(2)[1:]
    assert torch.equal(fresh.decode(codes, first), fresh.decode(codes, second))
