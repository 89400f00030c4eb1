// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All transforms. To add one: a file in transforms/ that defines its TransformEntry, a line here, a test, a
// line in docs/augmentation.md.
#include <algorithm>
#include <vector>

#include "data/transform.h"

namespace lockstep {

// One per line. Each entry is defined in its family's file in transforms/.
#define LOCKSTEP_TRANSFORMS(TRANSFORM)   \
  TRANSFORM(kNormalizeTransform)         \
  TRANSFORM(kScaleTransform)             \
  TRANSFORM(kClipTransform)              \
  TRANSFORM(kLogTransform)               \
  TRANSFORM(kStandardizeTransform)       \
  TRANSFORM(kCropTransform)              \
  TRANSFORM(kPadTransform)               \
  TRANSFORM(kResizeTransform)            \
  TRANSFORM(kRandomCropTransform)        \
  TRANSFORM(kRandomResizedCropTransform) \
  TRANSFORM(kRandomFlipTransform)        \
  TRANSFORM(kRandomSymmetryTransform)    \
  TRANSFORM(kRandomAffineTransform)      \
  TRANSFORM(kColorJitterTransform)       \
  TRANSFORM(kGrayscaleTransform)         \
  TRANSFORM(kRandomGrayscaleTransform)   \
  TRANSFORM(kRandomErasingTransform)     \
  TRANSFORM(kCutoutTransform)            \
  TRANSFORM(kRandomNoiseTransform)       \
  TRANSFORM(kRandAugmentTransform)       \
  TRANSFORM(kOneHotTransform)            \
  TRANSFORM(kLookupTransform)            \
  TRANSFORM(kTokenizeTransform)

#define LOCKSTEP_DECLARE(entry) extern const TransformEntry entry;
LOCKSTEP_TRANSFORMS(LOCKSTEP_DECLARE)
#undef LOCKSTEP_DECLARE

namespace {
std::vector<TransformEntry>& entries() {
#define LOCKSTEP_LIST(entry) entry,
  static std::vector<TransformEntry> table = {LOCKSTEP_TRANSFORMS(LOCKSTEP_LIST)};
#undef LOCKSTEP_LIST
  return table;
}
}  // namespace

std::span<const TransformEntry> transform_table() { return entries(); }

void register_transform(const TransformEntry& entry) {
  LOCKSTEP_REQUIRE(
      std::ranges::none_of(transform_table(),
                           [&](const TransformEntry& other) { return other.name == entry.name; }),
      ErrorKind::config, "a transform named '{}' exists already", entry.name);
  entries().push_back(entry);
}

}  // namespace lockstep
