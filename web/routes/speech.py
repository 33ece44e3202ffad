"""`POST /v1/audio/speech`: OpenAI's request, streamed from the first frame on."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from engine.contract import Sampling
from realtime.errors import InvalidRequest, TooLarge
from realtime.metering import Caller
from realtime.oneshot import SpeechJob
from realtime.options import SessionOptions, resolve
from realtime.transports.http_stream import SpeechResponse
from web.faults import Responses, documented
from web.lifespan import Runtime, caller_of, runtime_of
from web.routes.models import check_model
from web.schemas import SpeechBody, VoiceRef

router = APIRouter(prefix="/v1", tags=["speech"])

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TYPES = ("audio/mpeg", "audio/opus", "audio/aac", "audio/flac", "audio/wav", "audio/pcm")
_SPOKEN: Responses = {
    200: {
        "description": "Chunked audio, or events with base64 audio. Without its last chunk it is incomplete.",
        "content": {**dict.fromkeys(_TYPES, _BINARY), "text/event-stream": {"schema": {}}},
    }
}


@router.post(
    "/audio/speech",
    response_class=Response,
    responses={**_SPOKEN, **documented(400, 401, 404, 408, 413, 422, 429, 500, 503)},
)
async def speech(
    body: SpeechBody,
    runtime: Annotated[Runtime, Depends(runtime_of)],
    caller: Annotated[Caller | None, Depends(caller_of)],
) -> Response:
    """Speak ``input``. A failure after the first audio cuts the chunked body: its last chunk is missing."""
    info, hub = runtime.engine.info, runtime.hub
    check_model(body.model, info)
    if body.instructions:
        raise InvalidRequest(f"model {info.name!r} follows no instructions; leave it out", "instructions")
    if not body.input.strip():
        raise InvalidRequest("it is blank; there is nothing to speak", "input")
    if len(body.input) > hub.limits.utterance_chars:
        raise TooLarge("input", len(body.input), hub.limits.utterance_chars)
    options = SessionOptions(
        voice=body.voice.id if isinstance(body.voice, VoiceRef) else body.voice,
        sampling=Sampling(seed=body.seed),
        language=body.language,
        speed=body.speed,
    )
    job = SpeechJob(body.input, body.response_format, resolve(options, info, hub.defaults))
    response = SpeechResponse(job, hub, events=body.stream_format == "sse")
    if caller is not None:
        caller.take_text(response.id, None, body.input)
    return response
