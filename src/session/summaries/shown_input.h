// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How the inputs of samples are shown to people: images and volumes as pictures, token ids as words,
// waveforms as sounds, anything else as its first numbers. Cells of Markdown's tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/named_shape.h"
#include "data/dataset.h"
#include "io/summary_value.h"

namespace lockstep {

struct ShownInput {
  enum class As { picture, sound, words, numbers };
  NamedShape input;
  std::int64_t first = 0;  ///< where its values begin in a sample
  As as = As::numbers;
  const TextInfo* text = nullptr;  ///< of words
};

/// The inputs that are shown. With a sample rate, inputs of frames, or of frames x at most 8 channels, are
/// sounds.
std::vector<ShownInput> shown_inputs(const Dataset& data, bool has_sample_rate);

/// "pictures (8, 8, 1)", "the words of title".
std::string text_of(const ShownInput& input);

/// The words of a row of token ids without padding, at most 200 characters.
std::string words_text(const TextInfo& text, std::span<const float> ids);
/// The first 8 numbers, and how many there are.
std::string numbers_text(std::span<const float> values);

/// [count, frames, channels] as sounds `name`/audio/0, ... Values beyond [-1, 1] make all of them quieter.
std::vector<SummaryValue> sound_values(const std::string& name, const Shape& shape, std::vector<float> values,
                                       double sample_rate);

/// A text that Markdown shows as it is, in a cell of a table.
std::string markdown_cell(std::string_view text);

}  // namespace lockstep
