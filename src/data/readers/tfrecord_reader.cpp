// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// TFRecord files of tf.Example: one record is one sample, of numbers or an encoded image. Lengths are
// followed once to find all records; data are checked and decoded where they are used.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/in_parallel.h"
#include "core/sizes.h"
#include "data/data_files.h"
#include "data/kept_index.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/missing_numbers.h"
#include "data/readers/record_parts.h"
#include "data/readers/tfrecord_store.h"
#include "io/tfrecord_file.h"

namespace lockstep {

namespace {

using Kind = ExampleFeature::Kind;

struct Options {
  std::string features;
  std::optional<std::string> labels;
  std::optional<std::vector<std::string>> classes;
  bool is_image = false, big_endian = false, channels_first = false;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<DType> dtype;
  TfrecordCompression compression{};
};
std::optional<DType> type_or_null(const Params& params, const ParamSpec& option) {
  return params.has(option.name) ? std::optional(stored_type(params, option)) : std::nullopt;
}
constexpr std::array kOptions = with_store_options(with_image_options(with_sequence_options(std::array{
    path_spec("the file; a list, a pattern (part*.tfrecord) or a folder of files is read as one; relative to "
              "the config file's folder"),
    option<&Options::features>("features", kRequired, {}, "name of a feature: image/encoded"),
    option<&Options::labels>(
        "labels", "null", {},
        "name of a feature: int64 are class indices, float targets, bytes the name of a class; null: none"),
    option_as<class_list, &Options::classes>(ParamType::strings, "classes", "null", {},
                                             "names of the classes, in the order of their indices, if labels "
                                             "are bytes; null or auto: all texts of "
                                             "the training set, sorted by their bytes"),
    missing_option(
        "a record without the feature, or with an empty one, is an error, or all its values are this "
        "number; not for features of bytes"),
    option_as<is_second_choice, &Options::is_image>(
        ParamType::string, "encoding", "none", one_of("none|image"),
        "of features of bytes. none: numbers; image: a JPEG or PNG file, which size, channels, resize, fit "
        "and exif_orientation are about"),
    option<&Options::shape>("shape", "null", between(1, 1e12).note("as in the file"),
                            "shape of a sample; null: one axis"),
    option_as<type_or_null, &Options::dtype>(
        ParamType::string, "dtype", "null", kStoredTypes,
        "type of the numbers that lie in features of bytes (null: uint8), or as which int64 is kept"),
    option_as<is_second_choice, &Options::big_endian>(ParamType::string, "byte_order", "little",
                                                      one_of("little|big"),
                                                      "of the numbers in features of bytes"),
    layout_option<&Options::channels_first>(),
    option<&Options::compression>("compression", "auto", one_of("auto|none|gzip|zlib"),
                                  "of the files; auto: the first bytes decide")})));

[[noreturn]] void fail(std::string what, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), {}, std::move(advice));
}

/// Finds the records of all files, and makes the form of samples from the first record.
class TfrecordFiles {
 public:
  /// The classes that an option lists.
  static std::optional<std::vector<std::string>> listed_classes(const Params& params) {
    return params.as<Options>().classes;
  }

  TfrecordFiles(const Params& params, std::vector<std::string> paths)
      : params_(params), o_(params.as<Options>()), paths_(std::move(paths)), files_(paths_.size()) {
    parts_.source = name_of_files(paths_);
    parts_.record_word = "record";
    parts_.transform = transform_options(params);
    form_.features_name = o_.features;
    form_.sequence = SequenceRows::from(params);
    form_.missing = MissingNumbers(params, {form_.features_name}).of(form_.features_name);
    if (form_.missing && form_.sequence)
      throw params.error("missing", "is given with pad_to, where samples are sequences",
                         "Leave it out: min_length: 0 takes empty sequences.");
    if (form_.sequence)
      for (const char* const option : {"shape", "layout", "encoding"})
        if (params.given(option))
          throw params.error(option, "is given with pad_to, where samples are sequences of numbers",
                             "Leave it out.");
    KeptIndex kept("tfrecord", params.string(option_name<&Options::compression>(params)), paths_);
    in_parallel(reader_threads(params), static_cast<std::int64_t>(paths_.size()),
                [&](std::int64_t i) { find_records(kept, static_cast<std::size_t>(i)); });
    kept.keep();
  }

  /// find_classes(): those of labels of bytes.
  DatasetParts parts(const std::optional<RowRange>& rows, bool labels, bool labels_may_miss,
                     FunctionRef<std::vector<std::string>(const TfrecordFiles& self)> find_classes) && {
    const std::vector<RowRange> ranges = chosen_rows(parts_, paths_, files_, rows);
    if (labels) form_.labels_name = o_.labels;
    const auto first = std::ranges::find_if(files_, [](const RecordFile& file) { return file.count > 0; });
    if (first == files_.end())
      throw Error(ErrorKind::data, "holds no records", parts_.source, "Check the path.");
    look_at_first_good(params_, first->count,
                       [&](std::int64_t record) { begin(*first, record, labels_may_miss); });
    if (form_.label_kind == Kind::bytes) {
      form_.classes = TextClasses(o_.classes ? *o_.classes : find_classes(*this));
      parts_.class_names = form_.classes.names();
    }
    parts_.store = make_tfrecord_store(form_, std::move(files_), ranges);
    return std::move(parts_);
  }

  /// All texts that labels have in the chosen records.
  std::vector<std::string> classes(const std::optional<RowRange>& rows) const {
    DatasetParts chosen;
    chosen.source = parts_.source;
    return record_classes("tfrecord " + *o_.labels, paths_, files_, chosen_rows(chosen, paths_, files_, rows),
                          params_.as<BadRecordOptions>().skip, [&](std::string_view record) {
                            const ExampleFeature label = needed_feature(tfrecord_data(record), *o_.labels);
                            form_.check_kind(label, Kind::bytes, *o_.labels);
                            return std::string(only_bytes(label, *o_.labels));
                          });
  }

 private:
  void find_records(KeptIndex& kept, std::size_t i) {
    RecordFile& file = files_[i];
    file.source = open_tfrecord_file(paths_[i], o_.compression);
    file.begins =
        kept_begins(kept, i, *file.source, [](ByteSource& source) { return find_tfrecords(source); });
    file.count = static_cast<std::int64_t>(file.begins.size()) - 1;
  }

  void begin(const RecordFile& file, std::int64_t record, bool labels_may_miss) {
    const std::int64_t at = file.begin(record);
    std::string frame(static_cast<std::size_t>(file.end(record) - at), '\0');
    file.source->read(at, frame.data(), frame.size());
    try {
      const std::string_view example = tfrecord_data(frame);
      if (labels_may_miss && form_.labels_name && !find_feature(example, *form_.labels_name))
        form_.labels_name.reset();
      const auto found = find_feature(example, form_.features_name);
      if (form_.missing && (!found || found->kind == Kind::empty || found->count() == 0) &&
          record + 1 < std::min(file.count, kFirstRecords))
        return begin(file, record + 1, labels_may_miss);  // the next one may tell its form
      const ExampleFeature features = needed_feature(example, form_.features_name);
      if (form_.sequence && features.kind == Kind::empty && record + 1 < std::min(file.count, kFirstRecords))
        return begin(file, record + 1, labels_may_miss);  // the next one may tell its kind
      set_features(features);
      if (form_.labels_name) set_labels(needed_feature(example, *form_.labels_name));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      const std::string within = error.where().empty() ? "" : ", " + error.where();
      throw Error(error.kind(), error.what_happened(), file.where(record) + within, error.advice());
    }
  }

  void set_image(const ExampleFeature& feature) {
    for (const char* option : {"shape", "dtype", "byte_order", "layout"})
      if (params_.given(option))
        throw params_.error(option, "is about numbers, but encoding is image",
                            "Leave it out; the option size says how large samples are.");
    if (feature.kind != Kind::bytes)
      fail(fmt::format("feature '{}' is a list of {}", form_.features_name, name_of(feature.kind)),
           "An encoded image is one value of bytes. For numbers write encoding: none.");
    const std::string_view file = only_bytes(feature, form_.features_name);
    form_.image = image_form(params_);
    if (form_.image->shape.rank() == 0) {
      const auto name = [&] { return fmt::format("feature '{}'", form_.features_name); };
      ImageWork work;
      form_.image->shape = work.shape_of(*form_.image, std::as_bytes(std::span(file)), name);
    }
    form_.type.type = form_.image->dtype();
    form_.values = form_.image->shape.num_elements();
    parts_.feature_shape = form_.image->shape;
    parts_.feature_dtype = form_.image->dtype();
  }

  void check_no_image_options() const {
    for (const ParamSpec& option : kImageOptions)
      if (params_.given(option.name))
        throw params_.error(option.name, "is about encoded images, but encoding is none",
                            "Write encoding: image if the feature holds JPEG or PNG files.");
  }

  void set_features(const ExampleFeature& feature) {
    form_.kind = feature.kind;
    if (form_.missing && feature.kind == Kind::bytes)
      throw params_.error("missing", "is about numbers, but the feature holds bytes", "Leave it out.");
    if (form_.missing && feature.kind == Kind::integers && *form_.missing != std::trunc(*form_.missing))
      throw params_.error("missing", fmt::format("is {}, but the feature holds int64", *form_.missing),
                          "Give a whole number.");
    if (o_.is_image) return set_image(feature);
    check_no_image_options();
    const std::optional<DType>& dtype = o_.dtype;
    if (form_.sequence) return set_sequence(feature);
    if (feature.kind == Kind::empty)
      fail(fmt::format("feature '{}' is empty", form_.features_name), "Every sample needs a value.");
    std::int64_t values = feature.count();
    form_.type.type = DType::f32;
    if (feature.kind == Kind::bytes) {
      form_.type = {dtype.value_or(DType::u8), o_.big_endian};
      const std::string_view bytes = only_bytes(feature, form_.features_name);
      const std::size_t value_bytes = size_in_bytes(form_.type.type);
      if (bytes.size() % value_bytes != 0)
        fail(fmt::format("feature '{}' has {} bytes, which are no whole number of {}", form_.features_name,
                         bytes.size(), name_of(form_.type.type)),
             "Check the option dtype.");
      values = static_cast<std::int64_t>(bytes.size() / value_bytes);
    } else if (feature.kind == Kind::integers) {
      form_.type.type = dtype.value_or(DType::i64);
      if (label_kind_of(form_.type.type) != LabelKind::indices)
        throw params_.error("dtype", "is a floating-point type, but the feature holds int64",
                            "Features become float32 when a batch is made; choose an integer type.");
    } else if (dtype.value_or(DType::f32) != DType::f32) {
      throw params_.error("dtype", "must be float32 or null: the feature holds floats");
    }
    set_shape(values);
  }

  /// Sequences are kept as float32.
  void set_sequence(const ExampleFeature& feature) {
    if (feature.kind != Kind::bytes && o_.dtype)
      throw params_.error("dtype", "is about numbers in features of bytes; other sequences become float32",
                          "Leave it out.");
    form_.type = {o_.dtype.value_or(DType::u8), o_.big_endian};
    form_.sequence->set_step(parts_);
    form_.values = form_.sequence->sample_values();
  }

  void set_shape(std::int64_t values) {
    const std::vector<std::int64_t> extents = o_.shape.value_or(std::vector{values});
    if (const auto needed = product_up_to(kMaxExtentProduct, extents); needed != values)
      fail(fmt::format("feature '{}' has {} values, but the shape {} needs {}", form_.features_name, values,
                       fmt::join(extents, "x"), needed ? std::to_string(*needed) : "more than 2^59"),
           "Correct the option shape or dtype. If it holds JPEG or PNG files, write encoding: image.");
    parts_.feature_shape = sample_shape(extents, o_.channels_first, "");
    parts_.feature_dtype = form_.type.type;
    form_.values = values;
    form_.channels_first = o_.channels_first ? extents[0] : 0;
  }

  void set_labels(const ExampleFeature& feature) {
    form_.label_kind = feature.kind;
    form_.label_columns = feature.count();
    if (form_.label_columns == 0)
      fail(fmt::format("feature '{}' is empty", *form_.labels_name), "Every sample needs a label.");
    if (feature.kind == Kind::bytes) only_bytes(feature, *form_.labels_name);
    if (o_.classes && feature.kind != Kind::bytes)
      throw params_.error("classes",
                          fmt::format("is given, but the labels '{}' are a list of {}", *form_.labels_name,
                                      name_of(feature.kind)),
                          "Leave it out, or name the classes of numbers by class_names.");
    parts_.num_label_columns = form_.label_columns;
    parts_.label_kind = feature.kind == Kind::floats ? LabelKind::rows : LabelKind::indices;
  }

  const Params& params_;
  const Options o_;
  const std::vector<std::string> paths_;
  std::vector<RecordFile> files_;
  ExampleForm form_;
  DatasetParts parts_;
};

using Parts = RecordParts<TfrecordFiles>;

}  // namespace

extern const ReaderEntry kTfrecordReader = {.name = "tfrecord",
                                            .help = "TFRecord files of tf.Example, plain, gzip or zlib",
                                            .table = kOptions,
                                            .make = Parts::make,
                                            .make_input = Parts::make_input,
                                            .files = files_of_path,
                                            .make_evaluation = Parts::make_evaluation,
                                            .make_as_trained = Parts::make_as_trained};

}  // namespace lockstep
