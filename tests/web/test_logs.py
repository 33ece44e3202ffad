import json
import logging
import sys

import httpx
import pytest

from engine.fake import FakeEngine
from tests.support.running import running
from web.logs import JsonFormatter, TextFormatter

FIELDS = {"session": "s_1", "report": {"ttfp_ms": 12.345, "error": None}}


def record(**extra: object) -> logging.LogRecord:
    made = logging.getLogger("web").makeRecord(
        "web", logging.INFO, "f.py", 1, "utterance over", (), None, extra=extra
    )
    made.created = 0.5
    return made


def test_json_has_the_fields_beside_the_event() -> None:
    assert json.loads(JsonFormatter().format(record(**FIELDS))) == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "info",
        "logger": "web",
        "event": "utterance over",
        **FIELDS,
    }


def test_text_is_short() -> None:
    line = TextFormatter().format(record(**FIELDS))
    assert line.endswith(" info    utterance over session=s_1 ttfp_ms=12.3")


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_an_exception_is_told(formatter: logging.Formatter) -> None:
    made = record()
    try:
        raise ValueError("it broke")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert "ValueError: it broke" in formatter.format(made)


async def test_no_spoken_text_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running(FakeEngine()) as server, httpx.AsyncClient(base_url=server.url) as client:
        response = await client.post("/v1/audio/speech", json={"input": "Xylophone is a secret."})
        assert response.status_code == 200
        refused = await client.post("/v1/audio/speech", json={"input": "Xylophone.", "voice": "eve"})
        assert refused.status_code == 404
    shown = "\n".join(JsonFormatter().format(item) for item in caplog.records)
    assert "utterance over" in shown
    assert "ylophone" not in shown
