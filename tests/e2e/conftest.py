"""The real server with the embedded model, once for all tests, and an ear that transcribes what it said."""

from collections.abc import Iterator

import pytest

from scripts.bench.served import Served, served
from scripts.eval.asr import Recogniser

# float32: bfloat16 results depend on what else is in the batch, and these tests compare runs.
ARGUMENTS = ("--dtype", "float32", "--log-level", "warning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/e2e/" in str(item.path):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def server() -> Iterator[Served]:
    with served(ARGUMENTS) as running:
        yield running


@pytest.fixture(scope="session")
def recogniser() -> Recogniser:
    return Recogniser(threads=2)
