// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options that several losses have, and values per channel on the device.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "config/option.h"
#include "core/buffer.h"
#include "model/loss.h"

namespace lockstep {

/// For option_as() of an optional 32-bit label.
inline std::optional<std::int32_t> label_of(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return {};
  const std::int64_t value = params.integer(option.name);
  if (value < INT32_MIN || value > INT32_MAX)
    throw params.error(option.name, "is no 32-bit number", "Labels are 32-bit numbers.");
  return static_cast<std::int32_t>(value);
}
/// For option_as() of numbers; null: none.
inline std::vector<double> reals_or_none(const Params& params, const ParamSpec& option) {
  return params.has(option.name) ? params.reals(option.name) : std::vector<double>{};
}
template <auto... kPath>
constexpr ParamSpec ignore_index_option() {
  return option_as<label_of, kPath...>(
      ParamType::integer, "ignore_index", "null", between(-2147483648, 2147483647).or_null(),
      "Labels with this value are ignored: they count neither in the loss nor in its divisor.");
}

/// The options of `focal`.
struct FocalOptions {
  bool softmax = false, sums_classes = false;
  double gamma = 0;
  std::vector<double> alpha;
  std::optional<std::int32_t> ignored;
};
/// The focal loss of a softmax, for `focal` with activation: softmax.
std::unique_ptr<Loss> make_softmax_focal(const FocalOptions& options);

/// One float per channel on a device.
class ChannelValues {
 public:
  /// `values`: one per channel, or one for all. Throws Error(config) if their number does not fit.
  const float* make(const std::vector<double>& values, std::int64_t channels, Device& device,
                    std::string_view what) {
    LOCKSTEP_REQUIRE(values.size() == 1 || static_cast<std::int64_t>(values.size()) == channels,
                     ErrorKind::config, "{}: {} factors for {} classes; give one for each, or one for all",
                     what, values.size(), channels);
    std::vector<float> each(static_cast<std::size_t>(channels));
    for (std::size_t i = 0; i < each.size(); ++i)
      each[i] = static_cast<float>(values[values.size() == 1 ? 0 : i]);
    buffer_ = Buffer(device, each.size() * sizeof(float));
    device.copy_from_host(buffer_.data(), each.data(), buffer_.size_bytes());
    return static_cast<const float*>(buffer_.data());
  }

 private:
  Buffer buffer_;
};

}  // namespace lockstep
