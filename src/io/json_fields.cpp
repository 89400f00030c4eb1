// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "io/json.h"

namespace lockstep {

namespace {

constexpr const char* kForm = "Each line is an object: {\"x\": [1, 2], \"y\": 0}.";

[[noreturn]] void fail(std::string what, std::string where, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), std::move(where), std::move(advice));
}

class Reader final : public JsonEvents {
 public:
  explicit Reader(std::span<JsonField> fields) : fields_(fields) {}

  bool null() override {
    if (field_ == nullptr) return at_value();
    if (!field_->takes_null)
      fail(fmt::format("field '{}' is null, or has a null", field_->name), {},
           "A value is missing. For features, the option missing says which number takes its place; a label "
           "is "
           "needed.");
    if (arrays_ > 0) return number(std::numeric_limits<double>::quiet_NaN(), false);
    field_->is_null = true;
    return at_value();
  }
  bool boolean(bool value) override { return number(value ? 1 : 0, true); }
  bool integer(std::int64_t value) override { return number(static_cast<double>(value), true); }
  bool unsigned_integer(std::uint64_t value) override { return number(static_cast<double>(value), true); }
  bool real(double value) override { return number(value, false); }
  bool string(std::string& value) override {
    if (field_ != nullptr) {
      if (arrays_ > 0) fail_field("has a text in an array");
      field_->is_text = true;
      field_->text = value;
    }
    return at_value();
  }
  bool begin_object() override {
    if (field_ != nullptr) fail_field("is an object");
    ++depth_;
    saw_object_ = true;
    return true;
  }
  bool end_object() override {
    --depth_;
    return at_value();
  }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    const auto known = std::ranges::find(fields_, std::string_view(name), &JsonField::name);
    field_ = known == fields_.end() ? nullptr : &*known;
    if (field_ == nullptr) return true;
    if (field_->found) fail_field("is there twice");
    field_->found = true;
    return true;
  }
  bool begin_array() override {
    if (depth_ == 0) fail("is an array, not an object", {}, kForm);
    if (field_ != nullptr) {
      if (arrays_ == kMostArrays) fail_field("has too many nested arrays");
      if (static_cast<std::size_t>(arrays_) == field_->extents.size()) {
        if (values_began_) fail_field("has arrays beside numbers");
        field_->extents.push_back(-1);
      }
      counts_[arrays_++] = 0;
    }
    return true;
  }
  bool end_array() override {
    if (field_ == nullptr) return true;
    --arrays_;
    std::int64_t& extent = field_->extents[static_cast<std::size_t>(arrays_)];
    if (extent >= 0 && extent != counts_[arrays_]) fail_field("has arrays of different lengths");
    extent = counts_[arrays_];
    return at_value();
  }
  void finish() const {
    if (!saw_object_) fail("is not an object", {}, kForm);
  }

 private:
  static constexpr int kMostArrays = 8;

  [[noreturn]] void fail_field(std::string_view what) const {
    fail(fmt::format("field '{}' {}", field_->name, what), {},
         "A field holds a number, numbers in nested arrays of equal lengths, or a text.");
  }

  bool number(double value, bool whole) {
    if (field_ != nullptr) {
      if (static_cast<std::size_t>(arrays_) != field_->extents.size())
        fail_field("has numbers beside arrays");
      field_->numbers.push_back(value);
      field_->is_whole = field_->is_whole && whole;
      values_began_ = true;
    }
    return at_value();
  }

  /// After each value.
  bool at_value() {
    if (field_ == nullptr) return true;
    if (arrays_ > 0) {
      ++counts_[arrays_ - 1];
      return true;
    }
    field_ = nullptr;
    values_began_ = false;
    return true;
  }

  const std::span<JsonField> fields_;
  JsonField* field_ = nullptr;  ///< whose value is read
  int depth_ = 0;               ///< of objects
  int arrays_ = 0;              ///< that are open in the field
  bool values_began_ = false, saw_object_ = false;
  std::int64_t counts_[kMostArrays] = {};  ///< values of the open arrays
};

}  // namespace

namespace {

constexpr std::string_view kNoNumbers[] = {"-Infinity", "Infinity", "NaN"};

/// What a program wrote that writes numbers without looking; the position is that of the error. Empty: none.
std::string_view no_number_at(std::string_view line, std::size_t position) {
  const std::string_view near = line.substr(std::min(line.size(), position < 3 ? 0 : position - 3), 12);
  for (const std::string_view word : kNoNumbers)
    if (near.find(word) != std::string_view::npos) return word;
  return {};
}

/// null in place of each NaN outside of texts.
std::string with_nulls(std::string_view line) {
  std::string text;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') in_text = !in_text;
    if (in_text && line[i] == '\\' && i + 1 < line.size()) text += line[i++];
    if (!in_text && line.substr(i).starts_with("NaN")) {
      text += "null";
      i += 2;
      continue;
    }
    text += line[i];
  }
  return text;
}

}  // namespace

void read_json_fields(std::string_view line, std::span<JsonField> fields) {
  for (JsonField& field : fields) {
    field.found = field.is_text = field.is_null = false;
    field.is_whole = true;
    field.numbers.clear();
    field.extents.clear();
    field.text.clear();
  }
  Reader reader(fields);
  try {
    read_json(line, reader);
  } catch (const JsonError& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while parsing ..."
    const std::string_view word = no_number_at(line, static_cast<std::size_t>(error.position()));
    if (word == "NaN" && std::ranges::any_of(fields, &JsonField::takes_null))
      if (const std::string changed = with_nulls(line); changed != line)
        return read_json_fields(changed, fields);
    if (!word.empty())
      fail(fmt::format("has {}, which is no number of JSON", word),
           fmt::format("column {}", error.position()),
           word == "NaN" ? "A value is missing: the option missing says which number takes its place."
                         : "Remove or repair the line: numbers are finite.");
    const std::string_view text = error.what();
    const auto start = text.find(": ");
    fail(fmt::format("is not JSON: {}", start == std::string_view::npos ? text : text.substr(start + 2)),
         fmt::format("column {}", error.position()), kForm);
  }
  reader.finish();
}

}  // namespace lockstep
