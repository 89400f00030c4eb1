// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/config_reference.h"

#include <gmock/gmock.h>

#include "run/sections/config_tables.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(ConfigReference, NamesEveryOptionAndOtherTables) {
  constexpr ParamSpec table[] = {
      {"padding", ParamType::string, "same", one_of("same|valid"), "what lies beyond the border"}};
  const ReferenceSection layer{"Layer conv2d", "Convolution.", table};
  const std::string text = config_reference(std::span(&layer, 1));
  for (const ConfigSection& section : config_sections())
    for (const ParamSpec& spec : section.table)
      EXPECT_THAT(text, HasSubstr("| `" + std::string(spec.name) + "` | "));
  EXPECT_THAT(text, HasSubstr("\n## Layer conv2d\n\nConvolution.\n\n| key |"));
  EXPECT_THAT(text,
              HasSubstr("| `padding` | text | `same` | same\\|valid | what lies beyond the border |\n"));
  EXPECT_THAT(text, HasSubstr("| `batch_size` | whole number | required | [1, 2147483647] samples |"));
}

}  // namespace
}  // namespace lockstep
