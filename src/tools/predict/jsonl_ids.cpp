// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "core/error.h"
#include "io/byte_source.h"
#include "io/json_fields.h"
#include "tools/predict/sample_ids.h"

namespace lockstep {

namespace {

/// Calls use(line) for each line, without its end; as the reader jsonl, without blank lines at the end.
template <typename Use>
void for_each_line(const std::string& path, Use use) {
  constexpr std::size_t kBlock = std::size_t{1} << 18;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF", kBlank = " \t\r\n";
  const std::shared_ptr<ByteSource> source = plain_or_gzip_bytes(path);
  std::string rest;  // begins with a line
  std::vector<char> block(kBlock);
  std::size_t blank_lines = 0;
  const auto end_line = [&](std::string_view line) {
    if (line.find_first_not_of(kBlank) == std::string_view::npos) {
      ++blank_lines;
      return;
    }
    for (; blank_lines > 0; --blank_lines) use(std::string_view());
    use(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
  };
  for (std::int64_t at = 0;;) {
    const std::size_t got = source->read_some(at, block.data(), block.size());
    rest.append(block.data(), got);
    if (at == 0 && rest.starts_with(kByteOrderMark)) rest.erase(0, kByteOrderMark.size());
    at += static_cast<std::int64_t>(got);
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      end_line(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (got < block.size()) break;
  }
  end_line(rest);
}

std::string text_of(const JsonField& field, const std::string& path) {
  if (field.is_text) return field.text;
  if (!field.found || field.numbers.size() != 1) return {};
  const double number = field.numbers.front();
  constexpr double kMostWhole = 9007199254740992.0;  // 2^53: JSON's numbers are doubles here
  if (field.is_whole && std::abs(number) >= kMostWhole)
    throw Error(ErrorKind::data,
                fmt::format("field '{}': a number beyond 2^53 has no exact value", field.name), path,
                "Write these ids as texts: \"id\": \"9007199254740993\".");
  return field.is_whole ? fmt::format("{:.0f}", number) : fmt::format("{}", number);
}

}  // namespace

std::optional<std::vector<std::string>> jsonl_ids(const std::vector<std::string>& paths,
                                                  std::string_view name) {
  std::vector<std::string> ids;
  bool is_there = true;
  for (const std::string& path : paths)
    for_each_line(path, [&](std::string_view line) {
      if (!is_there) return;
      std::array fields{JsonField{.name = name}};
      try {
        read_json_fields(line, fields);
      } catch (const Error&) {  // reading the sample says so
      }
      if (ids.empty() && !fields[0].found) is_there = false;
      ids.push_back(text_of(fields[0], path));
    });
  if (!is_there) return std::nullopt;
  return ids;
}

}  // namespace lockstep
