// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`, second half: a commented configuration for samples that a reader has opened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/shape.h"
#include "tools/new/data_guess.h"

namespace lockstep {

/// What is known of the samples once they are open.
struct NewSamples {
  Shape shape;  ///< of one sample, channels last
  std::int64_t samples = 0;
  std::int64_t classes = 0;        ///< 0: labels are numbers
  std::int64_t label_columns = 1;  ///< of numbers, or of yes-or-no labels
  std::int64_t vocabulary = 0;     ///< ids of a text
  /// The mean and deviation of labels that are numbers, in the training set.
  double label_mean = 0, label_deviation = 1;
};

enum class NetSize { small, medium, large };

struct NewChoices {
  double held_out = 0.2;  ///< share of the samples for evaluation, where the files have no set of their own
  NetSize size = NetSize::small;
  std::optional<std::int64_t> epochs = {};
  std::string path;  ///< of the file, for the comment at its head
};

/// Samples whose axes are all of space: volumes D,H,W, and pictures H,W of bytes. The net gives them a
/// channel.
bool has_no_channels(const Shape& sample, bool of_bytes);
/// Labels that are numbers are so far from mean 0 and deviation 1 that a net learns them slowly.
bool needs_unit(const NewSamples& form);
/// Section data alone, as YAML: enough to open the training set.
std::string data_section(const DataGuess& guess, double held_out);
/// The whole file. Throws Error(data) if no net is known for such samples.
std::string new_configuration(const DataGuess& guess, const NewSamples& form, const NewChoices& choices);

}  // namespace lockstep
