// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/json_lines.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "core/memory_limit.h"
#include "io/text_bytes.h"

namespace lockstep {

std::vector<std::int64_t> find_lines(ByteSource& source) {
  constexpr std::size_t kSearchBytes = std::size_t{1} << 18;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::vector<char> block(kSearchBytes);
  std::vector<std::int64_t> begins{0};
  const GrowthLimit limit;
  std::int64_t at = 0, last_text = -1;  // the last byte that is not blank
  for (;;) {
    const std::size_t got = source.read_some(at, block.data(), block.size());
    const char *next = block.data(), *const end = next + got;
    if (at == 0) refuse_no_text({next, got}, source.where());
    if (at == 0 && std::string_view(next, got).starts_with(kByteOrderMark)) begins[0] = 3;
    while (next < end) {
      const void* const found = std::memchr(next, '\n', static_cast<std::size_t>(end - next));
      if (found == nullptr) break;
      next = static_cast<const char*>(found) + 1;
      begins.push_back(at + (next - block.data()));
    }
    if (!limit.allows(begins.size() * sizeof(std::int64_t)))
      limit.fail(fmt::format("{}, line {}", source.where(), begins.size()), !source.has_random_access());
    for (std::int64_t i = static_cast<std::int64_t>(got) - 1; i >= 0; --i)
      if (std::strchr(" \t\r\n", block[static_cast<std::size_t>(i)]) == nullptr ||
          block[static_cast<std::size_t>(i)] == '\0') {
        last_text = at + i;
        break;
      }
    at += static_cast<std::int64_t>(got);
    if (got < block.size()) break;
  }
  if (begins.back() < at) begins.push_back(at);  // without "\n" at the end
  while (begins.size() > 1 && begins[begins.size() - 2] > last_text) begins.pop_back();
  if (last_text < begins.front()) begins.resize(1);
  return begins;
}

}  // namespace lockstep
