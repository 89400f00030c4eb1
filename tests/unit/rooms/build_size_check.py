#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What keeps the build quick, as counts that depend on no clock: headers of ours that files include, and programs.

    build_size_check.py SOURCE BUILD [--print]

A file counts each header of ours that it includes, directly or through others. More than the limits below is a change that makes
every build slower: include less, declare ahead, or raise the limit in the same commit and say why. --print shows the figures by room.
"""

import argparse
import functools
import json
import pathlib
import re
import sys

# The most headers of ours that the average file of a room includes, and the most that one of these headers includes.
HEADERS_PER_FILE = {
    "core": 5, "config": 6, "kernels": 26, "model": 45, "optim": 40, "comm": 9, "io": 8, "data": 25, "exchange": 12,
    "train": 63, "session": 56, "run": 111, "api": 96, "reference": 27, "view": 55, "tools": 60, "driver": 87,
}
HEADERS_OF_HEADER = {"session/hook.h": 4, "train/trainer.h": 8, "api/estimator.h": 25, "data/dataset.h": 28, "model/graph.h": 48}
MOST_PROGRAMS = 48  # of the target `all`

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Tree:
    def __init__(self, source: pathlib.Path):
        self.source = source

    @functools.lru_cache(maxsize=None)
    def direct(self, header: str) -> tuple:
        text = (self.source / header).read_text(encoding="utf-8", errors="replace")
        return tuple(name for name in INCLUDE.findall(text) if (self.source / name).is_file())

    def all_of(self, file: str) -> set:
        found, waiting = set(), list(self.direct(file))
        while waiting:
            header = waiting.pop()
            if header not in found:
                found.add(header)
                waiting.extend(self.direct(header))
        return found


def programs_of(build: pathlib.Path) -> list:
    """The executables that a plain build makes, as the generator wrote them down."""
    ninja = (build / "build.ninja").read_text(encoding="utf-8")
    links = {match[2]: match[1] for match in re.finditer(r"^build (\S+): CXX_EXECUTABLE_LINKER__(\S+?)_(?:Release|Debug|RelWithDebInfo)?\b", ninja, re.MULTILINE)}
    everything = re.search(r"^build all: phony (.*)$", ninja, re.MULTILINE)
    folders = dict(re.findall(r"^build (\S+/all): phony ?(.*)$", ninja, re.MULTILINE))
    made, waiting = set(), everything[1].split()
    while waiting:
        name = waiting.pop()
        if name in folders:
            waiting.extend(folders.pop(name).split())
        made.add(name)
    return sorted(name for name, path in links.items() if name in made or path in made or path.split("/")[-1] in made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--print", action="store_true", dest="show")
    arguments = parser.parse_args()
    tree = Tree(arguments.source)
    mistakes = []
    for room, limit in HEADERS_PER_FILE.items():
        files = [str(path.relative_to(arguments.source)) for path in (arguments.source / room).rglob("*.cpp")]
        counts = [len(tree.all_of(file)) for file in files]
        mean = sum(counts) / max(1, len(counts))
        if arguments.show:
            print(f"{room:10} {len(files):4} files, {mean:6.1f} headers of ours per file, at most {max(counts, default=0)}")
        if not files or mean > limit:
            mistakes.append(f"{room}: {mean:.1f} headers of ours per file, limit {limit}")
    for header, limit in HEADERS_OF_HEADER.items():
        count = len(tree.all_of(header))
        if arguments.show:
            print(f"{header} includes {count}")
        if count > limit:
            mistakes.append(f"{header} includes {count} headers of ours, limit {limit}")
    if (arguments.build / "build.ninja").is_file():
        programs = programs_of(arguments.build)
        if arguments.show:
            print(f"{len(programs)} programs: {json.dumps(programs)}")
        if not 0 < len(programs) <= MOST_PROGRAMS:
            mistakes.append(f"{len(programs)} programs in `all`, limit {MOST_PROGRAMS}: tests of a room are one program")
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
