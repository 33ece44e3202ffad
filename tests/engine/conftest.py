import pytest


def pytest_configure(config: pytest.Config) -> None:
    # vLLM leaves a ZeroMQ context to the garbage collector.
    unclosed = (
        "ignore:Exception ignored in. <function Context.__del__:pytest.PytestUnraisableExceptionWarning"
    )
    config.addinivalue_line("filterwarnings", unclosed)
