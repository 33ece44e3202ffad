"""The command line: `voxwire serve` and `voxwire say`.

`say` should not wait for what only the server needs: settings and all that follows are imported by `serve`.
"""

import argparse
import contextlib
import socket
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from web import say
from web.listen import CannotListen, listen

if TYPE_CHECKING:
    from web.settings import Setting, Settings

EXIT_USAGE = 2
EXIT_CANNOT_LISTEN = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``voxwire``. Returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser(for_serve=given[:1] == ["serve"]).parse_args(given)
    return int(options.run(options))


def serve(options: argparse.Namespace) -> int:
    """``voxwire serve``. Returns 0 after a shutdown that was asked for, 1 when the engine cannot start, 2 for
    wrong settings, and 3 when it cannot listen, such as at a port that is taken.
    """
    from web.settings import SettingsError, describe, load

    paths = {setting.path for setting in describe()}
    flags = {path: value for path, value in vars(options).items() if path in paths and value is not None}
    try:
        settings = load(flags, options.config)
    except SettingsError as error:
        print(f"voxwire serve: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        sockets = listen(settings.host, settings.port, settings.backlog)
    except CannotListen as error:
        print(f"voxwire serve: {error}", file=sys.stderr)
        return EXIT_CANNOT_LISTEN
    with contextlib.ExitStack() as stack:
        for listener in sockets:
            stack.enter_context(listener)
        return _serve(settings, sockets)


def _serve(settings: "Settings", sockets: Sequence[socket.socket]) -> int:
    from engine.errors import ModelUnusable
    from realtime.errors import RealtimeError
    from web.app import create_app
    from web.engines import make_engine
    from web.keys import KeysUnusable
    from web.server import serve as run

    try:
        engine = make_engine(settings)
        app = create_app(settings, engine)
    except (KeysUnusable, ModelUnusable, RealtimeError) as error:
        print(f"voxwire serve: {error}", file=sys.stderr)
        return EXIT_USAGE
    print(f"voxwire: loading model {engine.info.name} ...", file=sys.stderr, flush=True)
    code = run(app, partial(print, flush=True), sockets)
    if (failure := app.state.runtime.failure) is not None:
        print(f"voxwire serve: {_in_a_line(failure)}", file=sys.stderr, flush=True)
    return code


def _in_a_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def key(options: argparse.Namespace) -> int:
    """``voxwire key``: a new API key, shown once, and the lines for the keys file."""
    from web import keys

    secret = keys.new_key()
    try:
        table = keys.table_of(options.name, secret)
    except keys.KeysUnusable as error:
        print(f"voxwire key: {error}", file=sys.stderr)
        return EXIT_USAGE
    print(f"The key, which is kept nowhere: {secret}\n", file=sys.stderr)
    print(table)
    return 0


def _parser(*, for_serve: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="voxwire", description="Text in, speech out, while it is being written."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    server = commands.add_parser(
        "serve",
        help="start the server",
        epilog="Flags can also stand in the TOML file or the environment: VOXWIRE_NAME, VOXWIRE_TABLE__NAME. "
        "Exit codes: 0 stopped as asked, 1 the engine cannot start, 2 wrong settings, 3 cannot listen (as at "
        "a port that is taken).",
    )
    server.add_argument("--config", metavar="FILE", help="TOML file with settings")
    if for_serve:
        from web.settings import describe

        for setting in describe():
            _add(server, setting)
    server.set_defaults(run=serve)
    keymaker = commands.add_parser("key", help="make an API key")
    keymaker.add_argument("name", help="what logs call whoever has it")
    keymaker.set_defaults(run=key)
    speaker = commands.add_parser("say", help="speak a text through a running server")
    say.add_arguments(speaker)
    speaker.set_defaults(run=say.run)
    return parser


def _add(parser: argparse.ArgumentParser, setting: "Setting") -> None:
    flag = "--" + setting.path.replace("_", "-")
    text = f"{setting.help} (default: {setting.default})".replace("%", "%%")
    if setting.is_switch:
        parser.add_argument(
            flag, dest=setting.path, action=argparse.BooleanOptionalAction, default=None, help=text
        )
    else:
        parser.add_argument(flag, dest=setting.path, metavar="X", help=text)


if __name__ == "__main__":
    sys.exit(main())
