// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/reader_table.h"

#include <vector>

#include "config/synonyms.h"
#include "data/good_samples.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"

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

OpenedSamples without_bad(OpenedSamples data, const Params& params, const ReaderEntry& reader) {
  const BadRecordOptions options = bad_record_options(params, reader.table);
  if (!options.skip) return data;
  const std::int64_t most = options.most(data.size());
  std::vector<BadRecord> bad =
      data.knows_bad_records()
          ? data.parts().bad
          : bad_records_of(data, most, whole_set_threads(memory_options(params, {}).threads));
  check_bad_records(bad, std::ssize(bad), most, data.size());
  std::vector<std::int64_t> samples;
  for (const BadRecord& record : bad) samples.push_back(record.sample);
  return leave_out(std::move(data), std::move(bad), samples);
}

/// Of readers that give a store; others have their samples in memory.
DatasetMemory memory_of(const OpenedSamples& data, const Params& params, const DatasetUse& use) {
  return data.has_store() ? memory_options(params, use) : DatasetMemory{};
}

std::unique_ptr<ReaderDataset> finished(OpenedSamples data, const DatasetMemory& memory) {
  return std::make_unique<ReaderDataset>(std::make_shared<const StoredSamples>(std::move(data), memory));
}

std::unique_ptr<ReaderDataset> opened(DatasetParts parts, const ReaderEntry& reader, const Params& params,
                                      const std::string& base_directory, const DatasetUse& use) {
  OpenedSamples data(std::move(parts));
  name_classes(data, params, reader.table, base_directory);
  data = without_bad(std::move(data), params, reader);
  const DatasetMemory memory = memory_of(data, params, use);
  return finished(std::move(data), memory);
}

}  // namespace

const ReaderEntry& find_reader(std::string_view format, const std::string& where) {
  if (const ReaderEntry* const found = reader_table().find(format)) return *found;
  throw Error(ErrorKind::config, fmt::format("unknown data format '{}'", format), where,
              advice_for_name("data format", format, reader_table().names()));
}

std::unique_ptr<ReaderDataset> open_dataset(std::string_view format, const Params& params,
                                            const std::string& base_directory, const DatasetUse& use) {
  const ReaderEntry& reader = find_reader(format);
  return opened(reader.make(params, base_directory), reader, params, base_directory, use);
}

std::unique_ptr<ReaderDataset> open_evaluation_dataset(std::string_view format, const Params& params,
                                                       const Params& train, const std::string& base_directory,
                                                       const DatasetUse& use) {
  const ReaderEntry& reader = find_reader(format);
  if (reader.make_evaluation == nullptr) return open_dataset(format, params, base_directory, use);
  return opened(reader.make_evaluation(params, train, base_directory), reader, params, base_directory, use);
}

std::unique_ptr<ReaderDataset> open_input(std::string_view format, const Params& params,
                                          const InputRequest& request, const DatasetUse& use) {
  return read_input_files(open_input_files(format, params, request), params, use);
}

OpenedSamples open_input_files(std::string_view format, const Params& params, const InputRequest& request) {
  LOCKSTEP_CHECK(!request.paths.empty());
  return OpenedSamples(find_reader(format).make_input(params, request));
}

std::unique_ptr<ReaderDataset> read_input_files(OpenedSamples opened, const Params& params,
                                                const DatasetUse& use) {
  const DatasetMemory memory = memory_of(opened, params, use);
  return finished(std::move(opened), memory);
}

}  // namespace lockstep
