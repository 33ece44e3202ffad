import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidStatus

from engine.errors import EngineDead
from engine.fake import FakeEngine, FakeTiming, Fault
from realtime.client import connect
from realtime.errors import NotFound
from tests.support.running import Running, running, until
from web.app import create_app
from web.settings import load

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Running]:
    async with running(FakeEngine()) as server:
        yield server


async def get(server: Running, path: str) -> httpx.Response:
    async with server.client() as client:
        return await client.get(path)


async def test_health(server: Running) -> None:
    assert (await get(server, "/healthz")).json() == {"status": "ok"}
    ready = await get(server, "/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


async def test_it_answers_while_the_model_loads() -> None:
    async with running(FakeEngine(timing=FakeTiming(start_s=0.3)), ready=False) as server:
        assert (await get(server, "/healthz")).status_code == 200
        ready = await get(server, "/readyz")
        assert (ready.status_code, ready.json()) == (503, {"status": "starting"})
        assert (await get(server, "/v1/voices")).status_code == 200
        assert not server.announced
        async with server.client() as client:
            refused = await client.post("/v1/audio/speech", json={"input": "Hello."})
        assert refused.status_code == 503
        await until(lambda: server.announced)
        assert f":{server.server.port}/v1/stream" in server.announced[0]
        assert (await get(server, "/readyz")).status_code == 200


async def test_an_engine_that_cannot_start_ends_the_server(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(FakeEngine):
        async def start(self) -> None:
            raise EngineDead("no weights")

    async with running(Broken()) as server:
        await until(lambda: server.server.should_exit)
        assert server.runtime.status == "failed"
        assert not server.announced
    assert "no weights" in caplog.text


async def test_readiness_follows_the_engine() -> None:
    engine = FakeEngine()
    async with running(engine) as server:
        engine.die()
        assert (await get(server, "/readyz")).json() == {"status": "restarting"}
        engine.revive()
        assert (await get(server, "/readyz")).status_code == 200


async def test_voices(server: Running) -> None:
    voices = (await get(server, "/v1/voices")).json()["voices"]
    assert [(voice["voice_id"], voice["default"]) for voice in voices] == [("ada", True), ("bob", False)]


async def test_models(server: Running) -> None:
    listed = (await get(server, "/v1/models")).json()
    assert listed["object"] == "list"
    assert [(model["id"], model["object"]) for model in listed["data"]] == [("fake", "model")]
    assert (await get(server, "/v1/models/fake")).json() == listed["data"][0]
    missing = await get(server, "/v1/models/other")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/v1/audio/speech", 405)])
async def test_errors_of_the_router_have_the_same_shape(server: Running, path: str, status: int) -> None:
    response = await get(server, path)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code", "retryable"}


async def test_openapi_tells_the_errors(server: Running) -> None:
    document = (await get(server, "/openapi.json")).json()
    assert set(document["paths"]) == {
        "/v1/audio/speech",
        "/v1/voices",
        "/v1/models",
        "/v1/models/{model}",
        "/v1/rtc",
        "/v1/rtc/{session}",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    speech = document["paths"]["/v1/audio/speech"]["post"]["responses"]
    assert set(speech) == {"200", "400", "401", "404", "408", "413", "422", "429", "500", "503"}
    assert "HTTPValidationError" not in str(document)
    assert "audio/mpeg" in speech["200"]["content"]
    assert (await get(server, "/docs")).status_code == 200


@pytest.mark.parametrize("path", ["/", "/static/style.css"])
async def test_the_page_may_load_nothing_from_elsewhere(server: Running, path: str) -> None:
    response = await get(server, path)
    assert response.status_code == 200
    assert response.headers["content-security-policy"].startswith("default-src 'self'")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert (await get(server, "/static/../settings.py")).status_code == 404
    assert (await get(server, "/static/%2e%2e/settings.py")).status_code == 404


async def test_metrics_count_both_transports() -> None:
    engine = FakeEngine()
    async with running(engine) as server:
        async with server.client() as client:
            await client.post("/v1/audio/speech", json={"input": "Hello there."})
            engine.next_faults.append(Fault(error=EngineDead("gone")))
            await client.post("/v1/audio/speech", json={"input": "Hello there."})
        async with connect(server.ws_url) as session:
            utterance = session.utterance()
            await utterance.send("Hello there.")
            await utterance.end()
            await utterance.read()
        await until(lambda: not server.runtime.hub.live)
        text = (await get(server, "/metrics")).text
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["voxwire_utterances_total", ("outcome", "complete")] == 2
    assert samples["voxwire_utterances_total", ("outcome", "failed")] == 1
    assert samples["voxwire_errors_total", ("code", "engine_failure")] == 1
    assert samples["voxwire_ttfp_seconds_count",] == 2
    assert samples["voxwire_ttfp_seconds_bucket", ("le", "0.005")] >= 0
    for part in ("segment", "queue", "prefill", "decode", "vocode", "encode", "send"):
        assert samples["voxwire_ttfp_part_seconds_count", ("part", part)] == 2
    assert samples["voxwire_sessions",] == 0
    assert samples["voxwire_sessions_opened_total",] == 3
    assert samples["voxwire_engine_state", ("state", "ready")] == 1
    assert samples["voxwire_tokens_total", ("kind", "codec")] > 0
    assert "python_info" in text


async def test_a_page_of_another_origin_cannot_open_a_socket() -> None:
    async with running(FakeEngine(), {"origins": ("https://good.example",)}) as server:
        own = f"http://127.0.0.1:{server.server.port}"
        for origin in (None, own, "https://good.example"):
            headers = {"origin": origin} if origin else {}
            async with open_socket(server.ws_url, additional_headers=headers, proxy=None):
                pass
        for origin in ("https://evil.example", "null", f"http://127.0.0.1:{server.server.port + 1}"):
            with pytest.raises(InvalidStatus, match="403"):
                await open_socket(server.ws_url, additional_headers={"origin": origin}, proxy=None)


async def test_stopping_lets_a_response_finish() -> None:
    engine = FakeEngine(timing=FakeTiming(frame_s=0.005))
    async with running(engine) as server, server.client() as client:
        request = client.build_request("POST", "/v1/audio/speech", json={"input": "Hello there."})
        response = await client.send(request, stream=True)
        server.server.handle_exit(15, None)
        await until(lambda: server.runtime.hub.draining)
        late = await client.get("/readyz")
        assert (late.status_code, late.json()) == (503, {"status": "draining"})
        refused = await client.post("/v1/audio/speech", json={"input": "Hello."})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
        assert len(await response.aread()) > 1000


async def test_a_second_signal_does_not_wait() -> None:
    engine = FakeEngine()
    engine.next_faults.append(Fault(after_frames=5, stall=True))
    async with running(engine, {"drain_s": 60}) as server, server.client() as client:
        request = client.build_request("POST", "/v1/audio/speech", json={"input": "Hello there."})
        response = await client.send(request, stream=True)
        server.server.handle_exit(15, None)
        await asyncio.sleep(0.05)
        server.server.handle_exit(15, None)
        with pytest.raises(httpx.RemoteProtocolError):
            await response.aread()
        await response.aclose()


async def test_defaults_that_no_session_could_use_are_found_at_once() -> None:
    with pytest.raises(NotFound, match="ada, bob"):
        create_app(load({"voice": "eve"}), FakeEngine())
