#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Writes src/data/unicode_classes_table.h: letters and numbers of Unicode 16.0, as the package tokenizers 0.23 has them.

    pip install unicodedata2==16.0.0 && scripts/unicode_classes.py > src/data/unicode_classes_table.h
"""
import sys
import textwrap

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

VERSION = "16.0.0"
WIDTH = 110


def main():
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"Unicode {unicodedata.unidata_version} is at hand, but {VERSION} is needed: "
                 f"pip install unicodedata2=={VERSION}")
    ranges = []
    for code_point in range(0x80, 0x110000):
        name = {"L": "kLetter", "N": "kNumber"}.get(unicodedata.category(chr(code_point))[0])
        if name is None:
            continue
        if ranges and ranges[-1][1] == code_point - 1 and ranges[-1][2] == name:
            ranges[-1][1] = code_point
        else:
            ranges.append([code_point, code_point, name])
    print("// SPDX-FileCopyrightText: The Lockstep authors")
    print("// SPDX-License-Identifier: Apache-2.0")
    print("//")
    print("// Internal to unicode_classes.cpp. Written by scripts/unicode_classes.py: do not edit.")
    print(f"// Code points beyond ASCII of the categories L and N in Unicode {VERSION}, in order.")
    print("#pragma once\n")
    print('#include "data/unicode_classes.h"\n')
    print("namespace lockstep {\n")
    print("struct ClassRange {")
    print("  char32_t first, last;")
    print("  CharacterClass is;")
    print("};\n")
    print("inline constexpr auto kLetter = CharacterClass::letter, kNumber = CharacterClass::number;")
    print("// clang-format off")
    print("inline constexpr ClassRange kClassRanges[] = {")
    # A range is not broken: its blanks come after the lines are made.
    items = " ".join(f"{{0x{a:X},~0x{b:X},~{name}}}," for a, b, name in ranges)
    print(textwrap.fill(items, WIDTH, initial_indent="    ", subsequent_indent="    ").replace("~", " "))
    print("};")
    print("// clang-format on\n")
    print("}  // namespace lockstep")


if __name__ == "__main__":
    main()
