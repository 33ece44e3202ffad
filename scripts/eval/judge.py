"""Turns what the model said into figures: decode, transcribe, listen, compare with the teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.models.ember.codec import EmberCodec
from scripts.eval import scoring
from scripts.eval.asr import Recogniser
from scripts.eval.audio import Wave, listen
from scripts.eval.forms import Speech
from scripts.eval.progress import track
from scripts.eval.quality import Dnsmos, SpeakerSimilarity, long_enough
from scripts.eval.results import Results
from scripts.eval.sentences import Sentence
from scripts.eval.teacher import Teacher
from scripts.eval.timing import word_time_errors, words_missing
from scripts.eval.voices import Voice

_MOS_SENTENCES = 48


@dataclass(frozen=True, slots=True)
class Case:
    """A test sentence and the voice that says it."""

    sentence: Sentence
    voice: Voice


def decode(codec: EmberCodec, cases: Sequence[Case], speeches: Sequence[Speech]) -> list[Wave]:
    """The waves of what was said, each in its voice."""
    waves = []
    for case, speech in zip(cases, track(speeches, "decoding"), strict=True):
        codes = torch.tensor([speech.codes], dtype=torch.long)
        wave = codec.decode(codes, case.voice.vector)[0].numpy() if speech.codes else np.zeros(0, np.float32)
        waves.append(wave)
    return waves


class Judge:
    """All measures, loaded once."""

    def __init__(self, voices: Sequence[Voice], recogniser: Recogniser, teacher: Teacher | None) -> None:
        self._recogniser = recogniser
        self._teacher = teacher
        self._dnsmos = Dnsmos()
        self._similarity = SpeakerSimilarity({voice.name: voice.wave for voice in voices})

    def intelligibility(
        self, cases: Sequence[Case], waves: Sequence[Wave], label: str
    ) -> list[scoring.SentenceScore]:
        """Word and character errors of every wave."""
        texts = self._recogniser.transcribe(waves, label)
        return [scoring.score(case.sentence.spoken, text) for case, text in zip(cases, texts, strict=True)]

    def teacher_scores(self, cases: Sequence[Case]) -> list[scoring.SentenceScore] | None:
        """The same of the teacher's audio, if there is audio for every sentence."""
        if self._teacher is None:
            return None
        found = [self._teacher.find(c.sentence.spoken, c.voice.speaker) for c in cases]
        waves = [utterance.wave for utterance in found if utterance]
        if len(waves) < len(cases):
            return None
        return self.intelligibility(cases, waves, "teacher")

    def dnsmos(self, waves: Sequence[Wave]) -> scoring.Estimate:
        """Mean DNSMOS of up to 48 or so of the waves."""
        return scoring.mean(self._dnsmos.all(waves[:: max(1, len(waves) // _MOS_SENTENCES)]))

    def put_speech(
        self,
        results: Results,
        name: str,
        cases: Sequence[Case],
        speeches: Sequence[Speech],
        waves: Sequence[Wave],
    ) -> list[scoring.SentenceScore]:
        """Measures one list in one form and files all figures under `name`."""
        names = [case.sentence.name for case in cases]
        scores = self.intelligibility(cases, waves, name)
        results.put_scores(name, names, scores)
        missing = [words_missing(s.tokens, c.sentence.spoken) for s, c in zip(speeches, cases, strict=True)]
        heard = [listen(wave) for wave in waves]
        results.put(f"{name}.wrong_word_count", scoring.mean([m != 0 for m in missing]))
        results.put(f"{name}.unfinished", scoring.mean([not s.finished for s in speeches]))
        results.put(f"{name}.faulty_audio", scoring.mean([bool(h.faults) for h in heard]))
        results.put(f"{name}.starved_blocks", scoring.mean([s.starved for s in speeches]))
        results.put(f"{name}.dnsmos", self.dnsmos(waves))
        self._put_similarity(results, name, cases, waves)
        self._put_word_times(results, name, cases, speeches, waves)
        results.add_to_rows(name, "voice", [case.voice.name for case in cases])
        results.add_to_rows(name, "words_missing", missing)
        results.add_to_rows(name, "finished", [s.finished for s in speeches])
        results.add_to_rows(name, "seconds", [h.seconds for h in heard])
        results.add_to_rows(name, "faults", [h.faults for h in heard])
        return scores

    def _put_similarity(
        self, results: Results, name: str, cases: Sequence[Case], waves: Sequence[Wave]
    ) -> None:
        pairs = [
            self._similarity.compare(wave, case.voice.name)
            for case, wave in zip(cases, waves, strict=True)
            if long_enough(wave)
        ]
        own, others = [a for a, _ in pairs], [b for _, b in pairs]
        results.put(f"{name}.similarity_own", scoring.mean(own))
        results.put(f"{name}.similarity_others", scoring.mean(others))
        results.put(f"{name}.similarity_margin", scoring.mean([a - b for a, b in pairs]))

    def _put_word_times(
        self,
        results: Results,
        name: str,
        cases: Sequence[Case],
        speeches: Sequence[Speech],
        waves: Sequence[Wave],
    ) -> None:
        if self._teacher is None:
            return
        errors: list[float] = []
        for case, speech, wave in zip(cases, speeches, waves, strict=True):
            truth = self._teacher.find(case.sentence.spoken, case.voice.speaker)
            if truth:
                errors += word_time_errors(speech.tokens, wave, truth.wave, truth.word_starts)
        if errors:
            results.put(f"{name}.word_time_ms", scoring.median(errors))
            results.put(f"{name}.word_time_p90_ms", float(np.percentile(errors, 90)))
