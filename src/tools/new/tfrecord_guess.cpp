// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which features of tf.Example are the samples and which the labels, by the first records.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "io/example.h"
#include "io/tfrecord_file.h"
#include "tools/new/array_guess.h"
#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"

namespace lockstep {

namespace {

using Kind = NamedArray::Kind;

constexpr std::int64_t kMostLooked = 200;  ///< records

/// A feature in the records so far.
struct Seen {
  ExampleFeature::Kind kind = ExampleFeature::Kind::empty;
  std::int64_t records = 0, values = 0;
  bool varies = false, counts = true, is_image = false, is_text = false;
  std::int64_t last = 0;
  std::string first_bytes;
  std::set<std::string> texts;  ///< that differ
};

bool begins_as_image(std::string_view bytes) {
  return bytes.starts_with("\x89PNG") || bytes.starts_with("\xff\xd8\xff");
}

bool is_printable(std::string_view bytes) {
  return std::ranges::all_of(
      bytes, [](char c) { return static_cast<unsigned char>(c) >= 32 || c == '\n' || c == '\t'; });
}

void add(Seen& seen, const ExampleFeature& feature) {
  std::int64_t values = feature.count();
  if (feature.kind == ExampleFeature::Kind::bytes && values == 1) {
    const std::string_view bytes = feature.bytes().front();
    if (seen.records == 0) {
      seen.is_image = begins_as_image(bytes);
      seen.is_text = is_printable(bytes);
      seen.first_bytes = bytes;
    }
    if (seen.is_text && std::ssize(seen.texts) <= kMostLooked) seen.texts.emplace(bytes);
    values = seen.is_text ? 1 : std::ssize(bytes);
  }
  seen.counts = seen.counts && feature.kind == ExampleFeature::Kind::integers && values == 1;
  if (seen.counts) {
    std::int64_t value = 0;
    feature.read(std::span(&value, 1));
    seen.counts = seen.records == 0 || value == seen.last + 1;
    seen.last = value;
  }
  seen.varies = seen.varies || (seen.records > 0 && (feature.kind != seen.kind || values != seen.values));
  seen.kind = feature.kind;
  seen.values = values;
  ++seen.records;
}

NamedArray array_of(const std::string& name, const Seen& seen, std::int64_t looked, std::int64_t records) {
  NamedArray array{.name = name, .extents = {records}};
  if (seen.values != 1 || seen.is_image) array.extents.push_back(seen.values);
  const bool of_bytes = seen.kind == ExampleFeature::Kind::bytes;
  array.kind = seen.is_image                               ? Kind::image
               : of_bytes && seen.is_text                  ? Kind::text
               : seen.kind == ExampleFeature::Kind::floats ? Kind::real
               : seen.kind == ExampleFeature::Kind::empty  ? Kind::other
                                                           : Kind::whole;
  if (seen.records < looked)
    array.excluded = "is not in all records";
  else if (seen.varies && !seen.is_image)
    array.excluded = "has lists of different lengths";
  for (const char* const form : {"height", "width", "depth", "channels", "colorspace", "format"})
    if (name == form || name.ends_with(std::string("/") + form)) array.excluded = "describes an image";
  array.repeats = [differ = std::ssize(seen.texts), looked] { return differ * 2 <= looked; };
  array.counts_rows = [counts = seen.counts && looked > 2] { return counts; };
  return array;
}

/// Height, width and depth of raw pixels, if the record has them as numbers.
std::string shape_of(std::string_view example, std::int64_t bytes) {
  std::vector<std::int64_t> extents;
  for (const std::vector<const char*>& names : {std::vector<const char*>{"height", "image/height"},
                                                {"width", "image/width"},
                                                {"depth", "channels", "image/channels", "image/depth"}})
    for (const char* const name : names) {
      const auto feature = find_feature(example, name);
      if (!feature || feature->kind != ExampleFeature::Kind::integers || feature->count() != 1) continue;
      std::int64_t value = 0;
      feature->read(std::span(&value, 1));
      extents.push_back(value);
      break;
    }
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) product *= std::max<std::int64_t>(1, std::min(extent, bytes));
  return extents.size() >= 2 && product == bytes ? fmt::format("[{}]", fmt::join(extents, ", ")) : "";
}

}  // namespace

DataGuess guess_tfrecord(const DataQuestion& question) {
  const auto file = open_tfrecord_file(question.place, TfrecordCompression::automatic);
  const std::vector<std::int64_t> places = find_tfrecords(*file);
  const std::int64_t records = std::ssize(places) - 1, looked = std::min(records, kMostLooked);
  if (records < 1)
    throw Error(ErrorKind::data, "holds no records", question.place, "Give a file with a record per sample.");
  std::map<std::string, Seen> features;
  std::string first;
  for (std::int64_t i = 0; i < looked; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::string frame(static_cast<std::size_t>(places[at + 1] - places[at]), '\0');
    file->read(places[at], frame.data(), frame.size());
    const std::string_view example = tfrecord_data(frame);
    if (i == 0) first = example;
    for (const std::string& name : feature_names(example)) add(features[name], *find_feature(example, name));
  }
  std::vector<NamedArray> arrays;
  for (const auto& [name, seen] : features) arrays.push_back(array_of(name, seen, looked, records));
  ChosenArrays chosen = choose_arrays(arrays, question, "feature");
  DataGuess guess{"tfrecord",
                  fmt::format("TFRecords: {} and {}", chosen.features, chosen.labels),
                  {{"path", yaml_quoted(question.path)},
                   {"features", quoted_name(chosen.features)},
                   {"labels", quoted_name(chosen.labels)}}};
  guess.predicts = chosen.labels;
  guess.notes = std::move(chosen.notes);
  guess.assumed = std::move(chosen.assumed);
  const Seen& seen = features[chosen.features];
  if (seen.is_image) {
    guess.common.push_back({"encoding", "image"});
    guess_image(guess, std::as_bytes(std::span(seen.first_bytes)),
                fmt::format("{}, record 0: {}", question.place, chosen.features));
  } else if (seen.kind == ExampleFeature::Kind::bytes) {
    const std::string shape = shape_of(first, seen.values);
    guess.common.push_back({"dtype", "uint8"});
    if (!shape.empty()) guess.common.push_back({"shape", shape});
    guess.assumed.push_back(
        fmt::format("feature '{}' has raw numbers of one byte{}; otherwise set dtype and shape",
                    chosen.features, shape.empty() ? ", without a shape" : ""));
  }
  return guess;
}

}  // namespace lockstep
