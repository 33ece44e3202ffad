"""The voices there are."""

from typing import Annotated

from fastapi import APIRouter, Depends

from web.lifespan import Runtime, runtime_of
from web.schemas import Voice, VoiceList

router = APIRouter(prefix="/v1", tags=["voices"])


@router.get("/voices")
async def voices(runtime: Annotated[Runtime, Depends(runtime_of)]) -> VoiceList:
    """Every voice that a session or a request can name."""
    info = runtime.engine.info
    default = runtime.settings.voice or info.default_voice
    return VoiceList(
        voices=[
            Voice(
                voice_id=voice.name,
                name=voice.name,
                description=voice.description,
                language=voice.language,
                default=voice.name == default,
                prefix_tokens=voice.prefix_tokens,
                provenance=voice.provenance,
            )
            for voice in info.voices.values()
        ]
    )
