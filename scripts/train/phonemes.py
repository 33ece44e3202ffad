"""Spoken text -> the teacher's phoneme tokens, with the token at which every word starts.

espeak writes some pairs of function words as one group ("in the" -> ɪnðə) and some hyphenated words as two.
Words must map to phonemes one to one, so the groups are aligned with the words by edit distance to each
word's isolated form; joined groups are cut and split ones kept together.  A sentence that does not align
is refused.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from scripts.train.spoken import words

if TYPE_CHECKING:
    from piper.phonemize_espeak import EspeakPhonemizer

SPELLED = re.compile(r"\b[a-z](?:,? [a-z]\b(?!'))+")
STRESS = "ˈˌ"
PUNCTUATION = frozenset(".,?!;:")
VOWELS = frozenset("aeiouæɑɐəɚɛɜɪɔʊʌᵻɨ")
TAPS = frozenset("tdɾ")
WEAK = {"a": "ɐ", "the": "ðə", "to": "tə"}
RESPELLINGS = [
    ("aɪə", "Iə"), ("aɪ", "I"), ("aʊ", "W"), ("dʒ", "ʤ"), ("eɪ", "A"), ("tʃ", "ʧ"), ("ɔɪ", "Y"),
    ("oʊ", "O"), ("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("ʔn\u0329", "tᵊn"), ("n\u0329", "ᵊn"),
    ("l\u0329", "ᵊl"), ("ʔ", "t"), ("ɾ", "T"), ("ɚ", "əɹ"), ("r", "ɹ"), ("x", "k"), ("ç", "k"),
    ("ɐ", "ə"), ("ɬ", "l"), ("\u0303", ""), ("ʲ", ""), ("ː", ""), ("e", "A"), ("o", "ɔ"),
    ("əɹɹ", "əɹ"), ("ɜɹɹ", "ɜɹ"),
]  # fmt: skip


@dataclass(frozen=True)
class Phonemes:
    """The tokens of one sentence and the index of the first token of each of its words."""

    ids: list[int]
    starts: list[int]


@lru_cache(maxsize=1)
def _espeak() -> EspeakPhonemizer:
    from piper.phonemize_espeak import EspeakPhonemizer

    return EspeakPhonemizer()


def espeak(text: str) -> str:
    """espeak's phonemes of a text; runs of single letters are spoken as letter names."""
    speakable = SPELLED.sub(lambda m: m[0].upper(), text)
    sentences = ("".join(s) for s in _espeak().phonemize("en-us", speakable))
    return unicodedata.normalize("NFD", " ".join(sentences))


@lru_cache(maxsize=200_000)
def isolated(word: str) -> str:
    """The bare phonemes of a word said alone."""
    if word in WEAK:
        return WEAK[word]
    name = word.upper() if len(word) == 1 else word
    return bare("".join(espeak(name).split()))


def bare(group: str) -> str:
    return "".join(c for c in group if c not in STRESS and c not in "ːʲ-" and c not in PUNCTUATION)


@lru_cache(maxsize=500_000)
def distance(a: str, b: str) -> float:
    """Edit distance in which one vowel for another costs little."""
    row = [float(j) for j in range(len(b) + 1)]
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], float(i)
        for j, y in enumerate(b, 1):
            alike = (x in VOWELS and y in VOWELS) or (x in TAPS and y in TAPS)
            swap = 0.0 if x == y else 0.3 if alike else 1.0
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + swap)
    return row[-1]


@lru_cache(maxsize=200_000)
def best_cut(group: str, forms: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
    """Cut a joined group into as many parts as there are isolated forms, as alike to them as possible."""
    if len(forms) == 1:
        return distance(bare(group), forms[0]), (group,)
    best: tuple[float, tuple[str, ...]] = (float("inf"), ())
    for k in range(1, len(group)):
        if group[k - 1] in STRESS or unicodedata.combining(group[k]) or group[k] in "ːʲ":
            continue
        rest, parts = best_cut(group[k:], forms[1:])
        cost = distance(bare(group[:k]), forms[0]) + rest
        if parts and bare(group[:k]) and cost < best[0]:
            best = (cost, (group[:k], *parts))
    return best


def align(spoken_words: list[str], groups: list[str]) -> list[str] | None:
    """One string of phonemes for every word (it may hold a space); None where no alignment is convincing."""
    if len(groups) == len(spoken_words) and not any("-" in w for w in spoken_words):
        return groups
    forms = [isolated(re.sub(r"[.,?!;:]+$", "", w)) for w in spoken_words]
    n, m = len(forms), len(groups)
    best: dict[tuple[int, int], tuple[float, list[str]]] = {(0, 0): (0.0, [])}
    for i in range(n):
        for j in range(max(0, i - 8), min(m, i + 9)):
            if (i, j) not in best:
                continue
            cost, done = best[i, j]
            steps: list[tuple[int, int, float, tuple[str, ...]]] = []
            for count in (1, 2, 3):
                if i + count <= n and (count < 3 or m < n):
                    price, parts = best_cut(groups[j], tuple(forms[i : i + count]))
                    steps.append((count, 1, price + 0.2 * (count - 1), parts))
            if "-" in spoken_words[i] and j + 1 < m:
                for count in range(2, min(6, m - j + 1)):
                    joined = "".join(groups[j : j + count])
                    price = distance(bare(joined), forms[i])
                    steps.append((1, count, price, (" ".join(groups[j : j + count]),)))
            for used, taken, price, parts in steps:
                key, total = (i + used, j + taken), cost + price
                if parts and (key not in best or total < best[key][0]):
                    best[key] = (total, [*done, *parts])
    if (n, m) not in best:
        return None
    cost, result = best[n, m]
    return result if cost <= 2.0 + 0.12 * sum(map(len, forms)) else None


def phonemes(text: str, vocabulary: dict[str, int]) -> Phonemes | None:
    """Tokens and word starts of a spoken form, or None if its words and phonemes do not map one to one."""
    expected = words(text)
    groups: list[str] = []
    marks: list[str] = []  # the punctuation after each group
    for item in espeak(text).split():
        core = item.rstrip(".,?!;:")
        if core:
            groups.append(core)
            marks.append("")
        if groups:
            marks[-1] += item[len(core) :]
    after: dict[int, str] = {}
    aligned = align(expected, groups)
    if aligned is None or len(aligned) != len(expected):
        return None
    done = "".join("".join(groups).split())
    if "".join("".join(aligned).split()) != done:
        return None
    # put the punctuation back behind the word in which its group ended
    position, word, length = 0, 0, len("".join(aligned[0].split())) if aligned else 0
    for group, mark in zip(groups, marks, strict=True):
        position += len(group)
        while position > length and word + 1 < len(aligned):
            word += 1
            length += len("".join(aligned[word].split()))
        if mark:
            after[word] = mark
    return encode([respell(a) + after.get(k, "") for k, a in enumerate(aligned)], vocabulary)


def respell(group: str) -> str:
    for old, new in RESPELLINGS:
        group = group.replace(old, new)
    return group


def encode(items: list[str], vocabulary: dict[str, int]) -> Phonemes | None:
    """Token ids of the words' phonemes with a space between words; None if a word would have no phonemes."""
    ids: list[int] = []
    starts: list[int] = []
    for item in items:
        tokens = [vocabulary[c] for c in item if c in vocabulary]
        if not any(vocabulary.get(c, 0) > 16 for c in item):
            return None
        if ids:
            ids.append(vocabulary[" "])
        starts.append(len(ids))
        ids += tokens
    return Phonemes(ids, starts)
