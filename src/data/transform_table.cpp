// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All transforms. To add one: a file in transforms/ that defines its TransformEntry, a line here, a test, a
// line in docs/augmentation.md.
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
  TRANSFORM(kBlurTransform)              \
  TRANSFORM(kRandomBlurTransform)        \
  TRANSFORM(kRandAugmentTransform)       \
  TRANSFORM(kTrivialAugmentTransform)    \
  TRANSFORM(kStepsToChannelsTransform)   \
  TRANSFORM(kOneHotTransform)            \
  TRANSFORM(kLookupTransform)            \
  TRANSFORM(kTokenizeTransform)

LOCKSTEP_TABLE(TransformEntry, transform_table, "transform", LOCKSTEP_TRANSFORMS)

}  // namespace lockstep
