// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// IDX, the format of MNIST (Y. LeCun, "The MNIST database", file formats): two zero bytes, a type, the number
// of axes, the lengths of the axes and the values, all big-endian. Images N,H,W become N,H,W,1.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>

#include "core/device.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

constexpr std::array kOptions = with_common_options(std::array{
    ParamSpec{"folder", ParamType::string, ".", "",
              "folder of both files; relative to the config file's folder", Change::place},
    ParamSpec{"images", ParamType::string, kRequired, "", "file name; also found with or without .gz",
              Change::place},
    ParamSpec{"labels", ParamType::string, "null", "", "file name; null: no labels", Change::place}});

struct IdxHeader {
  DType type = DType::u8;
  std::vector<std::int64_t> extents;

  std::int64_t records() const { return extents[0]; }
  std::int64_t values_per_record() const {
    std::int64_t product = 1;
    for (std::size_t i = 1; i < extents.size(); ++i) product *= extents[i];
    return product;
  }
  std::size_t bytes_per_record() const {
    return static_cast<std::size_t>(values_per_record()) * size_in_bytes(type);
  }
};

[[noreturn]] void fail(const std::string& path, std::string what, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), path, std::move(advice));
}

[[noreturn]] void fail_truncated(const std::string& path, std::int64_t record, std::int64_t records) {
  fail(fmt::format("{}, record {}", path, record),
       fmt::format("the file ends early, its header announces {} records: truncated?", records),
       "Copy or download the file again.");
}

/// Returns `path`, or the same name with or without ".gz" if only that exists.
std::string existing_path(const std::string& path) {
  std::error_code ignored;
  const std::string other = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path + ".gz";
  if (std::filesystem::exists(path, ignored)) return path;
  if (std::filesystem::exists(other, ignored)) return other;
  fail(path,
       fmt::format("does not exist, and neither does {}", std::filesystem::path(other).filename().string()),
       "Check the options folder, images and labels.");
}

bool type_of_code(unsigned code, DType& type) {
  switch (code) {
    case 0x08:
      type = DType::u8;
      return true;
    case 0x09:
      type = DType::i8;
      return true;
    case 0x0B:
      type = DType::i16;
      return true;
    case 0x0C:
      type = DType::i32;
      return true;
    case 0x0D:
      type = DType::f32;
      return true;
    case 0x0E:
      type = DType::f64;
      return true;
    default:
      return false;
  }
}

IdxHeader read_header(InputFile& file) {
  std::array<unsigned char, 4> magic{};
  const std::size_t got = file.read(magic.data(), magic.size());
  if (got == 0)
    fail(file.path(), "the file is empty", "Check the path; an empty file may be a failed download.");
  IdxHeader header;
  if (got < magic.size() || magic[0] != 0 || magic[1] != 0 || !type_of_code(magic[2], header.type) ||
      magic[3] == 0)
    fail(file.path(),
         fmt::format("is not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}", magic[0], magic[1],
                     magic[2], magic[3]),
         "IDX files begin with 00 00, a type (08 is uint8) and the number of axes.");
  if (magic[3] >= Shape::kMaxRank)
    fail(file.path(), fmt::format("has {} axes; at most {} can be read", magic[3], Shape::kMaxRank - 1),
         "Check the file.");
  std::int64_t bytes = static_cast<std::int64_t>(size_in_bytes(header.type));
  for (unsigned axis = 0; axis < magic[3]; ++axis) {
    std::array<unsigned char, 4> field{};
    if (!file.read_exactly(field.data(), field.size()))
      fail(file.path(), "ends within its header: truncated?", "Copy or download the file again.");
    const std::int64_t extent = std::int64_t{field[0]} << 24 | field[1] << 16 | field[2] << 8 | field[3];
    header.extents.push_back(extent);
    if (__builtin_mul_overflow(bytes, extent, &bytes)) bytes = -1;
    if (bytes < 0 || bytes > file.max_bytes())
      fail(file.path(),
           fmt::format("its header announces more data ({} along axis {}) than the file can hold: truncated?",
                       extent, axis),
           "Copy or download the file again.");
  }
  return header;
}

/// Converts big-endian values to the machine's order, in place.
void to_native(Buffer& values, std::size_t value_bytes) {
  if (value_bytes == 1 || std::endian::native == std::endian::big) return;
  unsigned char* const begin = static_cast<unsigned char*>(values.data());
  for (std::size_t i = 0; i + value_bytes <= values.size_bytes(); i += value_bytes)
    std::reverse(begin + i, begin + i + value_bytes);
}

/// Reads the records [rows.first, rows.last). If these are the last ones, checks that the file ends after
/// them.
Buffer read_records(InputFile& file, const IdxHeader& header, const RowRange& rows) {
  const std::size_t record_bytes = header.bytes_per_record();
  const auto signed_bytes = static_cast<std::int64_t>(record_bytes);
  Buffer values(cpu_device(), static_cast<std::size_t>(rows.last - rows.first) * record_bytes);
  if (!file.skip(rows.first * signed_bytes)) fail_truncated(file.path(), rows.first, header.records());
  const std::size_t got = file.read(values.data(), values.size_bytes());
  if (got < values.size_bytes())
    fail_truncated(file.path(), rows.first + static_cast<std::int64_t>(got / record_bytes), header.records());
  char extra = 0;
  if (rows.last == header.records() && file.read(&extra, 1) != 0)
    fail(file.path(),
         fmt::format("continues after the {} records that its header announces", header.records()),
         "The file may be damaged, or is of another format.");
  to_native(values, size_in_bytes(header.type));
  return values;
}

void read_labels(DatasetParts& parts, const std::string& path, const std::optional<RowRange>& rows,
                 const std::string& images_path, std::int64_t num_images) {
  InputFile file(path);
  const IdxHeader header = read_header(file);
  if (header.records() != num_images)
    fail(path,
         fmt::format("holds {} labels, but {} holds {} images", header.records(), images_path, num_images),
         "Name the images and labels of the same set.");
  if (header.type == DType::f32 || header.type == DType::f64)
    fail(path, fmt::format("holds labels of type {}; class numbers are integers", name_of(header.type)),
         "Check the option labels.");
  const RowRange range = checked_rows(rows, header.records(), path);
  const Buffer values = read_records(file, header, range);
  parts.num_label_columns = header.values_per_record();
  const auto copy = [&](auto all) { parts.label_indices.assign(all.begin(), all.end()); };
  switch (header.type) {
    case DType::u8:
      return copy(values.as<std::uint8_t>());
    case DType::i8:
      return copy(values.as<std::int8_t>());
    case DType::i16:
      return copy(values.as<std::int16_t>());
    default:
      return copy(values.as<std::int32_t>());
  }
}

/// Reads features; `rows` null: all. Returns the number of records in the file.
std::int64_t read_images(DatasetParts& parts, const std::string& path, const std::optional<RowRange>& rows) {
  InputFile file(path);
  const IdxHeader header = read_header(file);
  if (header.records() == 0) fail(path, "holds no records", "Check the path.");
  const RowRange range = checked_rows(rows, header.records(), path);
  parts.source = path;
  parts.record_word = "record";
  parts.first_record = range.first;
  parts.size = range.last - range.first;
  std::vector<std::int64_t> sample(header.extents.begin() + 1, header.extents.end());
  if (sample.size() == 2 || sample.empty()) sample.push_back(1);
  parts.feature_shape = Shape(std::span<const std::int64_t>(sample));
  parts.feature_dtype = header.type;
  parts.features = read_records(file, header, range);
  return header.records();
}

std::unique_ptr<Dataset> make(const Params& params, const std::string& base_directory) {
  const std::filesystem::path folder = resolved_path(params.string("folder"), base_directory);
  const std::optional<RowRange> rows = rows_option(params);
  const std::string images = existing_path((folder / params.string("images")).string());
  DatasetParts parts;
  parts.transform = transform_options(params);
  const std::int64_t num_images = read_images(parts, images, rows);
  if (params.has("labels"))
    read_labels(parts, existing_path((folder / params.string("labels")).string()), rows, images, num_images);
  return std::make_unique<Dataset>(std::move(parts));
}

std::vector<std::string> files(const Params& params, const std::string& base_directory) {
  const std::filesystem::path folder = resolved_path(params.string("folder"), base_directory);
  std::vector<std::string> paths;
  for (const char* option : {"images", "labels"})
    if (params.has(option)) paths.push_back(existing_path((folder / params.string(option)).string()));
  return paths;
}

/// The labels are another file, which a request does not name.
std::unique_ptr<Dataset> make_input(const Params& params, const InputRequest& request) {
  DatasetParts parts;
  parts.transform = transform_options(params);
  read_images(parts, existing_path(only_file(request, "idx")), std::nullopt);
  check_feature_shape(parts.feature_shape, request.feature_shape, parts.source);
  return std::make_unique<Dataset>(std::move(parts));
}

}  // namespace

ReaderEntry idx_reader() {
  return {"idx",      "MNIST's format: images and labels in two files, plain or gzip",
          kOptions,   make,
          make_input, nullptr,
          false,      files};
}

}  // namespace lockstep
