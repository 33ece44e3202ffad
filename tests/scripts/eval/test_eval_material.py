"""Teacher audio, voices and lists as they lie on disk."""

import json
import lzma
from pathlib import Path

import numpy as np
import torch

from engine.models.ember import layout
from engine.models.ember.codec import CodecConfig, EmberCodec
from scripts.eval.audio import write_wave
from scripts.eval.sentences import LISTS, pick
from scripts.eval.teacher import Teacher
from scripts.eval.voices import load_voices, reference_tokens


def write_teacher(folder: Path) -> None:
    rows = "0\theldout\tyes, it is.\n1\theldout\tno.\n"
    (folder / "ref_sentences.tsv.xz").write_bytes(lzma.compress(rows.encode()))
    np.save(folder / "a.a.npy", np.arange(1500, dtype=np.int16))
    np.save(folder / "a.w.npy", np.array([10, 500, 700, 20], np.int32))
    np.save(folder / "a.l.npy", np.zeros(4, np.uint8))
    np.save(folder / "a.m.npy", np.array([[0, 3, 1000, 0, 3, 0], [1, 120, 500, 3, 1, 3]], np.int64))


def test_teacher_is_found_by_what_is_said(tmp_path: Path) -> None:
    write_teacher(tmp_path)
    teacher = Teacher(tmp_path)
    assert len(teacher) == 2
    found = teacher.find("Yes it is!", speaker=3)
    assert found is not None
    assert found.word_starts.tolist() == [10, 500, 700]
    assert len(found.wave) == 1000
    other = teacher.find("no.", speaker=3)
    assert other is not None
    assert other.speaker == 120
    assert other.wave[0] == np.float32(1000 / 32768)
    assert teacher.find("perhaps.") is None


def test_word_stands_before_the_first_code_of_every_word() -> None:
    a, b, c = (layout.CODE_BASE + code for code in (5, 6, 7))
    codes = np.array([5, 6, 7])
    assert reference_tokens(codes, [480, 961]) == [a, layout.WORD, b, layout.WORD, c]
    assert reference_tokens(codes, []) == [a, b, c]


def test_voices_are_made_from_audio_or_taken_as_stored(tmp_path: Path) -> None:
    torch.manual_seed(0)
    small = CodecConfig(dim=16, inner=16, speaker_dim=4, speaker_width=8)
    codec = EmberCodec(small).eval()
    for name in ("ada", "kai"):
        write_wave(tmp_path / name / "prompt.wav", np.zeros(24_000, np.float32))
        (tmp_path / name / "transcript.txt").write_text("hello.\n")
        (tmp_path / name / "voice.json").write_text(json.dumps({"word_starts": [960]}))
    np.save(tmp_path / "kai" / "tokens.npy", np.array([layout.WORD, layout.CODE_BASE + 1]))
    np.save(tmp_path / "kai" / "spk.npy", np.ones(4, np.float16))
    ada, kai = load_voices(tmp_path, codec)
    assert len(ada.prefix) % layout.PREFIX_BLOCK == 0
    assert ada.prefix.count(layout.WORD) == 1
    assert sum(token >= layout.CODE_BASE for token in ada.prefix) == 50
    assert ada.vector.shape == (1, 4)
    assert kai.prefix[-2:] == [layout.WORD, layout.CODE_BASE + 1]
    assert kai.vector.tolist() == [[1.0] * 4]
    assert kai.speaker == 1
    assert ada.speaker is None


def test_lists_are_whole_and_speakable() -> None:
    allowed = set("abcdefghijklmnopqrstuvwxyz '.,?!;:-")
    sizes = {name: len(load()) for name, load in LISTS.items()}
    assert sizes == {"everyday": 100, "heldout": 200}
    for name in LISTS:
        for sentence in LISTS[name]():
            assert set(sentence.spoken) <= allowed, sentence


def test_a_few_sentences_are_spread_over_the_list() -> None:
    names = [sentence.name for sentence in pick("heldout", 4)]
    assert names == ["heldout-000", "heldout-050", "heldout-100", "heldout-150"]
