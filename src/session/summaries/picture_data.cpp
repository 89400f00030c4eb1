// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/picture_data.h"

#include <utility>

namespace lockstep {

ImageData picture_data(const Picture& picture) {
  return {
      .height = picture.height, .width = picture.width, .channels = picture.channels, .png = png_of(picture)};
}

SummaryValue text_value(std::string tag, std::string markdown) {
  return {std::move(tag),
          TensorData{.dtype = SummaryDType::text, .shape = {}, .strings = {std::move(markdown)}},
          {.plugin = "text"}};
}

}  // namespace lockstep
