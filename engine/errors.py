"""Errors of the speech engine.

- EngineError
  - RequestRejected: the request is wrong; nothing was spent on it
    - VoiceNotFound
  - Overloaded: no room now; ``retry_after_s`` says when to ask again
  - GenerationFailed: this one request broke; others go on
    - Runaway: the model went on past the bound given by the text
    - InvalidTokens: the model gave an id outside its layout
    - VocoderFailed: codec frames could not be turned into finite samples
  - EngineDead: the engine process is gone; every request in flight gets this
  - ModelUnusable: a model's folder is missing, incomplete or contradicts itself; nothing can start with it
"""


class EngineError(Exception):
    """Base of all engine errors. ``retryable`` tells whether the same request may work later."""

    retryable = False


class RequestRejected(EngineError):
    """The request is wrong. ``field`` names what, the message says what is allowed."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class VoiceNotFound(RequestRejected):
    """No voice of that name. The message lists the voices there are."""

    def __init__(self, voice: str, known: tuple[str, ...]) -> None:
        super().__init__("voice", f"unknown voice {voice!r}; known voices: {', '.join(known)}")
        self.voice = voice


class Overloaded(EngineError):
    """No room for another request now."""

    retryable = True

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class GenerationFailed(EngineError):
    """One request failed while it was running."""

    retryable = True


class Runaway(GenerationFailed):
    """Generation passed ``bound`` audio tokens, more than ``words`` words can need."""

    def __init__(self, bound: int, words: int) -> None:
        super().__init__(f"generation passed {bound} audio tokens for {words} words without an end")
        self.bound = bound
        self.words = words


class InvalidTokens(GenerationFailed):
    """The model produced an id that its layout does not allow."""

    def __init__(self, token: int) -> None:
        super().__init__(f"token id {token} is neither a code, a word boundary nor an end")
        self.token = token


class VocoderFailed(GenerationFailed):
    """The vocoder raised, or its samples were not finite."""


class EngineDead(EngineError):
    """The engine is gone. New requests work again once it has restarted."""

    retryable = True


class ModelUnusable(EngineError):
    """A model cannot be loaded. The message names the file and what is wrong with it."""
