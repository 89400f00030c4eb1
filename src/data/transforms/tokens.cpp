// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// one_hot, lookup, tokenize: fixed transforms that make class numbers, ids and rows of ids of what a file
// has.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/hash.h"
#include "data/text_options.h"
#include "data/token_rows.h"
#include "data/transforms/family.h"
#include "data/utf8.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

[[noreturn]] void fail(std::string what, std::string advice) {
  throw Error(ErrorKind::data, std::move(what), {}, std::move(advice));
}

class OneHot final : public Transform {
 public:
  struct Options {
    std::int64_t classes = 0;
    bool zeros_outside = false;
  };
  explicit OneHot(const Options& o) : classes_(o.classes), zeros_outside_(o.zeros_outside) {}
  Shape prepare(const Shape& shape) override {
    count_ = shape.num_elements();
    std::vector<std::int64_t> extents;
    for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
    if (extents == std::vector<std::int64_t>{1}) extents.clear();
    extents.push_back(classes_);
    if (std::ssize(extents) > Shape::kMaxRank)
      throw Error(ErrorKind::config, fmt::format("samples of {} have too many axes", shape.to_string()), "",
                  "Use samples with fewer axes.");
    return Shape(std::span<const std::int64_t>(extents));
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    std::fill_n(out, count_ * classes_, 0.0F);
    for (std::int64_t i = 0; i < count_; ++i) {
      const float value = in[i];
      const bool inside = value >= 0 && value < static_cast<float>(classes_) && value == std::floor(value);
      if (inside)
        out[i * classes_ + static_cast<std::int64_t>(value)] = 1.0F;
      else if (!zeros_outside_)
        fail(fmt::format("transform one_hot: {} is no whole number from 0 to {}", value, classes_ - 1),
             "Raise classes, or write outside: zeros.");
    }
  }

 private:
  const std::int64_t classes_;
  const bool zeros_outside_;
  std::int64_t count_ = 0;
};

class Lookup final : public ValueTransform {
 public:
  struct Options {
    std::vector<double> keys;
    std::optional<std::int64_t> unknown;
  };
  explicit Lookup(const Options& o, const Params& p)
      : unknown_(o.unknown ? static_cast<float>(*o.unknown) : std::numeric_limits<float>::quiet_NaN()) {
    const std::string_view name = option_name<&Options::keys>(p);
    for (const double key : o.keys) keys_.push_back({static_cast<float>(key), 0});
    if (keys_.empty()) throw p.error(name, "is an empty list", "Name the numbers that samples have.");
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i].id = static_cast<float>(i);
    std::ranges::sort(keys_, {}, &Key::number);
    if (const auto twice = std::ranges::adjacent_find(keys_, {}, &Key::number); twice != keys_.end())
      throw p.error(name, fmt::format("has {} twice, as float32", twice->number), "Name each once.");
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    for (std::int64_t i = 0; i < count_; ++i) {
      const auto found = std::ranges::lower_bound(keys_, in[i], {}, &Key::number);
      if (found != keys_.end() && found->number == in[i])
        out[i] = found->id;
      else if (std::isnan(unknown_))
        fail(fmt::format("transform lookup: {} is none of the {} keys", in[i], keys_.size()),
             "Add it to keys, or give unknown, the id of all other numbers.");
      else
        out[i] = unknown_;
    }
  }

 private:
  struct Key {
    float number, id;
  };
  const float unknown_;  ///< NaN: an error
  std::vector<Key> keys_;
};

/// Without what is left of characters at both ends, where a longer text was cut.
std::string_view without_halves(std::string_view text) {
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; };
  for (int i = 0; i < 3 && !text.empty() && continues(text.front()); ++i) text.remove_prefix(1);
  std::size_t lead = text.size();
  while (lead > 0 && text.size() - lead < 3 && continues(text[lead - 1])) --lead;
  if (lead == 0) return text;
  const auto first = static_cast<unsigned char>(text[lead - 1]);
  const std::size_t bytes = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : first >= 0xC0U ? 2 : 1;
  if (text.size() - (lead - 1) < bytes) text.remove_suffix(text.size() - (lead - 1));
  return text;
}

/// Rows as those of the readers of text (token_rows.h).
class Tokenize final : public Transform {
 public:
  struct Options {
    std::string vocabulary;
    std::optional<std::string> merges;
    RowOptions rows;
    Tokenizer tokenizer{};
  };
  explicit Tokenize(Options o) : o_(std::move(o)) {}
  std::shared_ptr<const TextInfo> text() const override { return text_; }
  void use_text(std::shared_ptr<const TextInfo> text) override { text_ = std::move(text); }
  Shape prepare(const Shape& shape) override {
    if (shape.rank() != 1)
      throw Error(ErrorKind::config,
                  fmt::format("takes samples of one axis, the bytes of a text, not {}", shape.to_string()),
                  "", "Read the text as a sequence of bytes (pad_to), and tokenize first of all.");
    bytes_ = shape[0];
    if (text_ == nullptr) text_ = std::make_shared<const TextInfo>(text_of_files());
    return {o_.rows.max_length};
  }
  void apply(const float* in, float* out, SampleRandom*, float*) const override {
    thread_local std::string text;  // keeps its memory, as the next one
    thread_local std::vector<float> ids;
    text.clear();
    ids.clear();
    std::int64_t end = bytes_;
    while (end > 0 && in[end - 1] == 0) --end;
    for (std::int64_t i = 0; i < end; ++i) {
      if (!(in[i] >= 0 && in[i] <= 255 && in[i] == std::floor(in[i])))
        fail(fmt::format("transform tokenize: {} is no byte of a text", in[i]),
             "Texts are bytes: leave out scale, offset, mean and std, and pad with 0.");
      text.push_back(static_cast<char>(static_cast<unsigned char>(in[i])));
    }
    const std::string_view whole = end == bytes_ ? without_halves(text) : std::string_view(text);
    if (const std::size_t bad = first_invalid_utf8(whole); bad != std::string::npos)
      fail(fmt::format("transform tokenize: byte {} is not UTF-8", bad + 1), "Convert the text to UTF-8.");
    text_->for_each_id(whole, [&](std::int32_t id) { ids.push_back(static_cast<float>(id)); });
    if (ids.empty()) ids.push_back(static_cast<float>(text_->empty_text_id()));
    const auto kept = static_cast<std::ptrdiff_t>(std::min(std::ssize(ids), o_.rows.max_length));
    out = std::copy_n(o_.rows.keeps_end ? ids.end() - kept : ids.begin(), kept, out);
    std::fill_n(out, o_.rows.max_length - kept, static_cast<float>(text_->padding_id));
  }

 private:
  TextInfo text_of_files() const {
    if (o_.tokenizer.unit == TokenUnit::bpe) {
      if (o_.tokenizer.lower_case)
        throw Error(ErrorKind::config, "lower_case does not go with tokens: bpe", "", "Leave it out.");
      return byte_pair_text(o_.vocabulary, o_.merges, &o_.rows.padding_token);
    }
    if (o_.merges || o_.rows.padding_token)
      throw Error(ErrorKind::config, "merges and padding_token need tokens: bpe", "", "Leave them out.");
    return {o_.tokenizer, Vocabulary::from_file(o_.vocabulary, {.padding = true})};
  }

  const Options o_;
  std::shared_ptr<const TextInfo> text_;
  std::int64_t bytes_ = 0;
};

constexpr ParamSpec kOneHot[] = {
    option<&OneHot::Options::classes>("classes", kRequired, between(1, 1e9), "extent of the new last axis"),
    option_as<is_second_choice, &OneHot::Options::zeros_outside>(
        ParamType::string, "outside", "error", one_of("error|zeros"),
        "of a value that is no whole number from 0 to classes - 1: an error, or a row of zeros")};
constexpr ParamSpec kLookup[] = {
    option<&Lookup::Options::keys>("keys", kRequired, between(-1e30, 1e30),
                                   "the numbers that samples have, each once; the first one gets the id 0"),
    option<&Lookup::Options::unknown>("unknown", "null", between(0, 1e9).or_null(),
                                      "id of other numbers; null: an error")};
constexpr ParamSpec kTokenize[] = {
    option<&Tokenize::Options::vocabulary>(
        "vocabulary", kRequired, {},
        "file with one word per line, like vocabulary.txt of a run; with tokens: bpe a tokenizer.json, or a "
        "vocab.json; relative to the config file's folder",
        Change::place),
    merges_option<&Tokenize::Options::merges>(),
    padding_token_option<&Tokenize::Options::rows>(),
    max_length_option<&Tokenize::Options::rows>(),
    truncate_option<&Tokenize::Options::rows>(),
    tokens_option<&Tokenize::Options::tokenizer>(),
    lower_case_option<&Tokenize::Options::tokenizer>()};

}  // namespace

extern const TransformEntry kOneHotTransform = {
    "one_hot", "a new last axis: 1 at the place that the value names, 0 elsewhere", kOneHot,
    make_transform<OneHot>};
extern const TransformEntry kLookupTransform = {"lookup", "each number becomes its id, its place in a list",
                                                kLookup, make_transform<Lookup>};
extern const TransformEntry kTokenizeTransform = {"tokenize",
                                                  "a text, as a sequence of bytes, becomes a row of token "
                                                  "ids; 0 is padding, 1 an unknown token (not with bpe)",
                                                  kTokenize, make_transform<Tokenize>};

}  // namespace lockstep
