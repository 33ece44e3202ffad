from pathlib import Path

import pytest
from pydantic import ValidationError

from realtime.limits import Limits
from web.settings import Settings, SettingsError, describe, load


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("VOXWIRE_"):
            monkeypatch.delenv(name)


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "voxwire.toml"
    path.write_text(text)
    return path


def test_defaults_are_safe() -> None:
    settings = load()
    assert (settings.host, settings.port, settings.model, settings.insecure) == (
        "127.0.0.1",
        8080,
        "ember",
        False,
    )
    assert settings.limits == Limits()


def test_flags_win_over_environment_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(
        tmp_path, "port = 1\nthreads = 1\nmodel = 'of-file'\n[limits]\nsessions = 1\nidle_s = 1\nvoices = 1\n"
    )
    monkeypatch.setenv("VOXWIRE_PORT", "2")
    monkeypatch.setenv("VOXWIRE_THREADS", "2")
    monkeypatch.setenv("VOXWIRE_LIMITS__SESSIONS", "2")
    monkeypatch.setenv("VOXWIRE_LIMITS__IDLE_S", "2")
    settings = load({"port": "3", "limits.sessions": "3"}, path)
    assert (settings.port, settings.threads, settings.model) == (3, 2, "of-file")
    assert settings.limits == Limits(sessions=3, idle_s=2, voices=1)


def test_the_file_can_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXWIRE_CONFIG", str(file(tmp_path, "port = 99")))
    assert load().port == 99


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ports = 1", "ports: no such setting"),
        ("[limits]\nsesions = 1", "limits.sesions: no such setting"),
        ("port = 'x'", "port: Input should be a valid integer"),
        ("port = 65536", "port: Input should be less than or equal to 65535"),
        ("[limits]\nsessions = 0", "sessions is 0; it must be positive"),
        ("port =", "Invalid value"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(file=file(tmp_path, text))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load(file=tmp_path / "absent.toml")


def test_an_unknown_variable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXWIRE_PROT", "1")
    with pytest.raises(SettingsError, match="VOXWIRE_PROT: no such setting"):
        load()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_public_address_needs_consent(host: str) -> None:
    with pytest.raises(SettingsError, match="--insecure"):
        load({"host": host})
    assert load({"host": host, "insecure": True}).host == host
    assert load({"host": host, "keys_file": "keys.toml"}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert load({"host": host}).host == host


def test_settings_are_frozen_and_have_a_fingerprint() -> None:
    settings = load()
    with pytest.raises(ValidationError):
        settings.port = 1  # type: ignore[misc]
    assert settings.fingerprint == load().fingerprint
    assert settings.fingerprint != load({"limits.sessions": 5}).fingerprint
    assert len(settings.fingerprint) == 12


def test_every_setting_is_described() -> None:
    described = {setting.path for setting in describe()}
    assert {"port", "limits.sessions", "limits.upload_bytes"} <= described
    assert all(setting.help for setting in describe())
    assert "limits" not in described
    assert set(Settings.model_fields) - {path.partition(".")[0] for path in described} == set()


def test_a_list_is_one_string_with_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ("https://a.example", "https://b.example")
    assert load({"origins": "https://a.example, https://b.example"}).origins == expected
    assert load(file=file(tmp_path, f"origins = {list(expected)}")).origins == expected
    monkeypatch.setenv("VOXWIRE_ORIGINS", ",".join(expected))
    assert load().origins == expected


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"trusted_proxies": "10.0.0.0/8, proxy.example"}, "trusted_proxies"),
        ({"trusted_proxies": "10.0.0.1/8"}, "host bits"),
        ({"edge.head_s": 0}, "head_s"),
        ({"edge.heads": 1}, "heads"),
    ],
)
def test_wrong_edge_settings(flags: dict[str, object], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        load(flags)


def test_proxies_are_listed_with_commas() -> None:
    assert load({"trusted_proxies": "10.0.0.0/8, ::1"}).trusted_proxies == ("10.0.0.0/8", "::1")


def test_what_was_changed_is_told_by_path() -> None:
    assert load({}).changed() == {}
    changed = load({"port": "9", "limits.sessions": 8, "voice": "bob", "streams": 64}).changed()
    assert changed == {"port": 9, "limits.sessions": 8, "voice": "bob"}
