"""Errors of the Python client.

- ClientError
  - ConnectFailed: no server there, or it does not speak this protocol
  - ServerError: the server said what is wrong
  - ProtocolViolation: the server broke the protocol
  - StreamTruncated: the audio ended without its sentinel
"""


class ClientError(Exception):
    """Base of everything the client raises."""


class ConnectFailed(ClientError):
    """No connection could be made."""


class ServerError(ClientError):
    """An `error` message of the server, as it stands in the protocol's table of codes."""

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, utterance: str | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable
        self.utterance = utterance


class ProtocolViolation(ClientError):
    """The stream breaks the protocol: a gap, a wrong time, length or checksum, an unknown message."""


class StreamTruncated(ClientError):
    """The stream is over and no sentinel came: what was heard is not all there was to say."""

    def __init__(self, message: str, *, close_code: int | None = None) -> None:
        super().__init__(message)
        self.close_code = close_code
