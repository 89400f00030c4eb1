// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_findings.h"

#include <algorithm>
#include <bit>

#include "data/kept_index.h"

namespace lockstep {

std::string CsvFindings::bytes() const {
  IndexWriter writer;
  writer.number(samples);
  writer.number(whole_labels ? 1 : 0);
  writer.number(std::ssize(bad));
  for (const BadRecord& record : bad) {
    writer.number(record.sample);
    writer.text(record.where);
    writer.text(record.reason);
  }
  writer.number(std::ssize(keys));
  for (const std::uint64_t key : keys) writer.number(static_cast<std::int64_t>(key));
  writer.number(std::ssize(places));
  for (const CsvRowPlaces& file : places) {
    writer.text(file.path);
    writer.number(file.first_line);
    writer.number(file.first_sample);
    writer.numbers(file.begins);
    writer.number(file.end);
  }
  lines.write(writer);
  return writer.bytes();
}

std::optional<CsvFindings> csv_findings(std::string_view bytes, const std::vector<std::string>& paths) {
  IndexReader reader(bytes);
  CsvFindings found;
  found.samples = reader.number();
  found.whole_labels = reader.number() != 0;
  for (std::int64_t left = reader.number(); left > 0 && reader.good(); --left) {
    const std::int64_t sample = reader.number();
    std::string where = reader.text();
    found.bad.push_back({sample, std::move(where), reader.text()});
  }
  for (std::int64_t left = reader.number(); left > 0 && reader.good(); --left)
    found.keys.push_back(static_cast<std::uint64_t>(reader.number()));
  for (std::int64_t left = reader.number(); left > 0 && reader.good(); --left) {
    CsvRowPlaces file;
    file.path = reader.text();
    file.first_line = reader.number();
    file.first_sample = reader.number();
    file.begins = reader.numbers();
    file.end = reader.number();
    if (std::ranges::find(paths, file.path) == paths.end()) return std::nullopt;
    found.places.push_back(std::move(file));
  }
  found.lines.read(reader);
  if (!reader.ended() || found.places.empty()) return std::nullopt;
  return found;
}

std::string csv_lists_bytes(const CsvLists& lists) {
  IndexWriter writer;
  writer.number(std::ssize(lists));
  for (const auto& [column, values] : lists) {
    writer.text(column);
    writer.number(std::ssize(values));
    for (const std::string& value : values) writer.text(value);
  }
  return writer.bytes();
}

std::optional<CsvLists> csv_lists(std::string_view bytes) {
  IndexReader reader(bytes);
  CsvLists lists;
  for (std::int64_t left = reader.number(); left > 0 && reader.good(); --left) {
    std::vector<std::string>& values = lists[reader.text()];
    for (std::int64_t more = reader.number(); more > 0 && reader.good(); --more)
      values.push_back(reader.text());
  }
  if (!reader.ended()) return std::nullopt;
  return lists;
}

std::string csv_options_bytes(const CsvPlan& plan, const CsvFormat& format, const CsvMissing& missing,
                              const std::optional<RowRange>& rows, bool skips_bad) {
  IndexWriter writer;
  const auto character = [&](const std::optional<char>& value) { writer.number(value ? *value : -1000); };
  character(format.delimiter);
  character(format.decimal);
  character(format.thousands);
  character(format.quote);
  character(format.comment);
  writer.number(format.header ? 1 : 0);
  writer.number(format.skip_lines);
  for (const std::string& text : missing.texts()) writer.text(text);
  writer.number(rows ? rows->first : -1);
  writer.number(rows ? rows->last : -1);
  writer.number(skips_bad ? 1 : 0);
  writer.number(plan.num_columns);
  writer.number(plan.key.value_or(-1));
  for (const CsvColumn& column : plan.columns) {
    writer.number(column.info.index);
    writer.text(column.info.name);
    writer.number(column.slot);
    writer.number((column.is_label ? 1 : 0) + (column.has_texts ? 2 : 0) + (column.learns ? 4 : 0));
    writer.number(column.number_if_missing ? std::bit_cast<std::int32_t>(*column.number_if_missing)
                                           : std::int64_t{1} << 40);
    writer.text(column.text_if_missing.value_or("\n"));
    writer.number(std::ssize(column.info.values));
    for (const std::string& value : column.info.values) writer.text(value);
  }
  return writer.bytes();
}

}  // namespace lockstep
