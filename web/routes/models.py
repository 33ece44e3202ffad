"""The running model, in OpenAI's shape."""

from typing import Annotated

from fastapi import APIRouter, Depends

from engine.contract import ModelInfo
from realtime.errors import NotFound
from web.faults import documented
from web.lifespan import Runtime, runtime_of
from web.schemas import Model, ModelList

router = APIRouter(prefix="/v1", tags=["models"])


@router.get("/models")
async def models(runtime: Annotated[Runtime, Depends(runtime_of)]) -> ModelList:
    """The running model."""
    return ModelList(data=[_model(runtime.engine.info)])


@router.get("/models/{model}", responses=documented(404, 422))
async def model(model: str, runtime: Annotated[Runtime, Depends(runtime_of)]) -> Model:
    """The running model, if it has this name."""
    info = runtime.engine.info
    check_model(model, info)
    return _model(info)


def check_model(name: str | None, info: ModelInfo) -> None:
    """Raise `NotFound` unless ``name`` is the running model's or not given."""
    if name is not None and name != info.name:
        raise NotFound(f"unknown model {name[:64]!r}; this server speaks with {info.name!r}", "model")


def _model(info: ModelInfo) -> Model:
    return Model(
        id=info.name,
        created=0,
        owned_by="voxwire",
        sample_rate=info.sample_rate,
        streams_text=info.streams_text,
        default_voice=info.default_voice,
        max_utterance_words=info.max_utterance_words,
        speed_min=info.speed_range[0],
        speed_max=info.speed_range[1],
    )
