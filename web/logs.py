"""Logging: one line an event, its fields beside a fixed message; no spoken text unless --log-text."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

LogFormat = Literal["auto", "text", "json"]
OURS = ("engine", "realtime", "web")
_OTHERS = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
    "vllm_process_name",
}
"""What a record has of itself; everything else came with ``extra``."""


class JsonFormatter(logging.Formatter):
    """A JSON object a line: time (UTC), level, logger, event, its fields, and the exception if any."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line = {
            "time": _time(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """The same for people: fields as ``name=value``, those that are not set left out."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        head = f"{_time(record).astimezone():%H:%M:%S} {record.levelname.lower():7} {record.getMessage()}"
        line = " ".join([head, *(f"{name}={value}" for name, value in _flat(_fields(record)))])
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def configure(level: str, style: LogFormat) -> bool:
    """Log to stderr: ours from ``level`` on, of libraries what went wrong. ``auto`` is text on a terminal.

    Returns whether it is text.
    """
    as_text = style == "text" or (style == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    return as_text


_DONE_ON_PURPOSE = frozenset(
    {
        "ASGI callable returned without completing response.",  # a body that was cut
        "ASGI callable returned without completing handshake.",  # one refused with an HTTP error
    }
)


def _is_news(record: logging.LogRecord) -> bool:
    """Some of what we do on purpose is an error to uvicorn; the reason is logged where it is done."""
    return record.msg not in _DONE_ON_PURPOSE


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _OTHERS}


def _flat(fields: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        elif isinstance(value, float):
            yield name, f"{value:.1f}"
        elif value is not None:
            yield name, value
