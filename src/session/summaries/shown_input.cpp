// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/shown_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/reader_dataset.h"
#include "data/text_info.h"
#include "io/sample_pictures.h"
#include "io/summary_media.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostChannels = 8;
constexpr std::size_t kMostCharacters = 200, kMostNumbers = 8;

bool is_sound(const Shape& shape) {
  return shape.rank() == 1 || (shape.rank() == 2 && shape[1] <= kMostChannels);
}

/// At most `most` characters; a cut text ends with "...".
std::string shortened(const std::string& text, std::size_t most) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (++characters > most) return text.substr(0, at) + " ...";
  }
  return text;
}

}  // namespace

std::vector<ShownInput> shown_inputs(const Dataset& data, bool has_sample_rate) {
  const std::vector<DatasetPart> parts = data.inputs();
  const std::vector<NamedShape> shapes = data.input_shapes();
  std::vector<ShownInput> inputs;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const TextInfo* const text = parts[i].data->text();
    const Shape& shape = shapes[i].shape;
    ShownInput input{.input = shapes[i], .first = first};
    first += shape.num_elements();
    if (text != nullptr) {
      input.as = ShownInput::As::words;
      input.text = text;
    } else if (has_picture(shape)) {
      input.as = ShownInput::As::picture;
    } else if (has_sample_rate && is_sound(shape)) {
      input.as = ShownInput::As::sound;
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::string text_of(const ShownInput& input) {
  constexpr std::string_view kNames[] = {"pictures", "sounds", "words", "numbers"};
  return fmt::format("{}{}{} {}", kNames[static_cast<std::size_t>(input.as)],
                     input.input.name.empty() ? "" : " of ", input.input.name, input.input.shape.to_string());
}

std::string words_text(const TextInfo& text, std::span<const float> ids) {
  const Vocabulary& vocabulary = text.vocabulary;
  const bool of_bpe = text.tokenizer.unit == TokenUnit::bpe && !text.next_token_labels;
  const bool has_padding = of_bpe || (vocabulary.size() > 0 && vocabulary.word(0).text == kPaddingWord);
  std::vector<std::int32_t> words;
  for (const float value : ids) {
    const auto id = static_cast<std::int64_t>(value);
    if (id < 0 || id >= vocabulary.size() || (has_padding && id == text.padding_id)) continue;
    words.push_back(static_cast<std::int32_t>(id));
  }
  return shortened(escaped_word(text.text_of(words)), kMostCharacters);
}

std::string numbers_text(std::span<const float> values) {
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), kMostNumbers); ++i)
    text += fmt::format("{}{:.4g}", i > 0 ? ", " : "", values[i]);
  return values.size() > kMostNumbers ? text + fmt::format(", ... ({} numbers)", values.size()) : text;
}

std::vector<SummaryValue> sound_values(const std::string& name, const Shape& shape, std::vector<float> values,
                                       double sample_rate) {
  float largest = 1;
  for (float& value : values) {
    if (!std::isfinite(value)) value = 0;
    largest = std::max(largest, std::abs(value));
  }
  for (float& value : values) value /= largest;
  const std::int64_t frames = shape[0], channels = shape.rank() == 2 ? shape[1] : 1;
  const std::int64_t count = static_cast<std::int64_t>(values.size()) / shape.num_elements();
  // Tags are the same with one sample as with several.
  return audio_values(name, {count, frames, channels}, values, sample_rate,
                      static_cast<int>(std::max<std::int64_t>(count, 2)));
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '<') {
      cell += "&lt;";
    } else if (c == '&') {
      cell += "&amp;";
    } else if (c == '\n' || c == '\r') {
      cell += ' ';
    } else {
      if (std::string_view("\\`*_[]|").find(c) != std::string_view::npos) cell += '\\';
      cell += c;
    }
  }
  return cell;
}

}  // namespace lockstep
