"""Every stage of the training pipeline at a tiny size, on made-up audio."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine.models.ember.codec import CodecConfig, EmberCodec
from engine.models.ember.layout import VOCAB_SIZE
from scripts.train import encode, fake_shards, package, quantise, teacher_audio, train_codec, train_lm
from scripts.train.llama import LlamaConfig, save_hf
from scripts.train.rows import Corpus
from scripts.train.shards import ShardWriter

SMALL = CodecConfig(
    dim=16, inner=32, encoder_high=1, encoder_low=1, decoder_low=1, decoder_high=1, speaker_width=16
)


@pytest.fixture(scope="module")
def texts() -> dict[int, str]:
    return dict(enumerate(fake_shards.sentences(24, np.random.default_rng(0))))


@pytest.fixture(scope="module")
def audio(tmp_path_factory: pytest.TempPathFactory, texts: dict[int, str]) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(1)
    writer = ShardWriter(folder, "fake")
    for number, text in texts.items():
        writer.add(fake_shards.speak(number, text, number % 3, rng), number % 3)
    writer.flush()
    return folder


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("codec")
    train_codec.save(EmberCodec(SMALL), folder)
    return folder


@pytest.mark.timeout(300)
def test_codec_trains_and_freezes(tmp_path: Path, audio: Path, codec: Path) -> None:
    options = "--device cpu --mode eager --hours 0.1 --rows 3 --judged-rows 2"
    sizes = "--segment 4800 --crop 2400 --reference 4800"
    few = "--max-steps 3 --log-every 1 --validation-batches 1"
    args = train_codec.parse(
        [str(audio), str(tmp_path), "--init", str(codec), *options.split(), *sizes.split(), *few.split()]
    )
    train_codec.Run(args).train()
    first, last = EmberCodec.load(codec), EmberCodec.load(tmp_path)
    frozen = EmberCodec.load(tmp_path / "frozen")
    assert (tmp_path / "frozen" / "done").exists()
    assert not torch.equal(first.decoder.head.weight, last.decoder.head.weight)
    for a, b in zip(frozen.encoder.parameters(), last.encoder.parameters(), strict=True):
        assert torch.equal(a, b)


def test_frozen_encoder_stays(tmp_path: Path, audio: Path, codec: Path) -> None:
    options = "--device cpu --mode eager --hours 0.1 --rows 2 --judged-rows 1"
    sizes = "--segment 4800 --crop 2400 --reference 4800"
    few = "--max-steps 2 --validation-batches 1 --freeze-encoder --lr 30"
    args = train_codec.parse(
        [str(audio), str(tmp_path), "--init", str(codec), *options.split(), *sizes.split(), *few.split()]
    )
    train_codec.Run(args).train()
    before, after = EmberCodec.load(codec), EmberCodec.load(tmp_path)
    for a, b in zip(before.encoder.parameters(), after.encoder.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(before.decoder.head.weight, after.decoder.head.weight)


def test_tokens_hold_every_word(audio: Path, codec: Path, texts: dict[int, str]) -> None:
    made = encode.encode(teacher_audio.complete(audio), EmberCodec.load(codec), "cpu")
    assert len(made) == len(texts)
    corpus = Corpus(made, texts)
    batch = next(corpus.batches(corpus.training, 2, 1536, seed=0))
    assert batch.ids.shape == (2, 1537)
    assert 0 <= batch.ids.min() <= batch.ids.max() < VOCAB_SIZE
    again = next(corpus.batches(corpus.training, 2, 1536, seed=0))
    assert np.array_equal(batch.ids, again.ids)


def test_language_model_step_lowers_the_loss(tmp_path: Path) -> None:
    size = "--hidden 32 --layers 1 --heads 2 --kv-heads 1 --inner 64 --dropout 0 --length 64 --rows 2"
    args = train_lm.parse(
        ["x", "x", str(tmp_path), "--device", "cpu", "--mode", "eager", "--noise", "0", *size.split()]
    )
    training = train_lm.Training(args)
    rng = np.random.default_rng(0)
    ids = rng.integers(300, 310, (2, 65)).astype(np.int32)
    batch = train_lm.Rows(ids, np.ones(ids.shape, np.bool_), np.zeros(ids.shape, np.int32))
    losses = [float(training.step(batch, 1.0)) for _ in range(30)]
    assert losses[-1] < losses[0] - 1
    training.check([training.to_device(batch)])
    assert load_file(tmp_path / "best" / "model.safetensors").keys() == training.raw.keys()


def test_documents_do_not_see_each_other() -> None:
    _, make_mask = train_lm.dense_attention()
    mask = make_mask(torch.tensor([[0, 0, 1, 1]]))
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    assert isinstance(mask, torch.Tensor)
    assert torch.equal(mask[0, 0], torch.tensor(expected, dtype=torch.bool))


def test_int8_weights_are_close() -> None:
    weight = torch.randn(64, 96, generator=torch.Generator().manual_seed(0))
    rounded, scale = quantise.quantise_matrix(weight)
    assert rounded.dtype == torch.int8
    error = (rounded.float() * scale - weight).norm() / weight.norm()
    assert error < 0.01


def test_package_holds_all_parts(tmp_path: Path, codec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = LlamaConfig(32, 1, 2, 1, 64)
    training_size = "--hidden 32 --layers 1 --heads 2 --kv-heads 1 --inner 64 --length 32"
    args = train_lm.parse(["x", "x", "x", "--device", "cpu", "--mode", "eager", *training_size.split()])
    save_hf(train_lm.Training(args).raw, config, tmp_path / "lm")
    prompt = tmp_path / "prompts" / "ann"
    prompt.mkdir(parents=True)
    package_prompt(prompt)
    options = {
        "lm": tmp_path / "lm",
        "codec": codec,
        "prompts": tmp_path / "prompts",
        "out": tmp_path / "out",
    }
    for name in ("int8", "bf16"):
        parsed = package.parse(
            [f"--{key}={value}" for key, value in options.items()] + ["--bf16"] * (name == "bf16")
        )
        package.package(parsed)
        written = json.loads((tmp_path / "out" / "lm" / "config.json").read_text())
        assert ("quantization_config" in written) == (name == "int8")
    voice = tmp_path / "out" / "voices" / "ann"
    tokens = np.load(voice / "tokens.npy")
    assert (tokens == 9).sum() == 2
    assert np.load(voice / "spk.npy").shape == (192,)


def package_prompt(folder: Path) -> None:
    from scripts.train.prompts import write_wave

    write_wave(folder / "prompt.wav", np.zeros(24_000, np.int16))
    (folder / "transcript.txt").write_text("hello there.\n")
    about = {"description": "made up", "provenance": "made up", "word_starts": [1000, 9000]}
    (folder / "voice.json").write_text(json.dumps(about))
