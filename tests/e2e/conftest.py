"""The real server with the embedded model, once for all tests, and an ear that transcribes what it said."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.bench.served import Served, served
from scripts.eval.asr import Recogniser
from tests.support.float_model import float_model


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/e2e/" in str(item.path):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def server() -> Iterator[Served]:
    """As a user starts it."""
    with served(["--log-level", "warning"]) as running:
        yield running


@pytest.fixture(scope="session")
def exact_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model in float32: for tests that compare runs."""
    return float_model(tmp_path_factory.mktemp("exact") / "ember")


@pytest.fixture(scope="session")
def exact_server(exact_model: Path) -> Iterator[Served]:
    """A server that speaks with `exact_model`."""
    with served(["--model", str(exact_model), "--dtype", "float32", "--log-level", "warning"]) as running:
        yield running


@pytest.fixture(scope="session")
def recogniser() -> Recogniser:
    return Recogniser(threads=2)
