# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Files include the standard headers of what they use, themselves or through a header of ours.

Where cmake/precompiled.h is compiled first (LOCKSTEP_PCH), a compiler does not notice that one is missing; a build without it would.

    standard_headers_check.py SOURCE_FOLDER PRECOMPILED_HEADER
"""
import pathlib
import re
import sys

ALGORITHMS = """adjacent_find all_of any_of binary_search clamp copy copy_backward copy_if copy_n count count_if equal equal_range fill fill_n
 find find_end find_first_of find_if find_if_not for_each generate generate_n includes inplace_merge is_permutation is_sorted
 is_sorted_until lexicographical_compare lower_bound max max_element merge min min_element minmax minmax_element mismatch next_permutation
 none_of nth_element partial_sort partition partition_point pop_heap push_heap make_heap remove remove_if replace replace_if reverse rotate
 search set_difference set_intersection set_union shuffle sort sort_heap stable_partition stable_sort swap_ranges transform unique
 upper_bound""".split()
# What shows that a file needs the header.
SYMBOLS = {
    "algorithm": rf"std::(ranges::)?({'|'.join(ALGORITHMS)})\(",
    "array": r"std::array\b",
    "atomic": r"std::(atomic|memory_order)\w*",
    "chrono": r"std::chrono::",
    "cmath": r"std::(sqrt|exp|expm1|log|log2|log10|log1p|pow|floor|ceil|round|lround|llround|trunc|isfinite|isnan|isinf|signbit|ldexp|frexp"
             r"|fmod|remainder|hypot|sin|cos|tan|tanh|erf|erfc|fma|nextafter|copysign|scalbn|ilogb|cbrt)\(",
    "condition_variable": r"std::condition_variable",
    "cstdint": r"std::(u?int(8|16|32|64)_t|u?intptr_t)\b",
    "cstring": r"std::(mem(cpy|set|cmp|move|chr)|str(len|cmp|ncmp|chr|rchr|str|error|signal|cpy|ncpy))\(",
    "deque": r"std::deque<",
    "filesystem": r"std::filesystem::",
    "functional": r"std::(function<|bind\(|ref\(|cref\(|plus<|multiplies<|greater<|hash<|invoke\()",
    "limits": r"std::numeric_limits<",
    "map": r"std::(multi)?map<",
    "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this|addressof|uninitialized_\w+)\b",
    "mutex": r"std::((recursive_|timed_)?mutex|lock_guard|unique_lock|scoped_lock|once_flag|call_once)\b",
    "numeric": r"std::(accumulate|iota|reduce|inner_product|partial_sum|exclusive_scan|inclusive_scan|gcd|lcm|midpoint)\(",
    "optional": r"std::(optional\b|nullopt|make_optional)",
    "set": r"std::(multi)?set<",
    "span": r"std::(span\b|as_bytes|as_writable_bytes)",
    "string": r"std::(string\b|to_string|getline|sto(i|l|ll|ul|ull|f|d)\()",
    "string_view": r"std::string_view\b",
    "thread": r"std::(j?thread\b|this_thread::)",
    "unordered_map": r"std::unordered_map<",
    "utility": r"std::(move\(|pair\b|swap\(|exchange\(|forward<|make_pair|index_sequence|in_place\b|as_const|cmp_\w+\()",
    "variant": r"std::(variant<|get_if<|holds_alternative|monostate|visit\()",
    "vector": r"std::vector\b",
    "fmt/format.h": r"fmt::",
}
# Each of the first brings the second by the C++ standard, or is never without it here.
BRINGS = {"algorithm": ["utility"], "array": ["utility"], "deque": ["utility"], "filesystem": ["string", "string_view", "chrono", "utility"],
          "fmt/format.h": ["string", "string_view", "memory", "utility", "cstdint", "cstring", "cmath", "limits"],
          "functional": ["utility", "memory"], "map": ["utility", "memory"], "memory": ["utility"], "optional": ["utility"],
          "set": ["utility"], "span": ["utility", "array"], "string": ["string_view", "utility"], "thread": ["chrono"],
          "unordered_map": ["utility"], "variant": ["utility"], "vector": ["utility"], "mutex": ["chrono"],
          "condition_variable": ["mutex", "chrono"], "fstream": ["string"], "sstream": ["string"], "utility": [], "fmt/core.h": ["string"],
          "fmt/ranges.h": ["fmt/format.h", "string"], "fmt/chrono.h": ["fmt/format.h", "string", "chrono"],
          "fmt/ostream.h": ["fmt/format.h", "string"], "spdlog/spdlog.h": ["fmt/format.h", "string", "memory", "chrono"]}


def main():
    source, precompiled = (pathlib.Path(word) for word in sys.argv[1:])
    texts = {str(path.relative_to(source)): path.read_text(encoding="utf-8")
             for pattern in ("*.cpp", "*.h") for path in source.rglob(pattern)}
    includes = {name: re.findall(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">]+)[">]', text, re.M) for name, text in texts.items()}
    hidden = re.findall(r"#include <([^>]+)>", precompiled.read_text(encoding="utf-8"))
    failures = [f"{precompiled}: <{header}>: what it declares is not known to this check" for header in hidden if header not in SYMBOLS]

    def reached(name):
        found, left = set(), [name]
        while left:
            for header in includes.get(left.pop(), []):
                if header not in found:
                    found.add(header)
                    left.append(header)
                    left.extend(BRINGS.get(header, []))
                    found.update(BRINGS.get(header, []))
        return found

    checked = 0
    for name, text in sorted(texts.items()):
        code = re.sub(r"//[^\n]*|\"(\\.|[^\"\\\n])*\"", "", text)
        found = reached(name)
        for header in hidden:
            used = re.search(SYMBOLS.get(header, "$^"), code)
            checked += used is not None
            if used and header not in found:
                failures.append(f"src/{name}: uses {used[0]} without <{header}>")
    print(f"{checked} uses of standard headers in {len(texts)} files")
    print("\n".join(failures))
    return 1 if failures or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
