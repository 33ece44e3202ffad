"""Synthesis jobs: phonemised sentences, packed into passes of several sentences by one speaker, as one npz.

    python -m scripts.train.jobs --sentences train_sentences.tsv.xz --heldout heldout.jsonl \
        --everyday scripts/eval/everyday.txt --vocab vocab.json --styles voices.npz --out out/

writes `jobs.npz` with `sentences.tsv.xz`, and `ref.npz` with `ref_sentences.tsv.xz` (the evaluation lists and
voice prompts, spoken by the fixed voices).

Arrays: tok, tl (tokens and tokens a sentence), first (packed bits, 1 at the first token of a word), tid
(sentence ids), pn (sentences a pack), ps, pw, pf, pv (speaker id, style weights, playback factor and speed of
a pack), styles.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scripts.train import text
from scripts.train.phonemes import Phonemes, phonemes
from scripts.train.speakers import FIRST_RANDOM, FIXED, STYLES, Speaker, random_speaker

TOKENS_A_PASS = 470
SENTENCE_TOKENS = (2, 300)
FIXED_SHARE = 0.35
FEWEST = 4  # sentences of a random speaker's pass, so that three remain if one is refused later
PROMPTS = (
    "the quiet lake lay under a silver sky, and nobody spoke for a while.",
    "we packed a small lunch, took the early ferry, and walked along the shore.",
    "every morning she opens the old bakery before the sun comes up.",
    "he tuned the guitar slowly, then played a song that everyone knew.",
)


@dataclass
class Item:
    id: int
    spoken: Phonemes


@dataclass
class Pack:
    speaker: Speaker
    items: list[Item] = field(default_factory=list)
    speed: float = 1.0

    @property
    def tokens(self) -> int:
        return sum(len(i.spoken.ids) + 1 for i in self.items)


def order(sentences: Sequence[text.Sentence], rng: random.Random) -> list[int]:
    """A random order in which conversational sentences come early, in case time runs out."""
    lead = {k: 0.55 if s.kind in text.CONVERSATIONAL else 1.0 for k, s in enumerate(sentences)}
    return sorted(lead, key=lambda k: rng.random() * lead[k])


def speakers(rng: random.Random) -> Iterator[Speaker]:
    """An endless line of speakers, one a pack: the fixed voices in turn or a new random one."""
    number, turn = FIRST_RANDOM, rng.randrange(len(FIXED))
    while True:
        if rng.random() < FIXED_SHARE:
            turn = (turn + 1) % len(FIXED)
            yield FIXED[turn]
        else:
            yield random_speaker(number, rng)
            number += 1


def pack(items: Sequence[Item], rng: random.Random, limit: int = TOKENS_A_PASS) -> list[Pack]:
    """Consecutive sentences fill passes of at most `limit` tokens; sizes vary, the order is kept."""
    line = speakers(rng)
    packs: list[Pack] = []
    current: Pack | None = None
    room = 0
    for item in items:
        size = len(item.spoken.ids) + 1
        if (
            current is None
            or (current.tokens + size > room and len(current.items) >= FEWEST)
            or (current.tokens + size > limit)
        ):
            current = Pack(next(line), speed=round(rng.uniform(0.92, 1.12), 3))
            packs.append(current)
            room = rng.choice((limit, limit, limit, 320))
        current.items.append(item)
    return [p for p in packs if len(p.items) >= 3 or p.speaker.id < FIRST_RANDOM]


def save(path: Path, packs: Sequence[Pack], styles: np.ndarray) -> None:
    items = [i for p in packs for i in p.items]
    first = np.zeros(sum(len(i.spoken.ids) for i in items), bool)
    offset = 0
    for item in items:
        first[np.array(item.spoken.starts) + offset] = True
        offset += len(item.spoken.ids)
    np.savez_compressed(
        path,
        tok=np.concatenate([np.array(i.spoken.ids, np.uint8) for i in items]),
        tl=np.array([len(i.spoken.ids) for i in items], np.uint16),
        first=np.packbits(first),
        tid=np.array([i.id for i in items], np.uint32),
        pn=np.array([len(p.items) for p in packs], np.uint16),
        ps=np.array([p.speaker.id for p in packs], np.uint32),
        pw=np.array([p.speaker.weights for p in packs], np.float32),
        pf=np.array([p.speaker.factor for p in packs], np.float32),
        pv=np.array([p.speed for p in packs], np.float32),
        styles=styles,
    )


def load(path: Path) -> tuple[list[Pack], np.ndarray]:
    """Read what `save` wrote: the packs, in order, and the styles."""
    z = dict(np.load(path))  # an npz unpacks an array at every access
    tokens, first = z["tok"], np.unpackbits(z["first"])[: len(z["tok"])]
    ends = np.cumsum(z["tl"].astype(np.int64))
    packs: list[Pack] = []
    s = 0
    for k in range(len(z["ps"])):
        speaker = Speaker(int(z["ps"][k]), tuple(map(float, z["pw"][k])), float(z["pf"][k]))
        p = Pack(speaker, speed=float(z["pv"][k]))
        for _ in range(int(z["pn"][k])):
            b = int(ends[s])
            a = b - int(z["tl"][s])
            starts = np.flatnonzero(first[a:b]).tolist()
            p.items.append(Item(int(z["tid"][s]), Phonemes(tokens[a:b].tolist(), starts)))
            s += 1
        packs.append(p)
    return packs, z["styles"]


def write_sentences(path: Path, rows: Sequence[tuple[int, str, str]]) -> None:
    body = "".join(f"{number}\t{kind}\t{line}\n" for number, kind, line in rows)
    path.write_bytes(lzma.compress(body.encode(), preset=9 | lzma.PRESET_EXTREME))


def reference(
    lists: dict[str, list[str]], vocabulary: dict[str, int]
) -> tuple[list[Pack], list[tuple[int, str, str]]]:
    """Evaluation sentences by the fixed voices in turn, and the prompts by every fixed voice."""
    rows: list[tuple[int, str, str]] = []
    queues: list[list[Item]] = [[] for _ in FIXED]
    for kind, lines in lists.items():
        for line in lines:
            rows.append((len(rows), kind, line))
            spoken = phonemes(line, vocabulary)
            if spoken is None:
                print("not aligned:", line)
                continue
            item = Item(len(rows) - 1, spoken)
            for queue in queues if kind == "prompt" else [queues[item.id % len(FIXED)]]:
                queue.append(item)
    packs: list[Pack] = []
    for speaker, queue in zip(FIXED, queues, strict=True):
        packs.append(Pack(speaker))
        for item in queue:
            if packs[-1].tokens + len(item.spoken.ids) + 1 > TOKENS_A_PASS:
                packs.append(Pack(speaker))
            packs[-1].items.append(item)
    return packs, rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("sentences", "heldout", "everyday", "vocab", "styles", "out"):
        parser.add_argument("--" + name, type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=int, default=0, help="use only so many sentences (0: all)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    vocabulary: dict[str, int] = json.loads(args.vocab.read_text(encoding="utf8"))["vocab"]
    voices = np.load(args.styles)
    styles = np.stack([voices[name].reshape(-1, 256)[:480] for name in STYLES]).astype(np.float16)
    lists = {
        "heldout": text.heldout(args.heldout),
        "everyday": text.everyday(args.everyday),
        "prompt": list(PROMPTS),
    }

    ref_packs, ref_rows = reference(lists, vocabulary)
    save(args.out / "ref.npz", ref_packs, styles)
    write_sentences(args.out / "ref_sentences.tsv.xz", ref_rows)

    sentences = text.collect(args.sentences, [line for lines in lists.values() for line in lines])
    rng = random.Random(args.seed)
    items: list[Item] = []
    rows: list[tuple[int, str, str]] = []
    refused = 0
    for k in order(sentences, rng)[: args.limit or None]:
        spoken = phonemes(sentences[k].text, vocabulary)
        if spoken is None or not SENTENCE_TOKENS[0] <= len(spoken.ids) <= SENTENCE_TOKENS[1]:
            refused += 1
            continue
        items.append(Item(len(rows), spoken))
        rows.append((len(rows), sentences[k].kind, sentences[k].text))
    packs = pack(items, rng)
    save(args.out / "jobs.npz", packs, styles)
    write_sentences(args.out / "sentences.tsv.xz", rows)
    fixed = sum(len(p.items) for p in packs if p.speaker.id < FIRST_RANDOM)
    used = sum(len(p.items) for p in packs)
    print(f"{used} sentences in {len(packs)} packs, {fixed / used:.0%} by fixed voices, {refused} refused")


if __name__ == "__main__":
    main()
