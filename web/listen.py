"""The sockets to listen at, taken before anything that takes long: a port that is taken is told at once."""

import errno
import socket


class CannotListen(Exception):
    """Nobody can be served at the address; the message says why, and what to do where we know."""


def listen(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening TCP sockets, one for each address that ``host`` names; port 0 takes a free one.

    Raises `CannotListen`.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"host {host}: {error.strerror}") from error
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        try:
            sockets.append(_bound(family, kind, protocol, (address[0], port, *address[2:]), backlog))
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                absent = error  # a name may have an IPv6 address here and the machine none
                continue
            for opened in sockets:
                opened.close()
            raise _complaint(host, port, error) from error
        port = port or int(sockets[0].getsockname()[1])
    if not sockets:
        assert absent is not None, "a name that is found has addresses"
        raise _complaint(host, port, absent) from absent
    return sockets


def _bound(family: int, kind: int, protocol: int, address: tuple[object, ...], backlog: int) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(backlog)  # two that are only bound could both believe that they have the port
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _complaint(host: str, port: int, error: OSError) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(f"port {port} is taken; --port N takes another")
    return CannotListen(f"cannot listen at {host}, port {port}: {error.strerror}")
