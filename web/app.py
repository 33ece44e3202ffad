"""The application: settings and an engine in, routes out."""

from fastapi import FastAPI

from engine.contract import SpeechEngine
from web import faults
from web.faults import BodyLimit
from web.guard import KeyGuard
from web.lifespan import Runtime, lifespan
from web.origin import OriginGuard
from web.routes import demo, health, metrics, models, rtc, speech, stream, voices
from web.settings import Settings, is_loopback

VERSION = "0.1.0"


def create_app(settings: Settings, engine: SpeechEngine) -> FastAPI:
    """An application that speaks with ``engine``, which it starts and stops itself."""
    app = FastAPI(
        title="voxwire",
        version=VERSION,
        summary="Text in while it is being written, speech out.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.runtime = Runtime(settings, engine)
    for module in (speech, voices, models, health, metrics, stream, rtc, demo):
        app.include_router(module.router)
    app.mount("/static", demo.DemoFiles())
    faults.install(app)
    app.add_middleware(BodyLimit, limit=settings.body_bytes, within_s=settings.edge.body_s)
    app.add_middleware(KeyGuard, access=app.state.runtime.access, tls=bool(settings.trusted_proxies))
    app.add_middleware(OriginGuard, allowed=settings.origins, only_loopback=is_loopback(settings.host))
    return app
