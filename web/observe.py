"""Metrics: figures of sessions and utterances for Prometheus, beside those that vLLM keeps of itself."""

from collections import Counter as Sum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from engine.contract import SpeechEngine
from realtime.errors import ErrorCode, Fault
from realtime.reports import UtteranceReport
from web.gate import ConnectionGate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_MS = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 150, 200, 250, 300, 400, 500, 750, 1000, 1500, 2000)
_PART_S = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.003, *(ms / 1000 for ms in _MS))
_TTFP_S = tuple(ms / 1000 for ms in _MS)
_GAP_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LAG_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_LENGTH_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 300.0)
_STATES = ("starting", "ready", "restarting", "stopped")


class Metrics:
    """An `Observer` that counts. It has a registry of its own, so that several servers fit in a process."""

    def __init__(self, engine: SpeechEngine) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_EngineCollector(engine))
        self._sessions = Gauge("voxwire_sessions", "Live sessions.", registry=self.registry)
        self._opened = Counter("voxwire_sessions_opened", "Sessions admitted.", registry=self.registry)
        self._closed = Counter(
            "voxwire_sessions_closed", "Sessions over, by error code.", ["code"], registry=self.registry
        )
        self._lasted = Histogram(
            "voxwire_session_seconds", "Length of sessions.", buckets=_LENGTH_S, registry=self.registry
        )
        self._utterances = Counter(
            "voxwire_utterances", "Utterances over, by outcome.", ["outcome"], registry=self.registry
        )
        self._errors = Counter(
            "voxwire_errors", "Utterances failed, by error code.", ["code"], registry=self.registry
        )
        self._ttfp = Histogram(
            "voxwire_ttfp_seconds",
            "From the text that made speech possible to the hand-over of the first packet.",
            buckets=_TTFP_S,
            registry=self.registry,
        )
        self._parts = Histogram(
            "voxwire_ttfp_part_seconds",
            "Where the time to the first packet went.",
            ["part"],
            buckets=_PART_S,
            registry=self.registry,
        )
        self._missed = Counter(
            "voxwire_ttfp_budget_missed", "Utterances over their TTFP budget.", registry=self.registry
        )
        self._gaps = Histogram(
            "voxwire_gap_seconds",
            "Silence a listener heard inside an utterance because audio came late.",
            buckets=_GAP_S,
            registry=self.registry,
        )
        self._audio = Counter("voxwire_audio_seconds", "Audio made.", registry=self.registry)
        self._wasted = Counter("voxwire_wasted_audio_seconds", "Audio never heard.", registry=self.registry)
        self._tokens = Counter("voxwire_tokens", "Tokens, by kind.", ["kind"], registry=self.registry)
        self._words = Counter(
            "voxwire_words", "Words asked for, and words spoken.", ["kind"], registry=self.registry
        )
        self._remade = Counter("voxwire_segments_remade", "Segments made again.", registry=self.registry)
        self._pacing = Histogram(
            "voxwire_rtp_late_seconds",
            "How much later RTP packets left than they could have.",
            buckets=_LAG_S,
            registry=self.registry,
        )
        self._rtp_gaps = Counter(
            "voxwire_rtp_gaps", "Times RTP fell silent inside an utterance.", registry=self.registry
        )
        self._rtp_stalls = Counter(
            "voxwire_rtp_stalls", "Times RTP packets were held up in the server.", registry=self.registry
        )
        self._warnings = Counter("voxwire_warnings", "Warnings sent.", ["code"], registry=self.registry)
        self._lag = Histogram(
            "voxwire_loop_lag_seconds",
            "How late the event loop came to a timer.",
            buckets=_LAG_S,
            registry=self.registry,
        )
        self._stalls = Counter(
            "voxwire_loop_stalls", "Times the event loop was blocked for long.", registry=self.registry
        )

    def session_opened(self, session: str) -> None:
        """See `Observer`."""
        self._sessions.inc()
        self._opened.inc()

    def session_closed(self, session: str, fault: Fault | None, seconds: float) -> None:
        """See `Observer`."""
        self._sessions.dec()
        self._closed.labels(str(fault.code) if fault else "none").inc()
        self._lasted.observe(seconds)

    def utterance_over(self, session: str, report: UtteranceReport) -> None:
        """See `Observer`."""
        self._utterances.labels(report.outcome).inc()
        if report.error is not None:
            self._errors.labels(str(report.error)).inc()
        if report.ttfp_ms is not None:
            self._ttfp.observe(report.ttfp_ms / 1000)
        if report.ttfp_parts is not None:
            for part, milliseconds in asdict(report.ttfp_parts).items():
                self._parts.labels(part).observe(milliseconds / 1000)
        if report.budget_met is False:
            self._missed.inc()
        if report.sent_ms:
            self._gaps.observe(report.gap_ms / 1000)
        self._audio.inc(report.audio_ms / 1000)
        self._wasted.inc(report.wasted_ms / 1000)
        self._words.labels("asked").inc(report.words)
        self._words.labels("spoken").inc(report.words_spoken)
        self._remade.inc(report.remade)
        for kind, count in asdict(report.usage).items():
            self._tokens.labels(kind.removesuffix("_tokens")).inc(count)

    def warned(self, session: str, code: str) -> None:
        """See `Observer`."""
        self._warnings.labels(code).inc()

    def paced(self, late_s: float) -> None:
        """See `PacingObserver`."""
        self._pacing.observe(late_s)

    def media_over(self, gaps: int, stalls: int) -> None:
        """See `PacingObserver`."""
        self._rtp_gaps.inc(gaps)
        self._rtp_stalls.inc(stalls)

    def watch_edge(self, gate: ConnectionGate, refused: Sequence[Mapping[ErrorCode, int]]) -> None:
        """Export the connections of ``gate``, and what was ``refused``, added up by code."""
        self.registry.register(_EdgeCollector(gate, refused))

    def loop_late(self, seconds: float) -> None:
        """The event loop came to a timer so late."""
        self._lag.observe(seconds)

    def loop_stalled(self) -> None:
        """The event loop was blocked."""
        self._stalls.inc()

    def export(self) -> bytes:
        """Everything in Prometheus' text format, with the process's own and vLLM's figures."""
        return generate_latest(self.registry) + generate_latest(REGISTRY)


class _EngineCollector(Collector):
    """Asks the engine when it is scraped."""

    def __init__(self, engine: SpeechEngine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        health = self._engine.health()
        state = GaugeMetricFamily(
            "voxwire_engine_state", "1 for the state the engine is in.", labels=["state"]
        )
        for name in _STATES:
            state.add_metric([name], float(name == health.state))
        yield state
        yield GaugeMetricFamily("voxwire_engine_running", "Utterances being spoken.", value=health.running)
        yield GaugeMetricFamily("voxwire_engine_waiting", "Utterances that wait.", value=health.waiting)
        yield CounterMetricFamily("voxwire_engine_restarts", "Engine restarts.", value=health.restarts)


class _EdgeCollector(Collector):
    """Asks the edge when it is scraped."""

    def __init__(self, gate: ConnectionGate, refused: Sequence[Mapping[ErrorCode, int]]) -> None:
        self._gate = gate
        self._refused = refused

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        yield GaugeMetricFamily("voxwire_connections", "Open connections.", value=self._gate.open)
        total: Sum[str] = Sum()
        for counts in self._refused:
            total.update({str(code): count for code, count in dict(counts).items()})
        family = CounterMetricFamily(
            "voxwire_refused", "Connections, requests and sessions refused, by error code.", labels=["code"]
        )
        for code, count in sorted(total.items()):
            family.add_metric([code], count)
        yield family
