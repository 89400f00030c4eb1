// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of fixed-length records, plain or gzip, for example CIFAR-10's binary version: a header, records of
// numbers at fixed places, a footer.
#include <algorithm>

#include "core/error.h"
#include "core/sizes.h"
#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/record_store.h"
#include "data/stored_numbers.h"
#include "io/fixed_length_records.h"

namespace lockstep {

namespace {

struct Options {
  std::int64_t header_bytes = 0, footer_bytes = 0, features_offset = 0, labels_count = 0;
  std::optional<std::int64_t> record_bytes, hop_bytes, labels_offset;
  std::vector<std::int64_t> shape;
  DType dtype{}, labels_dtype{};
  bool channels_first = false, big_endian = false;
};
constexpr std::array kOptions = with_store_options(std::array{
    path_spec("the file, plain or gzip; a list, a pattern (part*.bin) or a folder of files is read as one; "
              "relative to the config file's folder"),
    option<&Options::header_bytes>("header_bytes", "0", between(0, 1e12, "bytes"), "before the first record"),
    option<&Options::record_bytes>("record_bytes", "null", between(1, 1e12, "bytes").or_null(),
                                   "length of a record; null: up to the end of its last field"),
    option<&Options::hop_bytes>("hop_bytes", "null", between(1, 1e12, "bytes").or_null(),
                                "from the start of a record to that of the next one; null: record_bytes"),
    option<&Options::footer_bytes>("footer_bytes", "0", between(0, 1e12, "bytes"), "after the last record"),
    option<&Options::features_offset>("features_offset", "0", between(0, 1e12, "bytes"),
                                      "from the start of the record to the features"),
    option<&Options::shape>("shape", kRequired, between(1, 1e12).note("as in the file"), "shape of a sample"),
    option_as<stored_type, &Options::dtype>(ParamType::string, "dtype", "uint8", kStoredTypes,
                                            "type of the features"),
    layout_option<&Options::channels_first>(),
    option<&Options::labels_offset>("labels_offset", "null", between(0, 1e12, "bytes").or_null(),
                                    "from the start of the record to the labels; null: no labels"),
    option_as<stored_type, &Options::labels_dtype>(ParamType::string, "labels_dtype", "uint8", kStoredTypes,
                                                   "integers are class indices, floats targets"),
    option<&Options::labels_count>("labels_count", "1", between(1, 1e9), "labels per sample"),
    option_as<is_second_choice, &Options::big_endian>(ParamType::string, "byte_order", "little",
                                                      one_of("little|big"), "of features and labels")});

/// What lies where in a record.
struct RecordForm {
  StoredType type, label_type;
  std::int64_t features_offset = 0, values = 0, channels_first = 0;
  std::int64_t labels_offset = -1, label_columns = 0;  ///< -1: no labels
};

class BinaryStore final : public RecordStore {
 public:
  BinaryStore(const RecordForm& form, std::vector<RecordFile> files, const std::vector<RowRange>& rows)
      : RecordStore(std::move(files), rows,
                    form.values * static_cast<std::int64_t>(size_in_bytes(form.type.type)),
                    form.label_columns),
        form_(form) {}

 protected:
  void decode(std::string_view record, const SampleRoom& to) const override {
    convert_features(record.data() + form_.features_offset, form_.type, form_.values, form_.channels_first,
                     to.features);
    if (form_.label_columns == 0) return;
    std::vector<std::int64_t> aligned(static_cast<std::size_t>(form_.label_columns));
    convert_features(record.data() + form_.labels_offset, form_.label_type, form_.label_columns, 0,
                     aligned.data());
    convert_labels(aligned.data(), form_.label_type.type, form_.label_columns, to,
                   [](std::int64_t) { return std::string(); });
  }

 private:
  const RecordForm form_;
};

/// Adds the field [offset, offset + count values) to the end of the record.
std::int64_t end_of_field(const Params& params, std::string_view option, std::int64_t offset,
                          std::int64_t count, DType type) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto bytes = product_up_to(kMost, {count, static_cast<std::int64_t>(size_in_bytes(type))});
  if (!bytes) throw params.error(option, "makes records of more than 2^40 bytes");
  return offset + *bytes;
}

class BinaryFiles {
 public:
  BinaryFiles(const Params& params, std::vector<std::string> paths, bool labels) : paths_(std::move(paths)) {
    parts_.source = name_of_files(paths_);
    parts_.record_word = "record";
    parts_.transform = transform_options(params);
    const auto o = params.as<Options>();
    form_.type = {o.dtype, o.big_endian};
    form_.label_type = {o.labels_dtype, o.big_endian};
    form_.features_offset = o.features_offset;
    const std::string_view shape = option_name<&Options::shape>(params);
    parts_.feature_shape = sample_shape(o.shape, o.channels_first, params.where(shape));
    parts_.feature_dtype = form_.type.type;
    form_.values = parts_.feature_shape.num_elements();
    form_.channels_first = o.channels_first ? o.shape.front() : 0;
    std::int64_t end = end_of_field(params, shape, form_.features_offset, form_.values, form_.type.type);
    if (labels && o.labels_offset) {
      form_.labels_offset = *o.labels_offset;
      form_.label_columns = parts_.num_label_columns = o.labels_count;
      parts_.label_kind = label_kind_of(form_.label_type.type);
    }
    if (o.labels_offset)
      end = std::max(end, end_of_field(params, option_name<&Options::labels_count>(params), *o.labels_offset,
                                       o.labels_count, o.labels_dtype));
    records_ = {.record_bytes = o.record_bytes.value_or(end),
                .header_bytes = o.header_bytes,
                .footer_bytes = o.footer_bytes,
                .hop_bytes = o.hop_bytes.value_or(0)};
    if (records_.record_bytes < end)
      throw params.error(
          option_name<&Options::record_bytes>(params),
          fmt::format("is {}, but the fields of a record end at byte {}", records_.record_bytes, end),
          "Check shape, dtype and the offsets.");
  }

  DatasetParts parts(const std::optional<RowRange>& rows) && {
    std::vector<RecordFile> files;
    for (const std::string& path : paths_) files.push_back(open(path));
    const std::vector<RowRange> ranges = chosen_rows(parts_, paths_, files, rows);
    parts_.store = std::make_shared<BinaryStore>(form_, std::move(files), ranges);
    return std::move(parts_);
  }

 private:
  RecordFile open(const std::string& path) const {
    RecordFile file{.source = plain_or_gzip_bytes(path)};
    file.count = count_records(*file.source, records_);
    file.first_byte = records_.header_bytes;
    file.hop_bytes = records_.hop();
    file.record_bytes = records_.record_bytes;
    return file;
  }

  const std::vector<std::string> paths_;
  FixedLengthRecords records_;
  RecordForm form_;
  DatasetParts parts_;
};

DatasetParts make(const Params& params, const std::string& base_directory) {
  return BinaryFiles(params, files_of_path(params, base_directory), true).parts(rows_option(params));
}

DatasetParts make_input(const Params& params, const InputRequest& request) {
  DatasetParts parts = BinaryFiles(params, request.paths, request.labels).parts(std::nullopt);
  check_feature_shape(parts.feature_shape, request.feature_shape, parts.source);
  return parts;
}

}  // namespace

extern const ReaderEntry kBinaryReader = {"binary",   "fixed-length records of numbers, plain or gzip",
                                          kOptions,   make,
                                          make_input, nullptr,
                                          false,      files_of_path};

}  // namespace lockstep
