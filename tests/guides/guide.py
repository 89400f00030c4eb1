# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The code of a guide (docs/adding_*.md), as it is written there.

The first line of a fenced code block, a comment, says what the block is:

    // src/optim/sign_descent.cpp                        a whole file of Lockstep
    // plugin.cpp                                        a whole file in a folder outside of Lockstep
    // in src/optim/optimizer_table.cpp: after <line>    lines to insert after that line of an existing file, or `before` it
    # in tests/mpi/CMakeLists.txt: at the end            lines to append to it

<line> occurs once in the file; white space does not count. Blocks marked `sh` hold commands, one per line. Other blocks
are illustrations.

    guide.py PAGE FOLDER       writes the files outside of Lockstep of a page into a folder
"""
import dataclasses
import pathlib
import re
import sys

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EDIT = re.compile(r"^(?://|#) in ([\w./]+): (?:(after|before) (.+)|at the end)$")
FILE = re.compile(r"^(?://|#) ([\w./]+\.(?:h|cpp|cu|py|yaml|txt))$")


def without_spaces(line):
    return " ".join(line.split())


@dataclasses.dataclass
class Edit:
    path: str
    where: str  # "after", "before" the line, or None: at the end
    line: str
    lines: str


class Guide:
    """What a page says: `files` {path: text}, `edits`, `commands`."""

    def __init__(self, page):
        self.page = pathlib.Path(page)
        self.files, self.edits, self.commands = {}, [], []
        for language, text in BLOCK.findall(self.page.read_text(encoding="utf-8")):
            first, _, rest = text.partition("\n")
            if edit := EDIT.match(first):
                self.edits.append(Edit(edit[1], edit[2], edit[3], rest))
            elif file := FILE.match(first):
                self.files[file[1]] = rest
            elif language == "sh":
                self.commands += [line for line in text.splitlines() if line]

    def own_files(self):
        """Files for a folder outside of Lockstep."""
        return {path: text for path, text in self.files.items() if not path.startswith(("src/", "tests/"))}

    def place(self, path):
        """Where a file goes in a test: Lockstep's files at their paths, others in a folder with the page's name."""
        return f"{self.page.stem}/{path}" if path in self.own_files() else path

    def apply_edits(self, source, changed):
        """Adds to `changed` {path: lines} the existing files with the edits; `source` is the repository."""
        for edit in self.edits:
            if edit.path not in changed:
                changed[edit.path] = (source / edit.path).read_text(encoding="utf-8").splitlines(keepends=True)
            lines = changed[edit.path]
            if edit.where is None:
                lines.append(edit.lines)
                continue
            places = [i for i, line in enumerate(lines) if without_spaces(line) == without_spaces(edit.line)]
            if len(places) != 1:
                raise AssertionError(f"{self.page.name}: {edit.path} has {len(places)} lines '{edit.line}'")
            lines.insert(places[0] + (edit.where == "after"), edit.lines)


if __name__ == "__main__":
    page, folder = sys.argv[1:]
    pathlib.Path(folder).mkdir(parents=True)
    for name, content in Guide(page).own_files().items():
        (pathlib.Path(folder) / name).write_text(content, encoding="utf-8")
