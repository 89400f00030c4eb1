// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/record_store.h"

#include <algorithm>

#include "core/error.h"
#include "core/range.h"
#include "data/data_files.h"
#include "data/readers/text_classes.h"
#include "data/stored_numbers.h"
#include "io/file_error.h"

namespace lockstep {

namespace {

/// Records are read in pieces of about this number of bytes, which stay in the cache until they are decoded.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 18;

/// With the file and the record before its place.
Error error_at(const RecordFile& file, std::int64_t record, const Error& error) {
  const std::string within = error.where().empty() ? "" : ", " + error.where();
  return Error(error.kind(), error.what_happened(), file.where(record) + within, error.advice());
}

}  // namespace

std::string RecordFile::where(std::int64_t record) const {
  return fmt::format("{}, {} {}", source->where(), word, first_number + record);
}

RecordStore::RecordStore(std::vector<RecordFile> files, const std::vector<RowRange>& rows,
                         std::int64_t feature_bytes, std::int64_t label_columns)
    : feature_bytes_(feature_bytes), label_columns_(label_columns) {
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (rows[i].first == rows[i].last) continue;
    first_sample_.push_back(samples);
    samples += rows[i].last - rows[i].first;
    parts_.push_back({std::move(files[i]), rows[i]});
  }
}

bool RecordStore::has_random_access() const {
  return std::ranges::all_of(parts_, [](const Part& part) { return part.file.source->has_random_access(); });
}

void RecordStore::read(std::int64_t first, std::int64_t count, const SampleRoom& to) {
  auto part =
      static_cast<std::size_t>(std::ranges::upper_bound(first_sample_, first) - first_sample_.begin()) - 1;
  for (std::int64_t done = 0; done < count; ++part) {
    const std::int64_t record = parts_[part].rows.first + first + done - first_sample_[part];
    const std::int64_t here = std::min(count - done, parts_[part].rows.last - record);
    read_part(parts_[part], record, here, room_after(to, done, feature_bytes_, label_columns_));
    done += here;
  }
}

void RecordStore::read_part(const Part& part, std::int64_t record, std::int64_t count,
                            const SampleRoom& to) const {
  for_each_record(part.file, {record, record + count}, [&](std::int64_t i, std::string_view bytes) {
    try {
      decode(bytes, room_after(to, i - record, feature_bytes_, label_columns_));
    } catch (const Error& error) {
      throw error_at(part.file, i, error);
    }
  });
}

void for_each_record(const RecordFile& file, const RowRange& records,
                     FunctionRef<void(std::int64_t, std::string_view)> use) {
  std::unique_ptr<char[]> bytes;
  std::int64_t room = 0;
  for (std::int64_t record = records.first; record < records.last;) {
    const std::int64_t begin = file.begin(record);
    std::int64_t last = record + 1;
    while (last < records.last && file.end(last) - begin <= kPieceBytes) ++last;
    const std::int64_t piece = file.end(last - 1) - begin;
    if (piece > room) {
      bytes = std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(piece));
      room = piece;
    }
    read_records(
        *file.source, begin, bytes.get(), static_cast<std::size_t>(piece), last - record,
        [&](std::int64_t i) {
          return Range{file.begin(record + i), file.end(record + i)};
        },
        [&](std::int64_t i) { return file.where(record + i); });
    for (; record < last; ++record) {
      const std::int64_t at = file.begin(record) - begin;
      use(record, {bytes.get() + at, static_cast<std::size_t>(file.end(record) - begin - at)});
    }
  }
}

std::vector<std::string> record_classes(std::string_view what, const std::vector<std::string>& paths,
                                        const std::vector<RecordFile>& files,
                                        const std::vector<RowRange>& ranges, bool skips_bad,
                                        FunctionRef<std::string(std::string_view record)> label_of) {
  std::string rows;
  for (const RowRange& range : ranges) rows += fmt::format(" {} {}", range.first, range.last);
  KeptIndex kept("classes", fmt::format("{}{}{}", what, skips_bad ? " skip" : "", rows), paths);
  if (const auto bytes = kept.of_all()) {
    IndexReader reader(*bytes);
    std::vector<std::string> names;
    for (std::int64_t left = reader.number(); left > 0 && reader.good(); --left)
      names.push_back(reader.text());
    if (reader.ended()) return names;
  }
  FoundClasses found;
  for (std::size_t i = 0; i < files.size(); ++i)
    for_each_record(files[i], ranges[i], [&](std::int64_t record, std::string_view bytes) {
      try {
        found.add(label_of(bytes));
      } catch (const Error& error) {
        if (!skips_bad || error.kind() != ErrorKind::data) throw error_at(files[i], record, error);
      }
    });
  const std::vector<std::string> names = found.names();
  IndexWriter writer;
  writer.number(std::ssize(names));
  for (const std::string& name : names) writer.text(name);
  kept.set_all(writer.bytes());
  kept.keep();
  return names;
}

std::vector<std::int64_t> kept_begins(KeptIndex& kept, std::size_t i, ByteSource& source,
                                      FunctionRef<std::vector<std::int64_t>(ByteSource& source)> find) {
  if (const auto bytes = kept.of_file(i); bytes && source.has_random_access()) {
    IndexReader reader(*bytes);
    std::vector<std::int64_t> begins = reader.numbers();
    if (reader.ended()) return begins;
  }
  std::vector<std::int64_t> begins = find(source);
  if (source.has_random_access()) {
    IndexWriter writer;
    writer.numbers(begins);
    kept.set_file(i, writer.bytes());
  }
  return begins;
}

void read_records(ByteSource& source, std::int64_t begin, void* to, std::size_t bytes, std::int64_t count,
                  FunctionRef<Range(std::int64_t i)> record_bytes,
                  FunctionRef<std::string(std::int64_t i)> where) {
  try {
    return source.read(begin, to, bytes);
  } catch (const Error&) {
    if (!source.has_random_access()) throw;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const Range own = record_bytes(i);
    try {
      source.read(own.first, static_cast<char*>(to) + (own.first - begin),
                  static_cast<std::size_t>(own.size()));
    } catch (const Error& error) {
      const std::string& place = error.where();
      const std::string within = place.starts_with(source.where()) ? place.substr(source.where().size()) : "";
      throw FileError(error.what_happened(), where(i) + within, error.advice());
    }
  }
}

std::vector<RowRange> chosen_rows(DatasetParts& parts, const std::vector<std::string>& paths,
                                  const std::vector<RecordFile>& files, const std::optional<RowRange>& rows) {
  std::vector<std::int64_t> counts;
  for (const RecordFile& file : files) counts.push_back(file.count);
  const RowRange chosen = checked_rows(rows, total_records(counts, parts.source), parts.source);
  std::vector<RowRange> ranges = rows_of_files(counts, chosen);
  add_files(parts, paths, ranges);
  return ranges;
}

}  // namespace lockstep
