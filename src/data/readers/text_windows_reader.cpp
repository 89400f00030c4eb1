// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A continuous text for language models: a sample is a window of `length` tokens, and its labels are the
// token after each of them. Windows overlap in memory, so a small stride needs no additional memory.
#include "data/data_files.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/text_options.h"

namespace lockstep {

namespace {

struct Options {
  std::int64_t length = 0;
  std::optional<std::int64_t> stride;
};
constexpr std::array kOptions = with_running_text_options(std::array{
    option<&Options::length>("length", kRequired, between(1, 65536), "number of tokens per window"),
    option<&Options::stride>(
        "stride", "null", between(1, 1e12).or_null(),
        "tokens from the start of a window to that of the next; null: length, so that every token is a "
        "label once")});

/// The windows over `ids`, if `extra` more tokens are needed after each window.
DatasetParts windows(const Options& options, const std::string& path, std::vector<std::int32_t> ids,
                     std::shared_ptr<const TextInfo> info, std::int64_t extra) {
  const std::int64_t length = options.length, stride = options.stride.value_or(length);
  const std::int64_t usable = static_cast<std::int64_t>(ids.size()) - extra;
  if (usable < length)
    throw Error(ErrorKind::data,
                fmt::format("has {} tokens in this part, but a window of length {} needs {}", ids.size(),
                            length, length + extra),
                path, "Take a smaller length or a larger part.");
  DatasetParts parts;
  parts.source = path;
  parts.record_word = "window";
  parts.size = (usable - length) / stride + 1;
  parts.feature_shape = {length};
  parts.feature_step = stride;
  parts.text = std::move(info);
  if (extra > 0) {
    parts.num_label_columns = length;
    parts.label_step = stride;
    parts.label_indices.assign(ids.begin() + extra, ids.end());
  }
  set_ids(parts, ids, parts.text->vocabulary.size());
  return parts;
}

/// Reduces `ids` to the windows [first, last).
void keep_rows(DatasetParts& parts, const RowRange& rows, std::vector<std::int32_t>& ids, std::int64_t extra,
               std::int64_t stride, std::int64_t length) {
  ids = {ids.begin() + rows.first * stride, ids.begin() + (rows.last - 1) * stride + length + extra};
  parts.first_record = rows.first;
}

DatasetParts read_set(const Params& params, const std::string& base_directory, const TextInfo* known) {
  const auto options = params.as<Options>();
  TokenRow row = read_running_text(params, base_directory, known);
  row.info->next_token_labels = true;
  DatasetParts parts = windows(options, row.path, row.ids, row.info, 1);
  if (const std::optional<RowRange> rows = rows_option(params)) {
    checked_rows(rows, parts.size, row.path);
    keep_rows(parts, *rows, row.ids, 1, parts.feature_step, options.length);
    const std::int64_t first = parts.first_record;
    parts = windows(options, row.path, row.ids, row.info, 1);
    parts.first_record = first;
  }
  return parts;
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  return read_set(params, base_directory, nullptr);
}

DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                             const std::string& base_directory) {
  return read_set(params, base_directory, trained.text());
}

/// Without labels, so that the last window needs no token after it.
DatasetParts make_input(const Params& params, const InputRequest& request) {
  LOCKSTEP_CHECK(request.text != nullptr);
  const std::string& path = only_file(request, "text_windows");
  DatasetParts parts = windows(params.as<Options>(), path, read_tokens(path, *request.text),
                               std::make_shared<TextInfo>(*request.text), 0);
  check_feature_shape(parts.feature_shape, request.feature_shape, path);
  return parts;
}

}  // namespace

extern const ReaderEntry kTextWindowsReader = {
    "text_windows", "windows of a continuous text; labels are the next tokens",
    kOptions,       make,
    make_input,     nullptr,
    false,          file_of_path,
    nullptr,        nullptr,
    make_as_trained};

}  // namespace lockstep
