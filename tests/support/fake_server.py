"""The server with the scripted engine, in a process that a test can kill.

``python -m tests.support.fake_server PORT``
"""

import sys

from engine.fake import FakeEngine, FakeSpeech, FakeTiming
from web.app import create_app
from web.server import serve
from web.settings import load


def main() -> int:
    """Serve until told to stop. It speaks four times as fast as it is heard, 300 ms a word."""
    engine = FakeEngine(
        timing=FakeTiming(first_frame_s=0.02, frame_s=0.005), speech=FakeSpeech(frames_per_word=15)
    )
    settings = load({"port": int(sys.argv[1]), "drain_s": 1, "log_level": "warning"})
    return serve(create_app(settings, engine), print)


if __name__ == "__main__":
    sys.exit(main())
