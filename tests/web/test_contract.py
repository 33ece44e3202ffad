"""The API does what its OpenAPI document says, whatever is sent: statuses, schemas, headers, no failures."""

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from tests.web.test_process import Process, started

schemathesis = pytest.importorskip("schemathesis")

pytestmark = pytest.mark.asyncio(loop_scope="module")
EXAMPLES = 20
"""For each operation and mode; what they are follows from its schema."""

schemathesis.serializer.alias("application/trickle-ice-sdpfrag", "text/plain")
schemathesis.serializer.alias("application/sdp", "text/plain")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Process]:
    async with started(log_level="warning") as server:
        yield server


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
async def test_the_openapi_document_is_kept(server: Process, mode: object) -> None:
    url = f"http://127.0.0.1:{server.port}"
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    # A language that is not spoken, a blank text: valid by the schema, and still refused.
    refusing = [schemathesis.specs.openapi.checks.positive_data_acceptance]
    bounds = settings(
        max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None, derandomize=True
    )

    tried: set[str] = set()

    def keeps_it(case: object) -> None:
        tried.add(case.operation.label)  # type: ignore[attr-defined]
        case.call_and_validate(base_url=url, timeout=10, excluded_checks=refusing)  # type: ignore[attr-defined]

    for found in schema.get_all_operations():
        cases = found.ok().as_strategy(generation_mode=mode)
        with suppress(Unsatisfiable):  # what takes nothing can be given nothing wrong
            bounds(given(case=cases)(keeps_it))()
    assert "POST /v1/audio/speech" in tried
