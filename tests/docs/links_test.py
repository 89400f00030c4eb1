#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what the documentation points to, in every Markdown file that belongs to the repository.

- A relative link leads to a file or folder, and its #anchor to a heading of that file.
- A path in code quotes exists if it begins with a folder of the repository (`tests/...`), a room of src/ (`core/tensor.h`) or
  ends like a source file (`lockstep/hook.h`). src/, include/, the page's own folder and the suffix may be left out. Paths are not checked on a line that
  says "new file".

    links_test.py SOURCE        # the repository's root; prints every broken reference; exit code 1 if there is one
"""
import os
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTE = re.compile(r"`([^`\s]+)`")
FENCE = re.compile(r"^(```|    )")
PATH = re.compile(r"^[A-Za-z0-9_./-]+$")
SUFFIXES = ("", ".h", ".cpp", ".cu")
SOURCES = (".h", ".cpp", ".cu", ".py", ".cmake")


def anchors(text):
    """The anchors that GitHub gives the headings of a page."""
    found, seen = set(), {}
    for line in text.splitlines():
        match = re.match(r"#+ +(.*)", line)
        if not match:
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1))
        name = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(name if count == 0 else f"{name}-{count}")
    return found


class Check:
    def __init__(self, source):
        self.source = source
        self.folders = {p.name for p in source.iterdir() if p.is_dir() and not p.name.startswith(".") and p.name != "build"}
        self.rooms = {p.name for p in (source / "src").iterdir() if p.is_dir()}
        self.problems = []
        self.links = self.paths = 0

    def exists(self, path):
        place = self.source / path
        return any(place.with_name(place.name + suffix).exists() for suffix in SUFFIXES)

    def link(self, page, target):
        if re.match(r"[a-z]+:", target):
            return None
        self.links += 1
        name, _, anchor = target.partition("#")
        place = (page.parent / name).resolve() if name else page
        if not place.exists():
            return f"link to {target}: there is no such file"
        if anchor and place.suffix == ".md" and anchor not in anchors(place.read_text()):
            return f"link to {target}: the page has no such heading"
        return None

    def path(self, page, text):
        text = text.split(":")[0].rstrip("/.,")
        first, _, rest = text.partition("/")
        if not rest or not PATH.match(text):
            return None
        if first not in self.rooms | self.folders and not text.endswith(SOURCES):
            return None
        self.paths += 1
        beside = page.parent.relative_to(self.source) / text
        known = any(map(self.exists, (text, f"src/{text}", f"include/{text}", beside)))
        return None if known else f"`{text}`: there is no such file"

    def page(self, page):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if FENCE.match(line):
                continue
            found = [self.link(page, target) for target in LINK.findall(line)]
            if "new file" not in line:
                found += [self.path(page, quote) for quote in QUOTE.findall(line)]
            for problem in filter(None, found):
                self.problems.append(f"{page.relative_to(self.source)}:{number}: {problem}")


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    check = Check(source)
    pages = []
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "build")) and name != "runs")
        pages += [pathlib.Path(folder, name) for name in sorted(files) if name.endswith(".md")]
    for page in pages:
        check.page(page)
    for problem in check.problems:
        print(problem)
    print(f"{len(pages)} pages, {check.links} links, {check.paths} paths, {len(check.problems)} broken")
    if check.links == 0 or check.paths == 0:
        print("nothing was checked")
        return 1
    return 1 if check.problems else 0


sys.exit(main())
