import pytest

from engine.fake import FakeEngine
from tests.support.running import running
from web.origin import origin_allowed


@pytest.mark.parametrize(
    ("origin", "host", "only_loopback", "allowed"),
    [
        (None, "127.0.0.1:8080", True, True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", True, True),
        ("http://localhost:8080", "localhost:8080", True, True),
        ("http://[::1]:8080", "[::1]:8080", True, True),
        ("https://good.example", "127.0.0.1:8080", True, True),
        ("https://good.example.evil.example", "127.0.0.1:8080", True, False),
        ("http://good.example", "127.0.0.1:8080", True, False),
        ("http://127.0.0.1:9090", "127.0.0.1:8080", True, False),
        ("null", "127.0.0.1:8080", True, False),
        ("", "", True, False),
        ("http://rebound.example:8080", "rebound.example:8080", True, False),
        ("https://voice.example", "voice.example", False, True),
        ("https://other.example", "voice.example", False, False),
    ],
)
def test_who_may(origin: str | None, host: str, only_loopback: bool, allowed: bool) -> None:
    told = origin_allowed(origin, host, ("https://good.example",), only_loopback=only_loopback)
    assert told is allowed


async def test_a_foreign_page_cannot_have_text_spoken() -> None:
    engine = FakeEngine()
    async with running(engine) as server, server.client() as client:
        for origin, status in (("https://evil.example", 403), (server.url, 200)):
            headers = {"origin": origin}
            spoken = await client.post("/v1/audio/speech", json={"input": "Hello."}, headers=headers)
            assert spoken.status_code == status
            assert (await client.get("/healthz", headers=headers)).status_code == 200
        assert "access-control-allow-origin" not in spoken.headers
    assert len(engine.requests) == 1
