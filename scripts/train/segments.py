"""From one teacher pass to single utterances: resampling, cutting at pauses, word starts, labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from scripts.train.phonemes import Phonemes

SAMPLE_RATE = 24000
FRAME = 600  # samples of one teacher frame at playback factor 1
LAG = 720  # samples by which the sound precedes the durations (30 ms, measured at onsets after pauses)
LABEL_FRAME = 480  # 20 ms
NO_LABEL = 255
LEAD, TAIL, TAIL_LEAST = 720, 2880, 1920  # 30, 120 and 80 ms
HOP = 120  # 5 ms, the energy resolution
FLOOR_DB = -42.0
SHORTEST, LONGEST = 0.2, 16.0
LAST_MARK = 16  # token ids up to this one are punctuation, the space and the pad
STRESS = (156, 157)
LENGTH = 158


@dataclass
class Utterance:
    """Mono int16 audio with the start sample of every word and a phoneme label for every 20 ms."""

    id: int
    audio: np.ndarray
    words: np.ndarray
    labels: np.ndarray


def resample(x: torch.Tensor, factor: float, half: int = 24) -> torch.Tensor:
    """Play a signal `factor` times as fast (windowed sinc); pitch and formants move with it."""
    if abs(factor - 1) < 1e-6:
        return x
    n = int(x.shape[0] / factor)
    at = torch.arange(n, device=x.device, dtype=torch.float64) * factor
    whole = at.floor().long()
    rest = (at - whole).float()
    cut = min(1.0, 1.0 / factor) * 0.96
    taps = torch.arange(-half + 1, half + 1, device=x.device)
    d = taps[None].float() - rest[:, None]
    weights = cut * torch.sinc(cut * d) * (0.5 + 0.5 * torch.cos(np.pi * d / (half + 0.5)))
    padded = F.pad(x, (half, half + 1))
    index = (whole[:, None] + taps[None] + half).clamp(0, padded.shape[0] - 1)
    return (padded[index] * weights).sum(1)


def energy(x: np.ndarray) -> np.ndarray:
    """Root mean square of every 5 ms."""
    n = len(x) // HOP
    power = np.square(x[: n * HOP], dtype=np.float32).reshape(n, HOP).mean(1)
    root: np.ndarray = np.sqrt(power)
    return root


def speech_span(x: np.ndarray) -> tuple[int, int] | None:
    """First and last sample louder than the floor (relative to the loudest 5 ms), or None for silence."""
    level = energy(x)
    if len(level) < 4:
        return None
    loud = np.flatnonzero(level > max(float(level.max()) * 10 ** (FLOOR_DB / 20), 1e-4))
    return (int(loud[0]) * HOP, int(loud[-1] + 1) * HOP) if len(loud) else None


def quietest(x: np.ndarray, low: int, high: int) -> int:
    """The centre of the quietest 20 ms between two samples."""
    window = 4
    level = np.square(energy(x[low:high]))
    if len(level) <= window:
        return (low + high) // 2
    sums = np.convolve(level, np.ones(window), "valid")
    return low + (int(sums.argmin()) * 2 + window) * HOP // 2


def token_labels(ids: Sequence[int]) -> np.ndarray:
    """The label of every token: itself; stress marks count as what follows, length marks as what precedes."""
    labels = np.array(ids, np.uint8)
    for k in range(len(labels) - 2, -1, -1):
        if labels[k] in STRESS:
            labels[k] = labels[k + 1]
    for k in range(1, len(labels)):
        if labels[k] == LENGTH:
            labels[k] = labels[k - 1]
    return labels


def frame_labels(labels: np.ndarray, edges: np.ndarray, begin: float, samples: int) -> np.ndarray:
    """Labels at the centres of the 20 ms frames of audio that starts at `begin`; `edges`: token borders."""
    frames = -(-samples // LABEL_FRAME)
    centres = begin + LABEL_FRAME * (np.arange(frames) + 0.5)
    token = np.searchsorted(edges, centres, side="right") - 1
    inside = (token >= 0) & (token < len(labels))
    return np.where(inside, labels[np.clip(token, 0, len(labels) - 1)], NO_LABEL).astype(np.uint8)


def word_starts(edges: np.ndarray, tokens: Sequence[int], begin: int, onset: int, samples: int) -> np.ndarray:
    """Word starts relative to the cut audio; the first word starts no later than the sound does."""
    starts = np.rint(edges[np.asarray(tokens)] - begin).astype(np.int64)
    starts[0] = min(int(starts[0]), onset - begin)
    clipped: np.ndarray = np.maximum.accumulate(np.clip(starts, 0, max(0, samples - 1))).astype(np.int32)
    return clipped


def loudness(x: np.ndarray, target: float = 0.1, peak: float = 0.95) -> np.ndarray:
    """Scale to a common level without clipping."""
    rms = max(1e-3, float(np.sqrt(np.square(x).mean())))
    return x * min(peak / max(1e-6, float(np.abs(x).max())), target / rms)


def pack_ids(sentences: Sequence[Phonemes]) -> list[int]:
    """Tokens of a pass: pad, sentences with a space between them, pad."""
    ids = [0]
    for k, sentence in enumerate(sentences):
        ids += ([16] if k else []) + sentence.ids
    return [*ids, 0]


def split(
    audio: np.ndarray,
    durations: np.ndarray,
    sentences: Sequence[Phonemes],
    numbers: Sequence[int],
    factor: float,
) -> list[Utterance]:
    """Cut a pass (already resampled by `factor`) into its sentences; unusable ones are left out."""
    edges = (np.concatenate([[0], np.cumsum(durations)]) * FRAME - LAG) / factor
    first, spans = 1, []
    for sentence in sentences:
        spans.append((first, first + len(sentence.ids)))
        first += len(sentence.ids) + 1
    cuts = [0]
    for (_, stop), (start, _), sentence in zip(spans, spans[1:], sentences, strict=False):
        spoken_end = stop
        while sentence.ids[spoken_end - stop - 1] <= LAST_MARK and spoken_end > 1:
            spoken_end -= 1
        low, high = int(edges[spoken_end]), int(edges[start])
        cuts.append(quietest(audio, min(low, high - 2 * HOP), high + HOP))
    cuts.append(len(audio))
    out = []
    for k, (sentence, (start, stop)) in enumerate(zip(sentences, spans, strict=True)):
        own_edges = edges[start : stop + 1]
        utterance = trim(audio, cuts[k], cuts[k + 1], sentence, own_edges, numbers[k])
        if utterance is not None:
            out.append(utterance)
    return out


def trim(
    audio: np.ndarray, low: int, high: int, sentence: Phonemes, edges: np.ndarray, number: int
) -> Utterance | None:
    """One utterance out of `audio[low:high]`: little silence around it, faded ends, common loudness."""
    span = speech_span(audio[low:high])
    if span is None:
        return None
    onset, offset = span[0] + low, span[1] + low
    begin, end = max(low, onset - LEAD), min(high, offset + TAIL)
    cut = audio[begin:end].astype(np.float32)
    if not SHORTEST * SAMPLE_RATE < len(cut) < LONGEST * SAMPLE_RATE or not np.isfinite(cut).all():
        return None
    fade = min(240, len(cut) // 4)
    cut[:fade] *= np.linspace(0, 1, fade, dtype=np.float32)
    cut[-fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
    cut = np.pad(cut, (0, max(0, offset + TAIL_LEAST - end)))
    samples = len(cut)
    return Utterance(
        number,
        (loudness(cut) * 32767).astype(np.int16),
        word_starts(edges[:-1], sentence.starts, begin, onset, samples),
        frame_labels(token_labels(sentence.ids), edges, begin, samples),
    )
