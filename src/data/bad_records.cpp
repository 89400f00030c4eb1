// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/bad_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <memory>

#include "config/option.h"
#include "core/error.h"
#include "core/in_parallel.h"
#include "core/range.h"
#include "data/reader_dataset.h"
#include "io/file_error.h"

namespace lockstep {

namespace {

/// Parts of a set; more ranks and threads than parts find nothing to do.
constexpr std::int64_t kMostParts = 4096;
constexpr std::size_t kShown = 3;  ///< records in messages
constexpr std::string_view kHeader = "set,input,sample,record,reason\n";

std::string examples(std::span<const BadRecord> records) {
  std::string text;
  for (const BadRecord& record : records.first(std::min(kShown, records.size())))
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", record.where, record.reason);
  return text + (records.size() > kShown ? "; ..." : "");
}

/// A field in double quotes, on one line.
std::string csv_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c == '\n' || c == '\r' ? ' ' : c;
  }
  return field + '"';
}

/// Takes a field and the character after it.
bool take_field(std::string_view& text, char after, std::string& field) {
  field.clear();
  const bool in_quotes = text.starts_with('"');
  std::size_t at = in_quotes ? 1 : 0;
  for (;; ++at) {
    if (at == text.size()) return false;
    if (!in_quotes && text[at] == after) break;
    if (in_quotes && text[at] == '"') {
      ++at;
      if (at == text.size() || text[at] != '"') break;
    }
    field += text[at];
  }
  if (at == text.size() || text[at] != after) return false;
  text.remove_prefix(at + 1);
  return true;
}

}  // namespace

std::int64_t BadRecordOptions::most(std::int64_t num_samples) const {
  return static_cast<std::int64_t>(limit < 1 ? std::floor(limit * static_cast<double>(num_samples)) : limit);
}

BadRecordOptions bad_record_options(const Params& params, std::span<const ParamSpec> table) {
  if (std::ranges::find(table, "bad_records", &ParamSpec::name) == table.end()) return {};
  const auto options = params.as<BadRecordOptions>();
  if (options.limit >= 1 && options.limit != std::floor(options.limit))
    throw params.error(option_name<&BadRecordOptions::limit>(params),
                       "is neither a share below 1 nor a whole number of records",
                       "For one record in a thousand write 0.001, for a thousand records 1000.");
  return options;
}

void look_at_first_good(const Params& params, std::int64_t count, FunctionRef<void(std::int64_t i)> look) {
  constexpr std::int64_t kMostTried = 1000;
  const std::int64_t tried = params.as<BadRecordOptions>().skip ? std::min(count, kMostTried) : 1;
  std::exception_ptr first;
  for (std::int64_t i = 0; i < tried; ++i) {
    try {
      return look(i);
    } catch (const FileError&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      if (first == nullptr) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

void check_bad_records(std::span<const BadRecord> found, std::int64_t count, std::int64_t most,
                       std::int64_t num_samples) {
  if (count <= most) return;
  throw Error(ErrorKind::data,
              fmt::format("{}; more than {} of {} records are bad", found.front().reason, most, num_samples),
              found.front().where,
              "Check the reader's options. If they are right, option max_bad_records allows more.");
}

BadRecordScan::BadRecordScan(const OpenedSamples& data, std::int64_t most)
    : data_(data),
      most_(most),
      num_parts_(static_cast<int>(std::min(data.grid(0).num_blocks(), kMostParts))) {
  LOCKSTEP_CHECK(data.has_store());
}

int BadRecordScan::most_threads() const {
  constexpr int kMostThreads = 256;
  return data_.parts().store->has_random_access() ? kMostThreads : 1;
}

std::vector<BadRecord> BadRecordScan::find(int part) {
  const BlockGrid blocks = data_.grid(0);
  const Range own{part * blocks.num_blocks() / num_parts_, (part + 1) * blocks.num_blocks() / num_parts_};
  // Packed files are unpacked once: sample by sample, never going back.
  const std::int64_t together = data_.parts().store->has_random_access() ? blocks.block_samples() : 1;
  const auto bytes = static_cast<std::size_t>(together * data_.parts().sample_bytes());
  const auto labels = static_cast<std::size_t>(together * data_.parts().num_label_columns);
  const auto features = std::make_unique_for_overwrite<char[]>(bytes);
  std::vector<std::int32_t> indices(data_.parts().label_kind == LabelKind::indices ? labels : 0);
  std::vector<float> rows(data_.parts().label_kind == LabelKind::rows ? labels : 0);
  SampleRoom room{.features = features.get()};
  if (!indices.empty()) room.label_indices = indices.data();
  if (!rows.empty()) room.label_rows = rows.data();
  std::vector<BadRecord> found;
  for (std::int64_t block = own.first; block < own.last; ++block) {
    const Range samples = blocks.samples(block);
    for (std::int64_t first = samples.first; first < samples.last; first += together)
      look_at(first, std::min(together, samples.last - first), room, found);
  }
  return found;
}

void BadRecordScan::look_at(std::int64_t first, std::int64_t count, const SampleRoom& room,
                            std::vector<BadRecord>& found) {
  try {
    data_.parts().store->read(first, count, room);
    data_.checks()->check_finite(first, count, room);
    return;
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    if (count == 1) {
      found.push_back({first, data_.where(first), error.what_happened()});
      check_bad_records(found, ++count_, most_, data_.size());
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) look_at(first + i, 1, room, found);
}

std::vector<BadRecord> bad_records_of(const OpenedSamples& data, std::int64_t most, int threads) {
  BadRecordScan scan(data, most);
  std::vector<std::vector<BadRecord>> parts(static_cast<std::size_t>(scan.num_parts()));
  in_parallel(std::min(threads, scan.most_threads()), scan.num_parts(), [&](std::int64_t part) {
    parts[static_cast<std::size_t>(part)] = scan.find(static_cast<int>(part));
  });
  std::vector<BadRecord> all;
  for (std::vector<BadRecord>& part : parts) std::ranges::move(part, std::back_inserter(all));
  return all;
}

std::string bad_records_text(std::span<const BadRecordList> lists) {
  std::string text(kHeader);
  for (const BadRecordList& list : lists)
    for (const BadRecord& record : list.records)
      text += fmt::format("{},{},{},{},{}\n", list.set, csv_field(list.input), record.sample,
                          csv_field(record.where), csv_field(record.reason));
  return text;
}

std::vector<BadRecordList> bad_records_from_text(std::string_view text, const std::string& where) {
  const auto fail = [&] {
    throw Error(ErrorKind::data, "is no list of bad records", where,
                "Restore the file: it says which samples the run leaves out.");
  };
  if (!text.starts_with(kHeader)) fail();
  text.remove_prefix(kHeader.size());
  std::vector<BadRecordList> lists;
  std::string set, input, sample;
  while (!text.empty()) {
    BadRecord record;
    if (!take_field(text, ',', set) || !take_field(text, ',', input) || !take_field(text, ',', sample) ||
        !take_field(text, ',', record.where) || !take_field(text, '\n', record.reason))
      fail();
    const auto [end, failed] = std::from_chars(sample.data(), sample.data() + sample.size(), record.sample);
    if (failed != std::errc() || end != sample.data() + sample.size() || record.sample < 0) fail();
    if (lists.empty() || lists.back().set != set || lists.back().input != input)
      lists.push_back({set, input, {}});
    std::vector<BadRecord>& records = lists.back().records;
    if (!records.empty() && records.back().sample >= record.sample) fail();
    records.push_back(std::move(record));
  }
  return lists;
}

std::vector<std::string> bad_records_notes(const Dataset& data) {
  std::vector<std::string> notes;
  for (const DatasetPart& part : data.parts()) {
    const DatasetParts& stored = part.data->stored().parts();
    const std::size_t count = stored.left_out.size();
    if (count == 0) continue;
    const std::string note =
        fmt::format("{} of {} records {} bad and left out: {}", count, stored.size + stored.num_left_out,
                    count == 1 ? "is" : "are", examples(stored.left_out));
    notes.push_back(part.name.empty() ? note : fmt::format("{}: {}", part.name, note));
  }
  return notes;
}

}  // namespace lockstep
