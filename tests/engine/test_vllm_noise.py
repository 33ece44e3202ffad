import logging
import subprocess
import sys
import warnings

import pytest

from engine import vllm_noise

_WARN = """
import warnings
warnings.warn("`torch.distributed.reduce_op` is deprecated, please use another", FutureWarning)
warnings.warn("this one matters", FutureWarning)
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "ignore::BytesWarning")
    monkeypatch.setenv("TORCH_LOGS", "")


def test_only_what_is_known_is_silenced(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("torch._library.triton")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vllm_noise.hush()
        exec(_WARN, {})
    try:
        logger.propagate, before = True, logger.propagate
        with caplog.at_level(logging.WARNING, logger.name):
            logger.warning("Triton not available, find_triton_kernels = []")
            logger.warning("Triton is on fire")
    finally:
        logger.propagate = before
    assert [str(item.message) for item in told] == ["this one matters"]
    assert caplog.messages == ["Triton is on fire"]


def test_children_are_silenced_too_and_keep_what_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "filters", list(warnings.filters))
    vllm_noise.hush()
    vllm_noise.hush()
    child = subprocess.run([sys.executable, "-c", _WARN], capture_output=True, text=True, check=True)
    assert "reduce_op" not in child.stderr
    assert "this one matters" in child.stderr
    shown = subprocess.run(
        [sys.executable, "-c", "import os; print(os.environ['PYTHONWARNINGS'], os.environ['TORCH_LOGS'])"],
        capture_output=True,
        text=True,
        check=True,
    )
    first, _, rest = shown.stdout.partition(",")
    assert first == "ignore::BytesWarning"
    assert rest.count("reduce_op") == rest.count("-torch._library.triton") == 1
