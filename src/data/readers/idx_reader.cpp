// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// IDX, the format of MNIST (Y. LeCun, "The MNIST database", file formats): two zero bytes, a type, the number
// of axes, the lengths of the axes and the values, all big-endian. Images N,H,W become N,H,W,1.
#include <array>
#include <filesystem>

#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/stored_numbers.h"
#include "io/byte_source.h"

namespace lockstep {

namespace {

struct Options {
  std::string folder, images;
  std::optional<std::string> labels;
};
constexpr std::array kOptions = with_store_options(std::array{
    option<&Options::folder>("folder", ".", {}, "folder of both files; relative to the config file's folder",
                             Change::place),
    option<&Options::images>("images", kRequired, {}, "file name; also found with or without .gz",
                             Change::place),
    option<&Options::labels>("labels", "null", {}, "file name; null: no labels", Change::place)});

struct IdxHeader {
  DType type = DType::u8;
  std::vector<std::int64_t> extents;
  std::int64_t data_offset = 0;  ///< of the first value

  std::int64_t records() const { return extents[0]; }
  std::int64_t values_per_record() const {
    std::int64_t product = 1;
    for (std::size_t i = 1; i < extents.size(); ++i) product *= extents[i];
    return product;
  }
  std::int64_t bytes_per_record() const {
    return values_per_record() * static_cast<std::int64_t>(size_in_bytes(type));
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

IdxHeader read_header(ByteSource& file) {
  const std::string& path = file.where();
  std::array<unsigned char, 4> magic{};
  const std::size_t got = file.read_some(0, magic.data(), magic.size());
  if (got == 0) fail(path, "the file is empty", "Check the path; an empty file may be a failed download.");
  IdxHeader header;
  if (got < magic.size() || magic[0] != 0 || magic[1] != 0 || !type_of_code(magic[2], header.type) ||
      magic[3] == 0)
    fail(path,
         fmt::format("is not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}", magic[0], magic[1],
                     magic[2], magic[3]),
         "IDX files begin with 00 00, a type (08 is uint8) and the number of axes.");
  if (magic[3] >= Shape::kMaxRank)
    fail(path, fmt::format("has {} axes; at most {} can be read", magic[3], Shape::kMaxRank - 1),
         "Check the file.");
  std::int64_t bytes = static_cast<std::int64_t>(size_in_bytes(header.type));
  header.data_offset = magic.size();
  for (unsigned axis = 0; axis < magic[3]; ++axis) {
    std::array<unsigned char, 4> field{};
    if (file.read_some(header.data_offset, field.data(), field.size()) < field.size())
      fail(path, "ends within its header: truncated?", "Copy or download the file again.");
    header.data_offset += static_cast<std::int64_t>(field.size());
    const std::int64_t extent = std::int64_t{field[0]} << 24 | field[1] << 16 | field[2] << 8 | field[3];
    header.extents.push_back(extent);
    if (__builtin_mul_overflow(bytes, extent, &bytes)) bytes = -1;
    if (bytes < 0 || bytes > file.max_bytes())
      fail(path,
           fmt::format("its header announces more data ({} along axis {}) than the file can hold: truncated?",
                       extent, axis),
           "Copy or download the file again.");
  }
  return header;
}

/// The records of a file that are samples.
class IdxRecords {
 public:
  explicit IdxRecords(const std::string& path)
      : source_(plain_or_gzip_bytes(path)), header_(read_header(*source_)) {}

  const std::string& path() const { return source_->where(); }
  const IdxHeader& header() const { return header_; }
  const RowRange& rows() const { return rows_; }
  bool has_random_access() const { return source_->has_random_access(); }

  void choose(const std::optional<RowRange>& rows) {
    rows_ = checked_rows(rows, header_.records(), path());
    if (!has_random_access() || rows_.last < header_.records()) return;
    const std::int64_t room = source_->max_bytes() - header_.data_offset;
    if (room < header_.records() * header_.bytes_per_record())
      fail_truncated(path(), room / header_.bytes_per_record(), header_.records());
    check_end();
  }

  /// Samples [first, first + count), in the machine's byte order.
  void read(std::int64_t first, std::int64_t count, void* to) const {
    const std::int64_t width = header_.bytes_per_record(), record = rows_.first + first;
    const auto bytes = static_cast<std::size_t>(count * width);
    if (const std::size_t got = source_->read_some(header_.data_offset + record * width, to, bytes);
        got < bytes)
      fail_truncated(path(), record + static_cast<std::int64_t>(got) / width, header_.records());
    if (record + count == header_.records()) check_end();
    to_native(to, count * header_.values_per_record(), {header_.type, true});
  }

 private:
  /// What is unpacked is checked against its checksum here.
  void check_end() const {
    char extra = 0;
    if (source_->read_some(header_.data_offset + header_.records() * header_.bytes_per_record(), &extra, 1) !=
        0)
      fail(path(), fmt::format("continues after the {} records that its header announces", header_.records()),
           "The file may be damaged, or is of another format.");
  }

  std::shared_ptr<ByteSource> source_;
  IdxHeader header_;
  RowRange rows_{0, 0};
};

class IdxStore final : public SampleStore {
 public:
  IdxStore(IdxRecords images, std::optional<IdxRecords> labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    images_.read(first, count, to.features);
    if (!labels_) return;
    const IdxHeader& header = labels_->header();
    std::vector<std::int64_t> scratch(
        static_cast<std::size_t>(count * header.values_per_record()) * size_in_bytes(header.type) / 8 + 1);
    labels_->read(first, count, scratch.data());
    convert_labels(scratch.data(), header.type, count * header.values_per_record(), to, [&](std::int64_t i) {
      return fmt::format("{}, record {}", labels_->path(),
                         labels_->rows().first + first + i / header.values_per_record());
    });
  }
  bool has_random_access() const override {
    return images_.has_random_access() && (!labels_ || labels_->has_random_access());
  }

 private:
  const IdxRecords images_;
  const std::optional<IdxRecords> labels_;
};

/// Opens the features; `rows` null: all.
IdxRecords open_images(DatasetParts& parts, const std::string& path, const std::optional<RowRange>& rows) {
  IdxRecords images(path);
  const IdxHeader& header = images.header();
  if (header.records() == 0) fail(path, "holds no records", "Check the path.");
  images.choose(rows);
  parts.source = path;
  parts.record_word = "record";
  parts.first_record = images.rows().first;
  parts.size = images.rows().last - images.rows().first;
  std::vector<std::int64_t> sample(header.extents.begin() + 1, header.extents.end());
  if (sample.size() == 2 || sample.empty()) sample.push_back(1);
  parts.feature_shape = Shape(std::span<const std::int64_t>(sample));
  parts.feature_dtype = header.type;
  return images;
}

IdxRecords open_labels(DatasetParts& parts, const std::string& path, const std::optional<RowRange>& rows,
                       const IdxRecords& images) {
  IdxRecords labels(path);
  const IdxHeader& header = labels.header();
  if (header.records() != images.header().records())
    fail(path,
         fmt::format("holds {} labels, but {} holds {} images", header.records(), images.path(),
                     images.header().records()),
         "Name the images and labels of the same set.");
  if (header.type == DType::f32 || header.type == DType::f64)
    fail(path, fmt::format("holds labels of type {}; class numbers are integers", name_of(header.type)),
         "Check the option labels.");
  labels.choose(rows);
  parts.num_label_columns = header.values_per_record();
  parts.label_kind = LabelKind::indices;
  return labels;
}

/// The images, and the labels if there are some.
std::vector<std::string> files(const Params& params, const std::string& base_directory) {
  const auto options = params.as<Options>();
  const std::filesystem::path folder = resolved_path(options.folder, base_directory);
  std::vector<std::string> paths{existing_path((folder / options.images).string())};
  if (options.labels) paths.push_back(existing_path((folder / *options.labels).string()));
  return paths;
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  const std::optional<RowRange> rows = rows_option(params);
  const std::vector<std::string> paths = files(params, base_directory);
  DatasetParts parts;
  parts.transform = transform_options(params);
  IdxRecords opened = open_images(parts, paths.front(), rows);
  std::optional<IdxRecords> labels;
  if (paths.size() > 1) labels = open_labels(parts, paths.back(), rows, opened);
  parts.store = std::make_shared<IdxStore>(std::move(opened), std::move(labels));
  return parts;
}

/// The labels are another file, which a request does not name.
DatasetParts make_input(const Params& params, const InputRequest& request) {
  DatasetParts parts;
  parts.transform = transform_options(params);
  IdxRecords images = open_images(parts, existing_path(only_file(request, "idx")), std::nullopt);
  check_feature_shape(parts.feature_shape, request.feature_shape, parts.source);
  parts.store = std::make_shared<IdxStore>(std::move(images), std::nullopt);
  return parts;
}

}  // namespace

extern const ReaderEntry kIdxReader = {
    "idx",      "MNIST's format: images and labels in two files, plain or gzip",
    kOptions,   make,
    make_input, nullptr,
    false,      files};

}  // namespace lockstep
