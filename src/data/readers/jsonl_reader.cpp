// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON lines (jsonlines.org), plain or gzip: each line is an object, one sample. Lines are found once; they
// are parsed where they are used.
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/in_parallel.h"
#include "core/sizes.h"
#include "data/data_files.h"
#include "data/kept_index.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/json_lines.h"
#include "data/readers/missing_numbers.h"
#include "data/readers/record_parts.h"
#include "data/readers/record_store.h"
#include "data/readers/sequence_rows.h"
#include "data/readers/text_classes.h"
#include "data/stored_numbers.h"
#include "io/json_fields.h"

namespace lockstep {

namespace {

struct Options {
  std::vector<std::string> features;
  std::optional<std::string> labels;
  std::optional<std::vector<std::string>> classes;
  std::optional<std::vector<std::int64_t>> shape;
  bool channels_first = false;
};
constexpr std::array kOptions = with_store_options(with_sequence_options(std::array{
    path_spec("the file, plain or gzip; a list, a pattern (part*.jsonl) or a folder of files is read as one; "
              "relative to the config file's folder"),
    option<&Options::features>(
        "features", kRequired, {},
        "field: a number, or numbers in nested arrays; of several fields the numbers are joined. With "
        "pad_to: a list of steps, or a text"),
    option<&Options::labels>(
        "labels", "null", {},
        "field: integers are class indices, other numbers targets, a text the name of a class; null: none"),
    option_as<class_list, &Options::classes>(ParamType::strings, "classes", "null", {},
                                             "names of the classes, in the order of their indices, if labels "
                                             "are texts; null or auto: all texts of "
                                             "the training set, sorted by their bytes"),
    missing_option(
        "a feature that is null or NaN, or that a line does not have, is an error, or this number; or "
        "a map of fields to numbers"),
    option<&Options::shape>("shape", "null", between(1, 1e12).note("as in the file"),
                            "shape of a sample; null: that of the nested arrays"),
    layout_option<&Options::channels_first>()}));

[[noreturn]] void fail(std::string what, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), {}, std::move(advice));
}

struct JsonForm {
  std::vector<std::string> features;
  std::optional<std::string> labels;
  MissingNumbers missing;
  TextClasses classes;
  bool text_labels = false;
  std::vector<std::vector<std::int64_t>> extents;  ///< of the nested arrays of each field of features
  std::int64_t values = 0, channels_first = 0, label_columns = 0;
  LabelKind label_kind = LabelKind::none;
  std::optional<SequenceRows> sequence;    ///< the only feature is a sequence
  bool text = false;                       ///< of the bytes of a text
  std::vector<std::int64_t> step_extents;  ///< of it

  /// Names the fields of features and, at the end, of the label.
  void set_names(std::vector<JsonField>& fields) const {
    fields.resize(features.size() + (labels ? 1 : 0));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string& name = i < features.size() ? features[i] : *labels;
      fields[i].name = name;
      fields[i].takes_null = i < features.size() && missing.of(name).has_value();
    }
  }
};

void need_numbers(const JsonField& field) {
  if (!field.found)
    fail(fmt::format("has no field '{}'", field.name),
         "Every line needs all fields; the option missing says which number takes the place of one.");
  if (field.is_null) fail(fmt::format("field '{}' is null", field.name), "A sequence is a list of steps.");
  if (field.is_text)
    fail(fmt::format("field '{}' is a text", field.name),
         "Features are numbers. To tokenize texts, give pad_to, the most bytes of one.");
}

float as_float(double value, std::string_view name) {
  const auto converted = static_cast<float>(value);
  if (!std::isfinite(converted))
    fail(fmt::format("field '{}': {:g} is beyond float32", name, value), "Remove or repair the line.");
  return converted;
}

/// Adds the numbers of a field, and what takes the place of null.
void add_numbers(const JsonField& field, const MissingNumbers& missing, std::vector<float>& values) {
  const float fill = missing.of(field.name).value_or(0);
  for (const double value : field.numbers)
    values.push_back(std::isnan(value) ? fill : as_float(value, field.name));
}

void check_text_label(const JsonField& field, bool wanted) {
  if (field.is_text != wanted)
    fail(fmt::format("field '{}' is {}", field.name, field.is_text ? "a text" : "no text"),
         "Labels of a data set are all names of classes, or all numbers.");
}

/// Adds the values of a sequence of steps of the form's, or the bytes of a text.
void add_steps(const JsonField& field, const JsonForm& form, std::vector<float>& values) {
  if (field.found && field.is_text != form.text)
    fail(fmt::format("field '{}' is {}", field.name, form.text ? "no text" : "a text"),
         "In all lines it is a text, or in all lines a list of steps.");
  if (form.text && field.found) {
    for (const char byte : field.text) values.push_back(static_cast<float>(static_cast<unsigned char>(byte)));
    return;
  }
  need_numbers(field);
  if (field.extents.empty())
    fail(fmt::format("field '{}' is one number, no sequence", field.name), "Write a list of steps: [3, 1].");
  const auto steps = std::span(field.extents).subspan(1);
  if (!field.numbers.empty() && !std::ranges::equal(steps, form.step_extents))
    fail(fmt::format("field '{}' has steps of the shape [{}], but [{}] in the first line", field.name,
                     fmt::join(steps, ", "), fmt::join(form.step_extents, ", ")),
         "All steps of all sequences have the same shape.");
  add_numbers(field, form.missing, values);
}

bool is_missing(const JsonField& field) { return !field.found || field.is_null; }

class JsonlStore final : public RecordStore {
 public:
  JsonlStore(JsonForm form, std::vector<RecordFile> files, const std::vector<RowRange>& rows)
      : RecordStore(std::move(files), rows, form.values * 4, form.label_columns), form_(std::move(form)) {}

 protected:
  void decode(std::string_view record, const SampleRoom& to) const override {
    thread_local std::vector<JsonField> fields;  // keep their memory
    form_.set_names(fields);
    read_json_fields(without_line_end(record), fields);
    thread_local std::vector<float> values;
    values.clear();
    if (form_.sequence) {
      add_steps(fields[0], form_, values);
      form_.sequence->write(values, fields[0].name, to.features);
      if (form_.labels) read_label(fields.back(), to);
      return;
    }
    for (std::size_t i = 0; i < form_.features.size(); ++i) {
      if (const auto fill = form_.missing.of(fields[i].name); fill && is_missing(fields[i])) {
        values.insert(values.end(), *product_up_to(kMaxExtentProduct, form_.extents[i]), *fill);
        continue;
      }
      need_numbers(fields[i]);
      if (fields[i].extents != form_.extents[i])
        fail(fmt::format("field '{}' has the shape [{}], but [{}] in the first line", fields[i].name,
                         fmt::join(fields[i].extents, ", "), fmt::join(form_.extents[i], ", ")),
             "All samples of a data set have the same shape.");
      add_numbers(fields[i], form_.missing, values);
    }
    convert_features(values.data(), {DType::f32, std::endian::native == std::endian::big}, form_.values,
                     form_.channels_first, to.features);
    if (form_.labels) read_label(fields.back(), to);
  }

 private:
  void read_label(const JsonField& field, const SampleRoom& to) const {
    if (!field.found) fail(fmt::format("has no field '{}'", field.name), "Every line needs a label.");
    check_text_label(field, form_.text_labels);
    if (field.is_text) {
      *to.label_indices = form_.classes.index_of(field.text);
      return;
    }
    if (static_cast<std::int64_t>(field.numbers.size()) != form_.label_columns)
      fail(fmt::format("field '{}' has {} numbers, but {} in the first line", field.name,
                       field.numbers.size(), form_.label_columns),
           "All samples of a data set have as many labels.");
    for (std::size_t i = 0; i < field.numbers.size(); ++i) {
      const double label = field.numbers[i];
      if (form_.label_kind == LabelKind::rows) {
        to.label_rows[i] = as_float(label, field.name);
        continue;
      }
      if (!field.is_whole || std::abs(label) > std::numeric_limits<std::int32_t>::max())
        fail(fmt::format("label {:g} is no class index, as those of the first line", label),
             "Write targets with a decimal point in all lines: 3.0.");
      to.label_indices[i] = static_cast<std::int32_t>(label);
    }
  }

  const JsonForm form_;
};

class JsonlFiles {
 public:
  /// The classes that an option lists.
  static std::optional<std::vector<std::string>> listed_classes(const Params& params) {
    return params.as<Options>().classes;
  }

  JsonlFiles(const Params& params, std::vector<std::string> paths)
      : params_(params), o_(params.as<Options>()), paths_(std::move(paths)), files_(paths_.size()) {
    parts_.source = name_of_files(paths_);
    parts_.record_word = "line";
    parts_.transform = transform_options(params);
    form_.features = o_.features;
    if (form_.features.empty()) throw params.error("features", "names no field", "Name at least one.");
    form_.sequence = SequenceRows::from(params);
    if (form_.sequence && form_.features.size() > 1)
      throw params.error("features", "names several fields, but with pad_to a sample is one sequence",
                         "Read the others as inputs of their own (data.inputs).");
    if (form_.sequence)
      for (const char* const option : {"shape", "layout", "step_shape"})
        if (params.given(option))
          throw params.error(option, "is given with pad_to, where the nested arrays give the shape of a step",
                             "Leave it out.");
    form_.missing = MissingNumbers(params, form_.features);
    KeptIndex kept("jsonl", "", paths_);
    in_parallel(reader_threads(params), static_cast<std::int64_t>(paths_.size()), [&](std::int64_t i) {
      const std::string& path = paths_[static_cast<std::size_t>(i)];
      RecordFile& file = files_[static_cast<std::size_t>(i)];
      file.source = plain_or_gzip_bytes(path);
      file.begins = kept_begins(kept, static_cast<std::size_t>(i), *file.source,
                                [](ByteSource& source) { return find_lines(source); });
      file.count = static_cast<std::int64_t>(file.begins.size()) - 1;
      file.word = "line";
      file.first_number = 1;
      if (file.count == 0)
        throw Error(ErrorKind::data, "holds no lines", path,
                    "Check the path; an empty file may be a failed download.");
    });
    kept.keep();
  }

  /// All texts that labels have in the chosen lines.
  std::vector<std::string> classes(const std::optional<RowRange>& rows) const {
    DatasetParts chosen;
    chosen.source = parts_.source;
    return record_classes("jsonl " + *o_.labels, paths_, files_, chosen_rows(chosen, paths_, files_, rows),
                          params_.as<BadRecordOptions>().skip, [&](std::string_view line) {
                            JsonField field{.name = *o_.labels};
                            read_json_fields(without_line_end(line), {&field, 1});
                            if (!field.found)
                              fail(fmt::format("has no field '{}'", field.name), "Every line needs a label.");
                            check_text_label(field, true);
                            return field.text;
                          });
  }

  /// find_classes(): those of labels that are texts.
  DatasetParts parts(const std::optional<RowRange>& rows, bool labels, bool labels_may_miss,
                     FunctionRef<std::vector<std::string>(const JsonlFiles& self)> find_classes) && {
    const std::vector<RowRange> ranges = chosen_rows(parts_, paths_, files_, rows);
    ++parts_.first_record;  // lines count from 1
    for (DatasetFile& file : parts_.files) ++file.first_record;
    if (labels) form_.labels = o_.labels;
    if (form_.labels && std::ranges::find(form_.features, *form_.labels) != form_.features.end())
      throw params_.error("labels", fmt::format("names '{}', which is a feature, too", *form_.labels),
                          "A sample's label would be given away: name another field, or none.");
    look_at_first_good(params_, files_.front().count,
                       [&](std::int64_t line) { begin(line, labels_may_miss); });
    if (form_.text_labels) {
      form_.classes = TextClasses(o_.classes ? *o_.classes : find_classes(*this));
      parts_.class_names = form_.classes.names();
    }
    parts_.store = std::make_shared<JsonlStore>(form_, std::move(files_), ranges);
    return std::move(parts_);
  }

 private:
  /// The first line says what a sample is.
  void begin(std::int64_t number, bool labels_may_miss) {
    const RecordFile& file = files_.front();
    form_.values = 0;
    form_.extents.clear();
    std::string line(static_cast<std::size_t>(file.end(number) - file.begin(number)), '\0');
    file.source->read(file.begin(number), line.data(), line.size());
    std::vector<JsonField> fields;
    form_.set_names(fields);
    try {
      read_json_fields(without_line_end(line), fields);
      const auto may_be_filled = [&](const JsonField& field) {
        return is_missing(field) && field.takes_null;
      };
      if (!form_.sequence && std::ranges::any_of(fields, may_be_filled) &&
          number + 1 < std::min(file.count, kFirstRecords))
        return begin(number + 1, labels_may_miss);  // the next one may tell the form of the feature
      if (form_.sequence && fields[0].found && !fields[0].is_text && fields[0].numbers.empty() &&
          number + 1 < std::min(file.count, kFirstRecords))
        return begin(number + 1, labels_may_miss);  // the next one may tell the form of a step
      if (labels_may_miss && form_.labels && !fields.back().found) form_.labels.reset();
      if (form_.sequence) {
        set_steps(fields[0]);
        if (form_.labels) set_labels(fields.back());
        return;
      }
      for (std::size_t i = 0; i < form_.features.size(); ++i) {
        need_numbers(fields[i]);
        form_.values += static_cast<std::int64_t>(fields[i].numbers.size());
        form_.extents.push_back(fields[i].extents);
      }
      set_shape(form_.features.size() > 1 ? std::vector{form_.values} : form_.extents.front());
      if (form_.labels) set_labels(fields.back());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      const std::string within = error.where().empty() ? "" : ", " + error.where();
      throw Error(error.kind(), error.what_happened(), file.where(number) + within, error.advice());
    }
  }

  void set_steps(const JsonField& field) {
    form_.step_extents.clear();
    if (field.extents.size() > 1) form_.step_extents.assign(field.extents.begin() + 1, field.extents.end());
    form_.text = field.found && field.is_text;
    std::vector<float> values;
    add_steps(field, form_, values);
    form_.sequence->set_step(form_.step_extents, parts_);
    form_.values = form_.sequence->sample_values();
  }

  void set_shape(std::vector<std::int64_t> extents) {
    if (o_.shape) extents = *o_.shape;
    if (const auto needed = product_up_to(kMaxExtentProduct, extents); needed != form_.values)
      fail(fmt::format("has {} feature values, but the shape {} needs {}", form_.values,
                       fmt::join(extents, "x"), needed ? std::to_string(*needed) : "more than 2^59"),
           "Correct the option shape.");
    form_.channels_first = o_.channels_first && !extents.empty() ? extents[0] : 0;
    parts_.feature_shape = sample_shape(std::move(extents), o_.channels_first, "");
    parts_.feature_dtype = DType::f32;
  }

  void set_labels(const JsonField& field) {
    if (!field.found) fail(fmt::format("has no field '{}'", field.name), "Check the option labels.");
    if (!field.is_text && o_.classes)
      throw params_.error("classes", fmt::format("is given, but the labels '{}' are numbers", field.name),
                          "Leave it out, or name the classes of numbers by class_names.");
    form_.text_labels = field.is_text;
    form_.label_columns = field.is_text ? 1 : static_cast<std::int64_t>(field.numbers.size());
    if (form_.label_columns == 0)
      fail(fmt::format("field '{}' is empty", field.name), "Every line needs a label.");
    form_.label_kind = field.is_text || field.is_whole ? LabelKind::indices : LabelKind::rows;
    parts_.num_label_columns = form_.label_columns;
    parts_.label_kind = form_.label_kind;
  }

  const Params& params_;
  const Options o_;
  const std::vector<std::string> paths_;
  std::vector<RecordFile> files_;
  JsonForm form_;
  DatasetParts parts_;
};

using Parts = RecordParts<JsonlFiles>;

}  // namespace

extern const ReaderEntry kJsonlReader = {.name = "jsonl",
                                         .help = "JSON lines: an object per line, plain or gzip",
                                         .table = kOptions,
                                         .make = Parts::make,
                                         .make_input = Parts::make_input,
                                         .files = files_of_path,
                                         .make_evaluation = Parts::make_evaluation,
                                         .make_as_trained = Parts::make_as_trained};

}  // namespace lockstep
