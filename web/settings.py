"""Settings of the server: file, environment and flags, each stronger than the one before. Frozen and strict.

The file is TOML (``--config`` or ``VOXWIRE_CONFIG``), a variable is ``VOXWIRE_`` and the field's name
(``VOXWIRE_LIMITS__SESSIONS`` for a field of a table), a flag is ``--limits.sessions``. A name that no setting
has is an error wherever it stands. This is the only module that reads the environment.
"""

import hashlib
import ipaddress
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from realtime.audio.formats import Encoding
from realtime.limits import Limits
from realtime.options import OnBudgetMiss
from realtime.transports.rtc_options import RtcOptions
from web.edge import EdgeLimits
from web.logs import LogFormat

PREFIX = "VOXWIRE_"
_DELIMITER = "__"
_NOT_OURS = frozenset({"CONFIG", "WHISPER"})
"""Variables with our prefix that are no settings: the file itself, and what the tools read."""

Positive = Annotated[int, Field(gt=0)]


class SettingsError(Exception):
    """The settings are wrong; the message says which ones, why and where to look."""


class Settings(BaseSettings):
    """What can be configured. Unset fields have the defaults shown here."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter=_DELIMITER,
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        validate_default=True,
    )

    host: str = Field("127.0.0.1", description="address to listen at; anything but loopback needs keys")
    port: int = Field(8080, ge=0, le=65535, description="TCP port; 0 takes a free one")
    keys_file: Path | None = Field(None, description="API keys that are asked for; `voxwire key` makes one")
    insecure: bool = Field(False, description="serve a public address without keys")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="addresses or networks whose X-Forwarded headers are believed"
    )
    model: str = Field("ember", description="folder under engine/models")
    voice: str | None = Field(None, description="voice of sessions that name none; default: the model's")
    encoding: Encoding = Field("opus", description="encoding of sessions that name none")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where the model runs")
    dtype: Literal["bfloat16", "float32", "float16"] = Field("bfloat16", description="of the speech model")
    threads: int = Field(1, ge=1, le=256, description="CPU threads of the speech model")
    streams: Positive = Field(64, description="utterances spoken at once")
    ttfp_budget_ms: float | None = Field(None, gt=0, description="budget of sessions that name none")
    on_budget_miss: OnBudgetMiss = Field("continue", description="what a missed budget does by default")
    origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="other origins whose pages may use it"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="of the server's log")
    log_format: LogFormat = Field("auto", description="text, json, or auto: text on a terminal")
    log_text: bool = Field(False, description="log what is to be spoken; off, no text is ever logged")
    drain_s: float = Field(10.0, ge=0, description="seconds that running utterances get at shutdown")
    body_bytes: Positive = Field(1 << 20, description="largest body of an HTTP request")
    encoder_threads: Positive = Field(2, description="threads that encode audio")
    backlog: Positive = Field(2048, description="connections waiting to be accepted")
    limits: Limits = Field(Limits(), description="limits of sessions")
    rtc: RtcOptions = Field(RtcOptions(), description="WebRTC")
    edge: EdgeLimits = Field(EdgeLimits(), description="limits of connections")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, file; the strongest first."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @field_validator("origins", "trusted_proxies", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """Flags and variables give a list as one string, with commas."""
        return [item.strip() for item in value.split(",")] if isinstance(value, str) else value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        networks(value)
        return value

    @model_validator(mode="after")
    def _public_needs_keys(self) -> Self:
        if not (self.keys_file or self.insecure or is_loopback(self.host)):
            raise ValueError(
                f"host {self.host} can be reached by others and there is no key to keep them out: "
                "give --keys-file, listen on 127.0.0.1, or say --insecure if something in front of it does"
            )
        return self

    def canonical(self) -> str:
        """All values as JSON with sorted keys."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True)

    def changed(self) -> dict[str, object]:
        """The values that are not the defaults, by path."""
        pairs = [(item, attrgetter(item.path)(self)) for item in describe()]
        return {item.path: value for item, value in pairs if value != item.default}

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits that are equal for equal settings."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Setting:
    """One settable value, for a command line: ``path`` such as ``limits.sessions``."""

    path: str
    default: object
    help: str

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return isinstance(self.default, bool)


def describe() -> list[Setting]:
    """Every setting there is, those of tables one by one."""
    found = []
    for name, info in Settings.model_fields.items():
        if is_dataclass(info.default):
            values = fields(info.default)
            found += [
                Setting(f"{name}.{f.name}", getattr(info.default, f.name), f"{info.description}")
                for f in values
            ]
        else:
            found.append(Setting(name, info.default, info.description or ""))
    return found


def load(flags: Mapping[str, object] | None = None, file: str | Path | None = None) -> Settings:
    """Read the settings. ``flags`` are by path (``{"limits.sessions": 8}``) and win over all.

    Raises `SettingsError`.
    """
    _reject_unknown_variables()
    path = Path(file or os.environ.get(PREFIX + "CONFIG") or "")
    chosen = path if path.name else None
    if chosen is not None:
        _check_readable(chosen)

    class Loaded(Settings):
        model_config = SettingsConfigDict(toml_file=chosen)

    try:
        return Loaded(**_nested(flags or {}))
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(item) for item in error.errors())) from error


def networks(addresses: Sequence[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The networks that ``addresses`` name. Raises `ValueError`."""
    return [ipaddress.ip_network(address) for address in addresses]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener at ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reject_unknown_variables() -> None:
    known = {setting.path.replace(".", _DELIMITER).upper() for setting in describe()}
    known |= {name.upper() for name in Settings.model_fields} | _NOT_OURS
    given = {name.removeprefix(PREFIX) for name in os.environ if name.startswith(PREFIX)}
    if unknown := sorted(given - known):
        names = ", ".join(PREFIX + name for name in unknown)
        raise SettingsError(f"{names}: no such setting; `voxwire serve --help` lists them")


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb") as file:
            tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: {error}") from error


def _nested(flags: Mapping[str, object]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for path, value in flags.items():
        table, _, name = path.rpartition(".")
        (values.setdefault(table, {}) if table else values)[name] = value
    return values


def _explain(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"])
    known = item["type"] not in ("extra_forbidden", "unexpected_keyword_argument")
    message = str(item["msg"]).removeprefix("Value error, ") if known else "no such setting"
    return f"{where}: {message}" if where else message
