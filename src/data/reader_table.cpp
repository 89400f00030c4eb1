// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/reader_table.h"

#include <vector>

#include "config/synonyms.h"
#include "data/reader_options.h"
#include "data/sample_stream.h"

namespace lockstep {

// One per line. Each entry is defined in its reader's file in readers/.
#define LOCKSTEP_READERS(READER) \
  READER(kBinaryReader)          \
  READER(kCsvReader)             \
  READER(kHdf5Reader)            \
  READER(kIdxReader)             \
  READER(kImageFolderReader)     \
  READER(kJsonlReader)           \
  READER(kNpyReader)             \
  READER(kProgramReader)         \
  READER(kSkipGramReader)        \
  READER(kSyntheticReader)       \
  READER(kTextFilesReader)       \
  READER(kTextTsvReader)         \
  READER(kTextWindowsReader)     \
  READER(kTfrecordReader)        \
  READER(kWebdatasetReader)

LOCKSTEP_TABLE(ReaderEntry, reader_table, "reader", LOCKSTEP_READERS)

namespace {

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

const ReaderEntry& find_reader(std::string_view format, const std::string& where) {
  if (const ReaderEntry* const found = reader_table().find(format)) return *found;
  throw Error(ErrorKind::config, fmt::format("unknown data format '{}'", format), where,
              advice_for_name("data format", format, reader_table().names()));
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
