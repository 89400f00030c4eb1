// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One value of a summary, as event files hold it: a number, a histogram, a picture, a sound, a tensor.
// Plain structs; EventWriter writes them and EventReader reads them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

/// counts[i] values lie in [limits[i - 1], limits[i]). As many counts as limits; limits increase.
struct HistogramData {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits, counts;
};

/// channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha. `png`: the bytes of a PNG file.
struct ImageData {
  int height = 0, width = 0, channels = 0;
  std::string png;
};

/// `encoded`: the bytes of a sound file of `content_type`.
struct AudioData {
  float sample_rate = 0;  ///< in Hz
  std::int64_t channels = 0, frames = 0;
  std::string encoded;
  std::string content_type = "audio/wav";
};

/// The types of elements that tensors in event files have here. The numbers are TensorFlow's: do not change.
enum class SummaryDType { f32 = 1, f64 = 2, i32 = 3, u8 = 4, text = 7, i64 = 9, boolean = 10 };

/// Row-major. Numbers are in `bytes`, little-endian; strings in `strings`.
struct TensorData {
  SummaryDType dtype = SummaryDType::f32;
  std::vector<std::int64_t> shape;
  std::string bytes;
  std::vector<std::string> strings;
};

/// How TensorBoard shows the values of a tag. A file holds it once, with the tag's first value.
struct SummaryMetadata {
  std::string plugin;   ///< "text", "pr_curves", ...; empty: the kind of the value decides
  std::string content;  ///< the plugin's own message
  std::string display_name, description;
  bool empty() const {
    return plugin.empty() && content.empty() && display_name.empty() && description.empty();
  }
};

using SummaryData = std::variant<float, HistogramData, ImageData, AudioData, TensorData>;

struct SummaryValue {
  std::string tag;
  SummaryData value;
  SummaryMetadata metadata = {};
};

}  // namespace lockstep
