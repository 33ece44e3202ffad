"""Limits are positive and all of them are told."""

from dataclasses import fields

import pytest

from realtime.limits import Limits, Tuning


@pytest.mark.parametrize("name", [item.name for item in fields(Limits)])
@pytest.mark.parametrize("value", [0, -1])
def test_limits_are_positive(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=name):
        Limits(**{name: value})


def test_tuning_is_positive() -> None:
    with pytest.raises(ValueError, match="lead_ms"):
        Tuning(lead_ms=0)


def test_all_are_told() -> None:
    assert list(Limits().told()) == [item.name for item in fields(Limits)]
