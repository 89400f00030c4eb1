// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader tfrecord: how a tf.Example becomes a sample.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/image_options.h"
#include "data/readers/record_store.h"
#include "data/readers/sequence_rows.h"
#include "data/readers/text_classes.h"
#include "data/stored_numbers.h"
#include "io/example.h"

namespace lockstep {

/// How the named features of an example become a sample.
struct ExampleForm {
  std::string features_name;
  std::optional<std::string> labels_name;
  using Kind = ExampleFeature::Kind;
  Kind kind = Kind::floats;              ///< of the features
  StoredType type;                       ///< in memory, and of numbers in bytes
  std::int64_t values = 0;               ///< of the features
  std::int64_t channels_first = 0;       ///< number of channels if they are first in the file, else 0
  std::optional<ImageForm> image;        ///< features are encoded images
  std::optional<SequenceRows> sequence;  ///< features are sequences, as float32
  std::optional<float> missing;          ///< takes the place of each value of features that are not there
  Kind label_kind = Kind::empty;
  TextClasses classes;  ///< of labels of bytes
  std::int64_t label_columns = 0;

  void check_kind(const ExampleFeature& feature, Kind wanted, const std::string& name) const;
  void check(const ExampleFeature& feature, Kind wanted, std::int64_t count, const std::string& name) const;
};

/// Both throw Error(data) without a place.
ExampleFeature needed_feature(std::string_view example, const std::string& name);
/// The only value of a list of bytes.
std::string_view only_bytes(const ExampleFeature& feature, const std::string& name);

std::shared_ptr<SampleStore> make_tfrecord_store(ExampleForm form, std::vector<RecordFile> files,
                                                 const std::vector<RowRange>& rows);

}  // namespace lockstep
