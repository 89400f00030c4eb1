// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/reader_table.h"

#include <vector>

#include "config/synonyms.h"
#include "data/reader_options.h"
#include "data/sample_stream.h"

namespace lockstep {

// Each reader has its own file, <name>_reader.cpp.
ReaderEntry binary_reader();
ReaderEntry csv_reader();
ReaderEntry hdf5_reader();
ReaderEntry idx_reader();
ReaderEntry image_folder_reader();
ReaderEntry jsonl_reader();
ReaderEntry npy_reader();
ReaderEntry program_reader();
ReaderEntry skip_gram_reader();
ReaderEntry synthetic_reader();
ReaderEntry text_files_reader();
ReaderEntry text_tsv_reader();
ReaderEntry text_windows_reader();
ReaderEntry tfrecord_reader();
ReaderEntry webdataset_reader();

namespace {
std::vector<ReaderEntry>& entries() {
  static std::vector<ReaderEntry> table = {
      // clang-format off: one per line
      binary_reader(),       csv_reader(),       hdf5_reader(),       idx_reader(),
      image_folder_reader(), jsonl_reader(),     npy_reader(),        program_reader(),
      skip_gram_reader(),    synthetic_reader(), text_files_reader(), text_tsv_reader(),
      text_windows_reader(), tfrecord_reader(),  webdataset_reader(),
      // clang-format on
  };
  return table;
}

void leave_out_bad(Dataset& data, const Params& params, const ReaderEntry& reader) {
  const BadRecordOptions options = bad_record_options(params, reader.table);
  if (!options.skip) return;
  const std::int64_t most = options.most(data.size());
  std::vector<BadRecord> bad =
      data.knows_bad_records()
          ? data.bad_records()
          : bad_records_of(data, most, whole_set_threads(memory_options(params, {}).threads));
  check_bad_records(bad, std::ssize(bad), most, data.size());
  std::vector<std::int64_t> samples;
  for (const BadRecord& record : bad) samples.push_back(record.sample);
  data.leave_out(std::move(bad), samples);
}
}  // namespace

std::span<const ReaderEntry> reader_table() { return entries(); }

void register_reader(const ReaderEntry& entry) {
  for (const ReaderEntry& known : entries())
    LOCKSTEP_REQUIRE(known.name != entry.name, ErrorKind::config, "a reader named '{}' exists already",
                     entry.name);
  entries().push_back(entry);
}

const ReaderEntry& find_reader(std::string_view format, const std::string& where) {
  std::vector<std::string_view> names;
  for (const ReaderEntry& entry : reader_table()) {
    if (entry.name == format) return entry;
    names.push_back(entry.name);
  }
  throw Error(ErrorKind::config, fmt::format("unknown data format '{}'", format), where,
              advice_for_name("data format", format, names));
}

std::unique_ptr<Dataset> open_dataset(std::string_view format, const Params& params,
                                      const std::string& base_directory, const DatasetUse& use) {
  const ReaderEntry& reader = find_reader(format);
  std::unique_ptr<Dataset> dataset = reader.make(params, base_directory);
  name_classes(*dataset, params, reader.table, base_directory);
  leave_out_bad(*dataset, params, reader);
  if (dataset->has_store()) dataset->prepare(memory_options(params, use));
  return dataset;
}

std::unique_ptr<Dataset> open_evaluation_dataset(std::string_view format, const Params& params,
                                                 const Params& train, const std::string& base_directory,
                                                 const DatasetUse& use) {
  const ReaderEntry& reader = find_reader(format);
  if (reader.make_evaluation == nullptr) return open_dataset(format, params, base_directory, use);
  std::unique_ptr<Dataset> dataset = reader.make_evaluation(params, train, base_directory);
  name_classes(*dataset, params, reader.table, base_directory);
  leave_out_bad(*dataset, params, reader);
  if (dataset->has_store()) dataset->prepare(memory_options(params, use));
  return dataset;
}

std::unique_ptr<Dataset> open_input(std::string_view format, const Params& params,
                                    const InputRequest& request, const DatasetUse& use) {
  LOCKSTEP_CHECK(!request.paths.empty());
  std::unique_ptr<Dataset> dataset = find_reader(format).make_input(params, request);
  if (dataset->has_store()) dataset->prepare(memory_options(params, use));
  return dataset;
}

}  // namespace lockstep
