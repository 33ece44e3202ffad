"""An observer that keeps what it was told."""

from dataclasses import dataclass, field

from realtime.errors import Fault
from realtime.reports import UtteranceReport


@dataclass
class RecordingObserver:
    """See `realtime.registry.Observer`."""

    opened: list[str] = field(default_factory=list)
    closed: dict[str, Fault | None] = field(default_factory=dict)
    reports: list[UtteranceReport] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def session_opened(self, session: str) -> None:
        self.opened.append(session)

    def session_closed(self, session: str, fault: Fault | None, seconds: float) -> None:
        assert session not in self.closed
        assert seconds >= 0
        self.closed[session] = fault

    def utterance_over(self, session: str, report: UtteranceReport) -> None:
        self.reports.append(report)

    def warned(self, session: str, code: str) -> None:
        self.warnings.append(code)
