"""What torch and vllm print at every start that concerns nobody here: just these lines, no others."""

import logging
import os
import warnings

_WARNING = "`torch.distributed.reduce_op` is deprecated"
_TRITON_LOGGER = "torch._library.triton"
_TRITON = "Triton not available"


def hush() -> None:
    """Silence them here and in the processes that are spawned from now on. May be called again."""
    warnings.filterwarnings("ignore", message=_WARNING, category=FutureWarning)
    logging.getLogger(_TRITON_LOGGER).addFilter(_is_news)  # a filter that is there is not added twice
    _add_to("PYTHONWARNINGS", f"ignore:{_WARNING}:FutureWarning")
    _add_to("TORCH_LOGS", f"-{_TRITON_LOGGER}")  # errors only; that line is the only warning there is


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_TRITON)


def _add_to(variable: str, item: str) -> None:
    given = [part for part in os.environ.get(variable, "").split(",") if part]
    if item not in given:
        os.environ[variable] = ",".join([*given, item])
