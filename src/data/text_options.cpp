// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/text_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/device.h"
#include "data/reader_options.h"
#include "data/utf8.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

/// Calls take(line, number) for each line, including its "\n" if `ends` is set.
template <typename Take>
void for_each_line(const std::string& path, bool ends, Take take) {
  InputFile file(path);
  LineReader lines(file);
  std::string with_end;
  for (std::string_view line; lines.next(line);) {
    require_utf8(line, path, lines.line_number());
    if (ends) {
      with_end.assign(line);
      with_end += '\n';
      line = with_end;
    }
    take(line, lines.line_number());
  }
}

bool has_line_ends(const Tokenizer& tokenizer) { return tokenizer.unit == TokenUnit::characters; }

template <typename T>
void fill(DatasetParts& parts, DType dtype, const std::vector<std::int32_t>& ids) {
  parts.feature_dtype = dtype;
  parts.features = Buffer(cpu_device(), ids.size() * sizeof(T));
  std::transform(ids.begin(), ids.end(), parts.features.as<T>().begin(),
                 [](std::int32_t id) { return static_cast<T>(id); });
}

}  // namespace

RowRange TextPart::of(std::int64_t count) const {
  const auto at = [&](double share) {
    return static_cast<std::int64_t>(std::floor(share * static_cast<double>(count)));
  };
  return {at(first), at(last)};
}

TextPart text_part(const Params& params, const ParamSpec& option) {
  const std::vector<double>& share = params.reals(option.name);
  if (share.size() != 2 || !(share[0] >= 0 && share[0] < share[1] && share[1] <= 1))
    throw params.error(option.name, "must be two numbers, 0 <= first < last <= 1",
                       "For the first nine tenths write [0, 0.9].");
  return {share[0], share[1]};
}

Vocabulary vocabulary_option(const Params& params, const std::string& base_directory,
                             const std::string& source, bool padding, FunctionRef<void(WordCounts&)> count) {
  const auto written = params.as<WrittenVocabulary>();
  VocabularyOptions options{.padding = padding, .min_count = written.min_count};
  if (written.max_vocabulary) options.max_size = *written.max_vocabulary;
  if (written.vocabulary)
    return Vocabulary::from_file(resolved_path(*written.vocabulary, base_directory), options);
  WordCounts counts;
  count(counts);
  Vocabulary vocabulary(counts, options);
  if (vocabulary.size() == vocabulary.unknown_id() + 1)
    throw Error(ErrorKind::data,
                fmt::format("no token is frequent enough for a vocabulary ({} different ones, min_count {})",
                            counts.size(), options.min_count),
                source, "Lower min_count, or give more text.");
  return vocabulary;
}

void count_tokens(const Tokenizer& tokenizer, std::string_view text, WordCounts& counts) {
  tokenizer.for_each(text, [&](std::string_view token) {
    const auto found = counts.find(token);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace(token, 1);
    }
  });
}

void set_ids(DatasetParts& parts, const std::vector<std::int32_t>& ids, std::int64_t vocabulary_size) {
  if (vocabulary_size <= std::int64_t{std::numeric_limits<std::uint8_t>::max()} + 1)
    return fill<std::uint8_t>(parts, DType::u8, ids);
  if (vocabulary_size <= std::int64_t{std::numeric_limits<std::uint16_t>::max()} + 1)
    return fill<std::uint16_t>(parts, DType::u16, ids);
  fill<std::int32_t>(parts, DType::i32, ids);
}

namespace {

/// The words of a running text.
Vocabulary running_vocabulary(const Params& params, const std::string& base_directory,
                              const std::string& path, const TextPart& part, const Tokenizer& tokenizer) {
  return vocabulary_option(params, base_directory, path, false, [&](WordCounts& counts) {
    std::int64_t lines = 0;
    for_each_line(path, false, [&](std::string_view, std::int64_t) { ++lines; });
    const RowRange counted = part.of(lines);
    for_each_line(path, has_line_ends(tokenizer), [&](std::string_view line, std::int64_t number) {
      if (number > counted.first && number <= counted.last) count_tokens(tokenizer, line, counts);
    });
  });
}

}  // namespace

TokenRow read_running_text(const Params& params, const std::string& base_directory, const TextInfo* known) {
  const auto [written_path, part, vocabulary_part] = params.as<RunningText>();
  const std::string path = resolved_path(written_path, base_directory);
  const auto tokenizer = params.as<Tokenizer>();
  TextInfo info =
      known != nullptr
          ? *known
          : TextInfo{
                tokenizer, running_vocabulary(params, base_directory, path, vocabulary_part, tokenizer), {}};
  TokenRow row{{}, std::make_shared<TextInfo>(std::move(info)), path};
  const std::vector<std::int32_t> all = read_tokens(path, *row.info);
  const RowRange used = part.of(static_cast<std::int64_t>(all.size()));
  row.ids.assign(all.begin() + used.first, all.begin() + used.last);
  return row;
}

std::vector<std::int32_t> read_tokens(const std::string& path, const TextInfo& info) {
  std::vector<std::int32_t> ids;
  for_each_line(path, has_line_ends(info.tokenizer), [&](std::string_view line, std::int64_t) {
    info.tokenizer.for_each(line, [&](std::string_view token) { ids.push_back(info.vocabulary.id(token)); });
  });
  if (ids.empty())
    throw Error(ErrorKind::data, "holds no text", path,
                "Check the path; an empty file may be a failed download.");
  return ids;
}

}  // namespace lockstep
