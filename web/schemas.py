"""Bodies of HTTP requests and responses. What is not listed is refused by name."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

AudioName = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]


class Strict(BaseModel):
    """No unknown fields, no coercion of one type into another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class VoiceRef(Strict):
    """A voice by id."""

    id: str


class SpeechBody(Strict):
    """OpenAI's request for speech; ``seed`` and ``language`` are additions."""

    input: Annotated[str, Field(min_length=1, description="The text to speak.")]
    model: Annotated[str | None, Field(description="The running model's name, if given.")] = None
    voice: Annotated[str | VoiceRef | None, Field(description="A name of `GET /v1/voices`.")] = None
    response_format: Annotated[AudioName, Field(description="pcm is 16-bit little endian, mono, 24 kHz.")] = (
        "mp3"
    )
    speed: Annotated[
        float | None, Field(ge=0.25, le=4.0, allow_inf_nan=False, description="As far as the model can.")
    ] = None
    stream_format: Annotated[Literal["audio", "sse"], Field(description="Audio, or events with base64.")] = (
        "audio"
    )
    instructions: Annotated[
        str | None, Field(description="Refused unless empty: no model here follows any.")
    ] = None
    language: Annotated[str | None, Field(max_length=35, description="BCP 47 tag.")] = None
    seed: Annotated[int | None, Field(ge=0, lt=2**63, description="Same seed, same speech.")] = None


class ErrorDetail(BaseModel):
    """What went wrong. ``param`` is the field at fault."""

    message: str
    type: Literal["invalid_request_error", "server_error"]
    param: str | None
    code: str
    retryable: bool


class ErrorBody(BaseModel):
    """Every answer that is not a success."""

    error: ErrorDetail


class Voice(BaseModel):
    """A voice that can be spoken with."""

    voice_id: str
    name: str
    description: str
    language: str
    default: bool
    prefix_tokens: int
    provenance: str


class VoiceList(BaseModel):
    """`GET /v1/voices`."""

    voices: list[Voice]


class Model(BaseModel):
    """A model in OpenAI's shape, and what it can do."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    sample_rate: int
    streams_text: bool
    default_voice: str
    max_utterance_words: int
    speed_min: float
    speed_max: float


class ModelList(BaseModel):
    """`GET /v1/models`."""

    object: Literal["list"] = "list"
    data: list[Model]


class Health(BaseModel):
    """`GET /healthz` and `GET /readyz`."""

    status: Literal["ok", "ready", "starting", "restarting", "stopped", "draining", "failed"]
