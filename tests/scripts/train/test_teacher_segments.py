"""Cutting a pass into utterances, shards, packing and speakers: no model."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from scripts.train import jobs, segments, shards, synth
from scripts.train.phonemes import Phonemes
from scripts.train.speakers import FIRST_RANDOM, FIXED, STYLES, random_speaker

RATE = 24000


def tone(seconds: float) -> np.ndarray:
    t = np.arange(int(seconds * RATE)) / RATE
    return (0.3 * np.sin(2 * np.pi * 220 * t)).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * RATE), np.float32)


def two_sentences(factor: float = 1.0) -> tuple[np.ndarray, np.ndarray, list[Phonemes]]:
    """Pad 0.5 s, "aa bb." with 0.4 s a word, 0.5 s pause, "cc." and a pad; 40 teacher frames a second."""
    sentences = [Phonemes([50, 50, 16, 51, 51, 4], [0, 3]), Phonemes([52, 52, 4], [0])]
    durations = np.array([20, 8, 8, 4, 8, 8, 10, 10, 8, 8, 10, 10])
    audio = np.concatenate(
        [silence(0.5), tone(0.4), silence(0.1), tone(0.4), silence(0.5), tone(0.4), silence(0.5)]
    )
    lag = segments.LAG
    audio = np.concatenate([audio[lag:], silence(lag / RATE)])
    n = int(len(audio) / factor)
    return np.interp(np.arange(n) * factor, np.arange(len(audio)), audio), durations, sentences


@pytest.mark.parametrize("factor", [1.0, 0.8, 1.25])
def test_split_finds_words_and_trims(factor: float) -> None:
    audio, durations, sentences = two_sentences(factor)
    first, second = segments.split(audio, durations, sentences, [7, 8], factor)
    assert (first.id, second.id) == (7, 8)
    step = segments.HOP
    for u, seconds in ((first, 0.9), (second, 0.4)):
        rest = len(u.audio) - segments.LEAD - seconds * RATE / factor
        assert segments.TAIL_LEAST - 3 * step <= rest <= segments.TAIL + 3 * step
    assert first.words[0] <= segments.LEAD
    assert abs(first.words[1] - (segments.LEAD + 0.5 * RATE / factor)) <= 3 * step
    for u in (first, second):
        lead, tail = np.flatnonzero(np.abs(u.audio) > 300)[[0, -1]]
        assert lead <= 0.04 * RATE
        assert 0.08 * RATE <= len(u.audio) - tail <= 0.16 * RATE
        assert len(u.labels) == -(-len(u.audio) // 480)
    assert set(first.labels[3:18].tolist()) == {50}
    assert second.labels[5] == 52


def test_trailing_silence_is_padded_where_the_next_sentence_is_close() -> None:
    audio = np.concatenate([silence(0.1), tone(0.5), silence(0.02)])
    sentence = Phonemes([50, 4], [0])
    u = segments.trim(audio, 0, len(audio), sentence, np.array([2400.0, 14400.0, 15000.0]), 1)
    assert u is not None
    tail = np.flatnonzero(np.abs(u.audio) > 300)[-1]
    assert len(u.audio) - tail >= 0.08 * RATE


def test_silence_and_lengths_out_of_range_are_refused() -> None:
    sentence = Phonemes([50, 4], [0])
    edges = np.array([0.0, 1.0, 2.0])
    assert segments.trim(silence(1), 0, RATE, sentence, edges, 1) is None
    assert segments.trim(tone(17), 0, 17 * RATE, sentence, edges, 1) is None


def test_stress_and_length_take_their_neighbours_label() -> None:
    assert segments.token_labels([156, 50, 158, 16, 4]).tolist() == [50, 50, 50, 16, 4]


def test_labels_outside_the_tokens_are_none() -> None:
    labels = segments.frame_labels(np.array([5], np.uint8), np.array([480.0, 960.0]), 0.0, 1440)
    assert labels.tolist() == [255, 5, 255]


def test_resample_changes_length_and_keeps_the_level() -> None:
    x = torch.from_numpy(tone(0.5))
    y = segments.resample(x, 1.25)
    assert len(y) == int(len(x) / 1.25)
    assert abs(float(y[500:-500].square().mean().sqrt()) - float(x.square().mean().sqrt())) < 0.005
    assert segments.resample(x, 1.0) is x


def test_shards_round_trip(tmp_path: Path) -> None:
    audio, durations, sentences = two_sentences()
    made = segments.split(audio, durations, sentences, [7, 8], 1.0)
    writer = shards.ShardWriter(tmp_path, "t00", seconds=0.1)
    for u in made:
        writer.add(u, 103)
    assert writer.full()
    writer.flush()
    back = shards.read(tmp_path / "t00_0000.m.npy")
    assert [s for _, s in back] == [103, 103]
    for a, (b, _) in zip(made, back, strict=True):
        assert a.id == b.id
        for name in ("audio", "words", "labels"):
            assert np.array_equal(getattr(a, name), getattr(b, name))
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def items(count: int, size: int) -> list[jobs.Item]:
    return [jobs.Item(k, Phonemes([50] * size, [0, 2])) for k in range(count)]


def test_packs_keep_order_limits_and_enough_sentences() -> None:
    packs = jobs.pack(items(400, 60), random.Random(1))
    assert all(p.tokens <= jobs.TOKENS_A_PASS for p in packs)
    assert all(len(p.items) >= 3 for p in packs if p.speaker.id >= FIRST_RANDOM)
    ids = [i.id for p in packs for i in p.items]
    assert ids == sorted(ids)
    fixed = sum(p.speaker.id < FIRST_RANDOM for p in packs) / len(packs)
    assert 0.2 < fixed < 0.5
    randoms = [p.speaker.id for p in packs if p.speaker.id >= FIRST_RANDOM]
    assert len(randoms) == len(set(randoms))


def test_jobs_round_trip(tmp_path: Path) -> None:
    packs = jobs.pack(items(30, 40), random.Random(2))
    styles = np.zeros((len(STYLES), 4, 256), np.float16)
    jobs.save(tmp_path / "j.npz", packs, styles)
    back, _ = jobs.load(tmp_path / "j.npz")
    assert [(p.speaker.id, [(i.id, i.spoken) for i in p.items]) for p in back] == [
        (p.speaker.id, [(i.id, i.spoken) for i in p.items]) for p in packs
    ]


def test_second_round_has_other_speakers_for_the_same_sentences() -> None:
    packs = jobs.pack(items(60, 60), random.Random(3))
    line = synth.rounds(packs, once=False)
    one, two = next(line), next(line)
    assert [p.items for p in one] == [p.items for p in two]
    assert any(a.speaker != b.speaker for a, b in zip(one, two, strict=True))


def test_batches_cover_every_pass_once() -> None:
    packs = jobs.pack(items(300, 50), random.Random(4))
    seen = [p.items[0].id for b in synth.batches(packs, 4) for p in b]
    assert sorted(seen) == [p.items[0].id for p in packs]


def test_tuner_keeps_the_fastest_mode() -> None:
    calls: list[str] = []
    tuner = synth.Tuner(modes=(("plain", ()), ("b", (lambda: calls.append("b"),))), warm=1, measured=1)
    for rate in (1.0, 1.0, 5.0, 5.0):
        tuner.start()
        tuner.result(rate, 1.0)
    assert tuner.done
    assert tuner.rates == {"plain": 1.0, "b": 5.0}
    assert calls == ["b", "b"]


def test_speakers_are_distinct_mixtures() -> None:
    assert [s.id for s in FIXED] == list(range(12))
    assert len({(s.weights, s.factor) for s in FIXED}) == 12
    rng = random.Random(5)
    for k in range(200):
        s = random_speaker(FIRST_RANDOM + k, rng)
        assert sum(s.weights) == pytest.approx(1, abs=0.01)
        assert 0.8 <= s.factor <= 1.25
        assert s.weights[0] <= 0.36
