// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/tfrecord_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/error.h"
#include "core/name_list.h"
#include "data/readers/narrow_integers.h"
#include "io/tfrecord_file.h"

namespace lockstep {

namespace {

using Kind = ExampleFeature::Kind;

[[noreturn]] void fail(std::string what, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), {}, std::move(advice));
}

}  // namespace

ExampleFeature needed_feature(std::string_view example, const std::string& name) {
  const auto feature = find_feature(example, name);
  if (const auto lists = feature ? std::nullopt : sequence_names(example))
    fail(fmt::format("is a tf.SequenceExample, whose context has no feature '{}'; its lists are: {}", name,
                     name_list(*lists)),
         "Write tf.Example: one list with the values of all steps, which pad_to and step_shape read.");
  if (!feature)
    fail(fmt::format("has no feature '{}'", name),
         fmt::format("It has: {}.", name_list(feature_names(example))));
  return *feature;
}

void ExampleForm::check_kind(const ExampleFeature& feature, Kind wanted, const std::string& name) const {
  if (feature.kind != wanted)
    fail(fmt::format("feature '{}' is a list of {}, but of {} in the first record", name,
                     name_of(feature.kind), name_of(wanted)),
         "All records of a data set need the same form.");
}

void ExampleForm::check(const ExampleFeature& feature, Kind wanted, std::int64_t count,
                        const std::string& name) const {
  check_kind(feature, wanted, name);
  const std::int64_t found = feature.count();
  if (found != count)
    fail(fmt::format("feature '{}' has {} values, but {} are needed", name, found, count),
         "All samples of a data set have the same shape.");
}

std::string_view only_bytes(const ExampleFeature& feature, const std::string& name) {
  const std::vector<std::string_view> values = feature.bytes();
  if (values.size() != 1)
    fail(fmt::format("feature '{}' has {} values of bytes, but 1 is needed", name, values.size()),
         "All values of a sample lie in one value of bytes.");
  return values.front();
}

namespace {

class TfrecordStore final : public RecordStore {
 public:
  TfrecordStore(ExampleForm form, std::vector<RecordFile> files, const std::vector<RowRange>& rows)
      : RecordStore(std::move(files), rows,
                    form.values * static_cast<std::int64_t>(form.sequence ? sizeof(float)
                                                                          : size_in_bytes(form.type.type)),
                    form.label_columns),
        form_(std::move(form)) {}
  bool decodes_samples() const override { return form_.image.has_value(); }

 protected:
  void decode(std::string_view record, const SampleRoom& to) const override {
    const std::string_view example = tfrecord_data(record);
    if (!form_.missing || !fill_features(example, to.features))
      read_features(needed_feature(example, form_.features_name), to.features);
    if (form_.labels_name) read_labels(needed_feature(example, *form_.labels_name), to);
  }

 private:
  /// False if there is nothing to fill.
  bool fill_features(std::string_view example, void* to) const {
    const auto feature = find_feature(example, form_.features_name);
    if (feature && feature->kind != Kind::empty && feature->count() > 0) return false;
    const auto values = static_cast<std::size_t>(form_.values);
    if (form_.kind == Kind::floats) {
      std::ranges::fill(std::span(static_cast<float*>(to), values), *form_.missing);
    } else {
      const std::vector<std::int64_t> filled(values, static_cast<std::int64_t>(*form_.missing));
      narrow(filled, form_.type.type, to, form_.features_name);
    }
    return true;
  }

  void read_image(std::string_view file, void* to) const {
    const auto name = [&] { return fmt::format("feature '{}'", form_.features_name); };
    ImageWorks::Loan work(works_);
    work->read(*form_.image, std::as_bytes(std::span(file)), name, static_cast<std::uint8_t*>(to));
  }

  void read_features(const ExampleFeature& feature, void* to) const {
    const std::string& name = form_.features_name;
    if (form_.sequence) return read_sequence(feature, to);
    form_.check(feature, form_.kind, form_.kind == Kind::bytes ? 1 : form_.values, name);
    if (form_.image) return read_image(only_bytes(feature, name), to);
    const auto values = static_cast<std::size_t>(form_.values);
    if (form_.kind == Kind::bytes) {
      const std::string_view bytes = only_bytes(feature, name);
      const std::size_t wanted = values * size_in_bytes(form_.type.type);
      if (bytes.size() != wanted)
        fail(fmt::format("feature '{}' has {} bytes, but {} are needed", name, bytes.size(), wanted),
             "All samples of a data set have the same shape and type.");
      return convert_features(bytes.data(), form_.type, form_.values, form_.channels_first, to);
    }
    if (form_.channels_first == 0) return read_numbers(feature, to);
    std::vector<char> scratch(values * size_in_bytes(form_.type.type));
    read_numbers(feature, scratch.data());
    convert_features(scratch.data(), form_.type, form_.values, form_.channels_first, to);
  }

  /// A list without values has no kind in the file.
  void read_sequence(const ExampleFeature& feature, void* to) const {
    const std::string& name = form_.features_name;
    if (feature.kind != Kind::empty) form_.check_kind(feature, form_.kind, name);
    std::vector<float> values;
    if (feature.kind == Kind::floats) {
      values.resize(static_cast<std::size_t>(feature.count()));
      feature.read(values);
    } else if (feature.kind == Kind::integers) {
      std::vector<std::int64_t> wide(static_cast<std::size_t>(feature.count()));
      feature.read(wide);
      append_as_floats(DType::i64, wide.data(), std::ssize(wide), values);
    } else if (feature.kind == Kind::bytes) {
      const std::string_view bytes = only_bytes(feature, name);
      const std::size_t value_bytes = size_in_bytes(form_.type.type);
      if (bytes.size() % value_bytes != 0)
        fail(fmt::format("feature '{}' has {} bytes, which are no whole number of {}", name, bytes.size(),
                         name_of(form_.type.type)),
             "Check the option dtype.");
      std::vector<std::uint64_t> aligned(bytes.size() / sizeof(std::uint64_t) + 1);
      const auto count = static_cast<std::int64_t>(bytes.size() / value_bytes);
      convert_features(bytes.data(), form_.type, count, 0, aligned.data());
      append_as_floats(form_.type.type, aligned.data(), count, values);
    }
    form_.sequence->write(values, name, to);
  }

  void read_numbers(const ExampleFeature& feature, void* to) const {
    const auto values = static_cast<std::size_t>(form_.values);
    if (form_.kind == Kind::floats) return feature.read(std::span(static_cast<float*>(to), values));
    std::vector<std::int64_t> wide(values);
    feature.read(wide);
    narrow(wide, form_.type.type, to, form_.features_name);
  }

  void read_labels(const ExampleFeature& feature, const SampleRoom& to) const {
    if (form_.label_kind == Kind::bytes) {
      form_.check_kind(feature, Kind::bytes, *form_.labels_name);
      *to.label_indices = form_.classes.index_of(only_bytes(feature, *form_.labels_name));
      return;
    }
    form_.check(feature, form_.label_kind, form_.label_columns, *form_.labels_name);
    const auto columns = static_cast<std::size_t>(form_.label_columns);
    if (form_.label_kind == Kind::floats) return feature.read(std::span(to.label_rows, columns));
    std::vector<std::int64_t> wide(columns);
    feature.read(wide);
    convert_labels(wide.data(), DType::i64, form_.label_columns, to, [](std::int64_t) { return ""; });
  }

  const ExampleForm form_;
  mutable ImageWorks works_;
};

}  // namespace

std::shared_ptr<SampleStore> make_tfrecord_store(ExampleForm form, std::vector<RecordFile> files,
                                                 const std::vector<RowRange>& rows) {
  return std::make_shared<TfrecordStore>(std::move(form), std::move(files), rows);
}

}  // namespace lockstep
