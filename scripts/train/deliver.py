"""Moves results off the training machine in small parts.

`publish` packs a file into parts of at most 15 MB, `take` copies parts that were not taken yet into an
outbox, `join` puts files together again at home. Half-precision weights shrink by about a quarter,
because their high bytes are compressed apart from the low ones.

    python -m scripts.train.deliver publish STORE NAME FILE
    python -m scripts.train.deliver take STORE OUTBOX --wait 300
    python -m scripts.train.deliver join FOLDER OUT
"""

from __future__ import annotations

import argparse
import shutil
import time
import zlib
from pathlib import Path

_PART_BYTES = 15_000_000
_PARTS_AT_ONCE = 8
_BYTES_AT_ONCE = 62_000_000


def pack(data: bytes) -> bytes:
    """Splits 16-bit numbers into byte planes and compresses each where that helps."""
    planes = [zlib.compress(data[side::2], 3) for side in (1, 0)]
    head = len(data).to_bytes(8, "little") + len(planes[0]).to_bytes(8, "little")
    return head + planes[0] + planes[1]


def unpack(blob: bytes) -> bytes:
    """Undoes `pack`."""
    size, high = int.from_bytes(blob[:8], "little"), int.from_bytes(blob[8:16], "little")
    data = bytearray(size)
    data[1::2] = zlib.decompress(blob[16 : 16 + high])
    data[0::2] = zlib.decompress(blob[16 + high :])
    return bytes(data)


def publish(store: Path, name: str, source: Path) -> None:
    """Adds one file to the store under `name`; parts appear complete."""
    store.mkdir(parents=True, exist_ok=True)
    blob = pack(source.read_bytes())
    count = -(-len(blob) // _PART_BYTES)
    for index in range(count):
        part = store / f"{name}.{index:02d}of{count:02d}"
        temporary = store / f".{part.name}"
        temporary.write_bytes(blob[index * _PART_BYTES : (index + 1) * _PART_BYTES])
        temporary.rename(part)


def take(store: Path, outbox: Path, wait_s: float) -> list[str]:
    """Copies untaken parts, oldest first, as many as one transfer holds."""
    end = time.monotonic() + wait_s
    taken = store / "taken"
    while True:
        done = set(taken.read_text().split()) if taken.exists() else set()
        parts = [p for p in store.glob("[!.]*of[0-9][0-9]") if p.name not in done]
        if parts or time.monotonic() >= end:
            break
        time.sleep(1)
    time.sleep(2 if parts else 0)
    names, total = [], 0
    for part in sorted(parts, key=lambda p: (p.stat().st_mtime_ns, p.name))[:_PARTS_AT_ONCE]:
        total += part.stat().st_size
        if total > _BYTES_AT_ONCE:
            break
        shutil.copy(part, outbox / part.name)
        names.append(part.name)
    with taken.open("a") as out:
        out.writelines(f"{name}\n" for name in names)
    return names


def join(folder: Path, out: Path) -> list[Path]:
    """Writes every file whose parts are all there."""
    made = []
    groups: dict[str, list[Path]] = {}
    for part in sorted(folder.glob("*of[0-9][0-9]")):
        groups.setdefault(part.name.rsplit(".", 1)[0], []).append(part)
    for name, parts in groups.items():
        if len(parts) == int(parts[0].name[-2:]):
            out.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(unpack(b"".join(p.read_bytes() for p in parts)))
            made.append(out / name)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    publishing = commands.add_parser("publish")
    publishing.add_argument("store", type=Path)
    publishing.add_argument("name")
    publishing.add_argument("file", type=Path)
    taking = commands.add_parser("take")
    taking.add_argument("store", type=Path)
    taking.add_argument("outbox", type=Path)
    taking.add_argument("--wait", type=float, default=0.0, help="seconds")
    joining = commands.add_parser("join")
    joining.add_argument("folder", type=Path)
    joining.add_argument("out", type=Path)
    args = parser.parse_args()
    if args.command == "publish":
        publish(args.store, args.name, args.file)
    elif args.command == "take":
        print("took", *take(args.store, args.outbox, args.wait), flush=True)
    else:
        print(*join(args.folder, args.out), sep="\n", flush=True)


if __name__ == "__main__":
    main()
