// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/text_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/device.h"
#include "core/memory_limit.h"
#include "core/name_list.h"
#include "data/byte_pair_file.h"
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

constexpr const char* kBpeFiles =
    "Name the tokenizer's file tokenizer.json there, or its vocab.json, and its merges.txt in the option "
    "merges.";

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

TextInfo text_option(const Params& params, const std::string& base_directory, const std::string& source,
                     bool rows, FunctionRef<void(WordCounts&)> count) {
  const auto tokenizer = params.as<Tokenizer>();
  const auto written = params.as<WrittenVocabulary>();
  if (tokenizer.unit == TokenUnit::bpe) {
    if (!written.vocabulary) throw params.error("tokens", "bpe needs the option vocabulary", kBpeFiles);
    if (tokenizer.lower_case)
      throw params.error("lower_case", "does not go with tokens: bpe, whose texts are as they are",
                         "Leave it out, or convert the text before.");
    const auto resolved = [&](const std::string& path) { return resolved_path(path, base_directory); };
    std::optional<std::string> padding;
    if (rows && params.has("padding_token")) padding = params.string("padding_token");
    return byte_pair_text(resolved(*written.vocabulary),
                          written.merges ? std::optional(resolved(*written.merges)) : std::nullopt,
                          rows ? &padding : nullptr);
  }
  for (const std::string_view name : {"merges", "padding_token"})
    if ((rows || name == "merges") && params.has(name))
      throw params.error(name, "needs tokens: bpe", "Other tokens have their padding and need no merges.");
  VocabularyOptions options{.padding = rows, .min_count = written.min_count};
  if (written.max_vocabulary) options.max_size = *written.max_vocabulary;
  if (written.vocabulary)
    return {tokenizer, Vocabulary::from_file(resolved_path(*written.vocabulary, base_directory), options)};
  WordCounts counts;
  count(counts);
  Vocabulary vocabulary(counts, options);
  if (vocabulary.size() == vocabulary.unknown_id() + 1)
    throw Error(ErrorKind::data,
                fmt::format("no token is frequent enough for a vocabulary ({} different ones, min_count {})",
                            counts.size(), options.min_count),
                source, "Lower min_count, or give more text.");
  return {tokenizer, std::move(vocabulary)};
}

TextInfo byte_pair_text(const std::string& vocabulary, const std::optional<std::string>& merges,
                        const std::optional<std::string>* padding) {
  TextInfo info = text_info_of(std::make_shared<const BytePairs>(read_byte_pairs(vocabulary, merges)));
  if (padding == nullptr) return info;
  std::vector<std::string> added;
  for (const BytePairTable::Added& one : info.byte_pairs->table().added)
    added.push_back(info.vocabulary.word(one.id).text);
  const std::string advice = added.empty() ? "The tokenizer has no added tokens: add one for it."
                                           : fmt::format("Its added tokens are: {}.", name_list(added));
  if (!*padding)
    throw Error(ErrorKind::config,
                "tokens: bpe needs the option padding_token, the token after the end of a text", vocabulary,
                advice);
  info.padding_id = info.vocabulary.id(**padding);
  if (info.padding_id < 0)
    throw Error(ErrorKind::config, fmt::format("padding_token: the tokenizer has no token '{}'", **padding),
                vocabulary, advice);
  return info;
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

std::string whole_text(const std::string& path, bool adds_end) {
  InputFile file(path);
  LineReader lines(file);
  std::string text;
  const GrowthLimit limit;
  for (std::string_view line; lines.next(line);) {
    require_utf8(line, path, lines.line_number());
    text += line;
    if (adds_end || lines.line_end() - lines.line_begin() > std::ssize(line)) text += '\n';
    if (!limit.allows(text.size()))
      limit.fail(fmt::format("{}, line {}", path, lines.line_number()), file.max_bytes() > file.file_bytes());
  }
  return text;
}

void set_ids(DatasetParts& parts, const std::vector<std::int32_t>& ids, std::int64_t vocabulary_size) {
  if (vocabulary_size <= std::int64_t{std::numeric_limits<std::uint8_t>::max()} + 1)
    return fill<std::uint8_t>(parts, DType::u8, ids);
  if (vocabulary_size <= std::int64_t{std::numeric_limits<std::uint16_t>::max()} + 1)
    return fill<std::uint16_t>(parts, DType::u16, ids);
  fill<std::int32_t>(parts, DType::i32, ids);
}

namespace {

/// Tokenizer and vocabulary of a running text.
TextInfo running_text_info(const Params& params, const std::string& base_directory, const std::string& path,
                           const TextPart& part) {
  const auto tokenizer = params.as<Tokenizer>();
  return text_option(params, base_directory, path, false, [&](WordCounts& counts) {
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
  TextInfo info =
      known != nullptr ? *known : running_text_info(params, base_directory, path, vocabulary_part);
  TokenRow row{{}, std::make_shared<TextInfo>(std::move(info)), path};
  const std::vector<std::int32_t> all = read_tokens(path, *row.info);
  const RowRange used = part.of(static_cast<std::int64_t>(all.size()));
  row.ids.assign(all.begin() + used.first, all.begin() + used.last);
  return row;
}

std::vector<std::int32_t> read_tokens(const std::string& path, const TextInfo& info) {
  std::vector<std::int32_t> ids;
  const auto take = [&](std::int32_t id) { ids.push_back(id); };
  if (info.tokenizer.unit == TokenUnit::bpe)  // tokens of blanks extend across line ends
    info.for_each_id(whole_text(path, false), take);
  else
    for_each_line(path, has_line_ends(info.tokenizer),
                  [&](std::string_view line, std::int64_t) { info.for_each_id(line, take); });
  if (ids.empty())
    throw Error(ErrorKind::data, "holds no text", path,
                "Check the path; an empty file may be a failed download.");
  return ids;
}

}  // namespace lockstep
