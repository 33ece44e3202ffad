import json

import numpy as np
import pytest

from engine.errors import ModelUnusable, VoiceNotFound
from engine.models.ember import layout
from engine.models.ember.model import EmberModel


@pytest.fixture
def folder(tmp_path):
    for part in ("lm", "codec", "voices/ada", "voices/bob"):
        (tmp_path / part).mkdir(parents=True)
    (tmp_path / "lm/config.json").write_text(json.dumps({"vocab_size": layout.VOCAB_SIZE}))
    (tmp_path / "lm/generation_config.json").write_text(json.dumps({"temperature": 0.5, "top_k": 40}))
    (tmp_path / "codec/config.json").write_text("{}")
    (tmp_path / "codec/model.safetensors").write_bytes(b"")
    for name in ("ada", "bob"):
        voice = tmp_path / "voices" / name
        (voice / "voice.json").write_text(
            json.dumps({"description": f"{name}'s voice", "default": name == "bob"})
        )
        (voice / "transcript.txt").write_text("hello you\n")
        np.save(voice / "tokens.npy", np.array([layout.WORD, layout.CODE_BASE + 5] * 20, np.int32))
        np.save(voice / "spk.npy", np.ones(192, np.float32))
    return tmp_path


def test_info_and_prefix(folder):
    model = EmberModel(folder)
    assert model.info.default_voice == "bob"
    assert model.info.voices["ada"].description == "ada's voice"
    assert (model.info.defaults.temperature, model.info.defaults.top_k, model.info.defaults.top_p) == (
        0.5,
        40,
        1.0,
    )
    prompt = model.voice("ada")
    assert len(prompt.prefix) == model.info.voices["ada"].prefix_tokens
    assert len(prompt.prefix) % layout.PREFIX_BLOCK == 0
    assert prompt.speaker.shape == (192,)
    with pytest.raises(VoiceNotFound, match="ada, bob"):
        model.voice("eve")


def test_words_it_can_read():
    read = EmberModel.word_pattern.fullmatch
    assert all(map(read, ("hello,", "re-do", "i'm", "a", "seven.", "'tis", "o'clock!")))
    assert not any(map(read, ("", "...", "Hello", "a b", "é", "7")))


def test_layout_ids():
    tokens = EmberModel.layout
    assert tokens.text_block("hi ", True) == layout.text_block("hi ", final=True)
    assert layout.EOS in tokens.audio_or_end
    assert layout.EOS not in tokens.audio
    assert len(tokens.audio) == layout.CODE_COUNT + 1
    assert max(tokens.audio) < tokens.vocab_size
    assert not tokens.is_code(layout.CODE_BASE - 1)
    assert not tokens.is_code(layout.CODE_BASE + layout.CODE_COUNT)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("tokens.npy", np.array([layout.PAD]), "neither codes nor"),
        ("tokens.npy", np.full(2000, layout.CODE_BASE), "at most 1024"),
        ("spk.npy", np.ones(10), "192 finite"),
        ("spk.npy", np.full(192, np.nan), "192 finite"),
    ],
)
def test_a_bad_voice_is_named(folder, name, value, told):
    np.save(folder / "voices/ada" / name, value)
    with pytest.raises(ModelUnusable, match=told):
        EmberModel(folder).info  # noqa: B018


def test_what_is_missing_is_named(folder):
    (folder / "codec/model.safetensors").unlink()
    with pytest.raises(ModelUnusable, match="codec"):
        EmberModel(folder)
