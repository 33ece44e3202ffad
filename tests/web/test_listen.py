"""Where the server listens, with real sockets."""

import socket

import pytest

from web import engines
from web.cli import EXIT_CANNOT_LISTEN, main
from web.listen import CannotListen, listen


def test_a_port_that_is_taken_is_told_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engines, "make_engine", lambda _: pytest.fail("the engine was built"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == EXIT_CANNOT_LISTEN
    assert capsys.readouterr().err == f"voxwire serve: port {port} is taken; --port N takes another\n"


def test_the_port_is_ours_at_once() -> None:
    (mine,) = listen("127.0.0.1", 0, 8)
    with mine:
        port = mine.getsockname()[1]
        with pytest.raises(CannotListen, match=f"port {port} is taken"):
            listen("127.0.0.1", port, 8)
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_a_name_has_one_port_for_all_its_addresses() -> None:
    sockets = listen("localhost", 0, 8)
    assert len({item.getsockname()[1] for item in sockets}) == 1
    for item in sockets:
        item.close()


def test_an_address_of_another_machine() -> None:
    with pytest.raises(CannotListen, match=r"cannot listen at 192\.0\.2\.1, port 0: "):
        listen("192.0.2.1", 0, 8)
