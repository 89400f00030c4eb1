// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The output shapes of convolutions, pools and resizing layers, and their error messages.
#include "model/layers/window.h"

#include <gmock/gmock.h>

#include "model_testing.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string shape_of(const std::string& yaml, const Shape& input) {
  return layer_from(yaml)->infer(std::vector<Shape>{input}).at(0).to_string();
}

std::string error_of(const std::string& yaml, const std::vector<Shape>& inputs) {
  try {
    layer_from(yaml)->infer(inputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}

TEST(SpatialShapes, OfConvolutions) {
  EXPECT_EQ(shape_of("conv1d: {filters: 4, kernel: 5, stride: 3}", Shape{17, 2}), "6x4");
  EXPECT_EQ(shape_of("conv1d: {filters: 4, kernel: 5, padding: valid}", Shape{17, 2}), "13x4");
  EXPECT_EQ(shape_of("conv3d: {filters: 4, kernel: 3, stride: [1, 2, 3]}", Shape{8, 8, 8, 2}), "8x4x3x4");
  EXPECT_EQ(shape_of("conv3d: {filters: 4, kernel: 3, padding: [0, 1, 0, 0, 2, 2]}", Shape{8, 8, 8, 2}),
            "7x6x10x4");
}

TEST(SpatialShapes, CircularAxesKeepTheShape) {
  EXPECT_EQ(shape_of("conv2d: {filters: 4, kernel: 3, circular: width}", Shape{5, 6, 2}), "5x6x4");
  EXPECT_EQ(shape_of("max_pool: {window: 3, stride: 2, padding: same, circular: all}", Shape{5, 6, 2}),
            "3x3x2");
  EXPECT_EQ(shape_of("pad: {padding: [1, 2], circular: steps}", Shape{5, 2}), "8x2");
  EXPECT_THAT(error_of("conv2d: {filters: 4, kernel: 3, padding: circular}", {Shape{5, 6, 2}}),
              HasSubstr("circular: all"));
  EXPECT_EQ(shape_of("conv2d: {filters: 4, kernel: 3, padding: same, circular: all}", Shape{5, 6, 2}),
            "5x6x4");
  EXPECT_THAT(error_of("conv2d: {filters: 4, kernel: 3, circular: longitude}", {Shape{5, 6, 2}}),
              AllOf(HasSubstr("'longitude'"), HasSubstr("height and width")));
  EXPECT_THAT(error_of("conv1d: {filters: 4, kernel: 3, circular: width}", {Shape{6, 2}}),
              HasSubstr("which has steps"));
  EXPECT_THAT(error_of("conv1d: {filters: 4, kernel: 7, padding: [6, 0], circular: steps}", {Shape{5, 2}}),
              HasSubstr("6 and 0 elements is more than the 5"));
  EXPECT_THAT(error_of("pad: {padding: [6, 0], circular: steps}", {Shape{5, 2}}),
              HasSubstr("6 and 0 elements is more than the 5"));
}

/// stride * (in - 1) + dilation * (kernel - 1) + 1 - before - after + output_padding; same: stride * in.
TEST(SpatialShapes, OfTransposedConvolutions) {
  const Shape in{5, 3, 2};
  EXPECT_EQ(shape_of("conv2d_transpose: {filters: 4, kernel: 3, stride: 2}", in), "10x6x4");
  EXPECT_EQ(shape_of("conv2d_transpose: {filters: 4, kernel: 1, stride: 3}", in), "15x9x4");
  EXPECT_EQ(shape_of("conv2d_transpose: {filters: 4, kernel: 3, stride: 2, padding: valid}", in), "11x7x4");
  EXPECT_EQ(shape_of("conv2d_transpose: {filters: 4, kernel: 3, stride: 2, padding: [1, 1, 1, 1]}", in),
            "9x5x4");
  EXPECT_EQ(shape_of("conv2d_transpose: {filters: 4, kernel: 3, stride: 2, padding: [1, 1, 1, 1], "
                     "output_padding: 1}",
                     in),
            "10x6x4");
  EXPECT_EQ(shape_of("conv2d_transpose: {filters: 4, kernel: 3, dilation: [2, 1], padding: valid}", in),
            "9x5x4");
  EXPECT_EQ(
      shape_of("conv3d_transpose: {filters: 4, kernel: 2, stride: 2, padding: valid}", Shape{2, 3, 4, 1}),
      "4x6x8x4");
}

TEST(SpatialShapes, OfPoolsFollowTheRank) {
  EXPECT_EQ(shape_of("max_pool", Shape{17, 3}), "8x3");
  EXPECT_EQ(shape_of("max_pool", Shape{7, 6, 3}), "3x3x3");
  EXPECT_EQ(shape_of("avg_pool: {window: [1, 2, 4], padding: same}", Shape{3, 3, 6, 5}), "3x2x2x5");
  EXPECT_EQ(shape_of("global_max_pool", Shape{3, 3, 6, 5}), "5");
  EXPECT_EQ(shape_of("upsample: {factor: [1, 3]}", Shape{3, 2, 5}), "3x6x5");
  EXPECT_EQ(shape_of("pad: {padding: [1, 2]}", Shape{3, 2}), "6x2");
  EXPECT_EQ(shape_of("crop: {cropping: [1, 0, 0, 2]}", Shape{3, 5, 2}), "2x3x2");
}

TEST(SpatialErrors, WrongRankNamesExpectedAndActual) {
  EXPECT_THAT(error_of("conv1d: {name: c, filters: 4, kernel: 3}", {Shape{5, 5, 1}}),
              AllOf(HasSubstr("layer c"),
                    HasSubstr("conv1d takes one input of steps x channels per sample, not 5x5x1")));
  EXPECT_THAT(
      error_of("conv3d: {name: c, filters: 4, kernel: 3}", {Shape{5, 5, 1}}),
      HasSubstr(
          "conv3d takes one input of depth x height x width x channels per sample, not 5x5x1; the layer "
          "reshape: {shape: [5, 5, 1, 1]} before it makes them samples of one channel"));
  EXPECT_THAT(error_of("conv2d_transpose: {filters: 4, kernel: 3}", {Shape{5}}),
              HasSubstr("conv2d_transpose takes one input of height x width x channels per sample, not 5"));
  EXPECT_THAT(error_of("conv2d: {filters: 4, kernel: 3}", {Shape{5, 5, 1}, Shape{5, 5, 1}}),
              HasSubstr("not 2 inputs"));
  EXPECT_THAT(error_of("max_pool: {name: p}", {Shape{5}}), AllOf(HasSubstr("layer p"), HasSubstr("not 5")));
  EXPECT_THAT(error_of("max_pool", {Shape{2, 2, 2, 2, 2}}), HasSubstr("not 2x2x2x2x2"));
  EXPECT_THAT(error_of("global_max_pool", {Shape{5}}), HasSubstr("space x channels per sample, not 5"));
  EXPECT_THAT(
      error_of("upsample: {method: bilinear}", {Shape{5, 2}}),
      HasSubstr("bilinear upsample takes one input of height x width x channels per sample, not 5x2"));
  EXPECT_THAT(error_of("pad: {padding: [1, 1]}", {Shape{5}}), HasSubstr("not 5"));
}

TEST(SpatialErrors, NumbersPerAxisMustFitTheInput) {
  EXPECT_THAT(error_of("max_pool: {name: p, window: [2, 2]}", {Shape{6, 6, 6, 1}}),
              HasSubstr("layer p: window has 2 numbers, but the input has 3 spatial axes"));
  EXPECT_THAT(error_of("upsample: {factor: [2, 2, 2]}", {Shape{6, 6, 1}}),
              HasSubstr("factor has 3 numbers, but the input has 2 spatial axes"));
  EXPECT_THAT(error_of("pad: {name: p, padding: [1, 1]}", {Shape{6, 6, 1}}),
              HasSubstr("layer p: explicit padding is [top, bottom, left, right]"));
  EXPECT_THAT(error_of("crop: {cropping: 1}", {Shape{6, 1}}),
              HasSubstr("explicit cropping is [before, after]"));
  EXPECT_THAT(error_of("avg_pool: {padding: [1, 1]}", {Shape{6, 6, 6, 1}}),
              HasSubstr("explicit padding is [front, back, top, bottom, left, right]"));
  EXPECT_THAT(error_of("conv3d: {filters: 1, kernel: [3, 3]}", {Shape{6, 6, 6, 1}}),
              HasSubstr("'kernel' must be one number of at least 1, or three: [depth, height, width]"));
  EXPECT_THAT(error_of("conv1d: {filters: 1, kernel: [3, 3]}", {Shape{6, 1}}),
              HasSubstr("'kernel' must be one number of at least 1"));
  EXPECT_THAT(error_of("conv2d: {filters: 1, kernel: 3, stride: 0}", {Shape{6, 6, 1}}),
              HasSubstr("stride: must be [1, 65536], but is 0"));
  EXPECT_THAT(error_of("conv2d: {filters: 1, kernel: 3, stride: [1, 1, 1]}", {Shape{6, 6, 1}}),
              HasSubstr("'stride' must be one number of at least 1, or two: [height, width]"));
  EXPECT_THAT(error_of("max_pool: {window: [2, 2, 2, 2]}", {Shape{6, 6, 1}}),
              HasSubstr("'window' must be one number of at least 1, or one per axis"));
}

TEST(SpatialErrors, EmptyOutputsAreRejected) {
  EXPECT_THAT(error_of("crop: {cropping: [2305843009213693952, 6917529027641081856]}", {Shape{6, 1}}),
              HasSubstr("cropping must be at most 2147483648"));
  EXPECT_THAT(error_of("crop: {name: c, cropping: [2147483648, 2147483648]}", {Shape{6, 1}}),
              HasSubstr("layer c: cropping 2147483648 and 2147483648 of 6 elements leaves nothing"));
  EXPECT_THAT(error_of("conv3d: {name: c, filters: 4, kernel: 3, padding: valid}", {Shape{5, 2, 5, 1}}),
              HasSubstr("layer c: a window of 3 does not fit into 2 (with padding)"));
  EXPECT_THAT(
      error_of("conv2d_transpose: {name: c, filters: 4, kernel: 3, padding: [3, 0, 0, 0]}", {Shape{1, 1, 1}}),
      HasSubstr("layer c: padding of 3 and 0 leaves nothing of the 3 elements that the windows reach"));
  EXPECT_THAT(error_of("crop: {name: c, cropping: [3, 2]}", {Shape{5, 1}}),
              HasSubstr("layer c: cropping 3 and 2 of 5 elements leaves nothing"));
  EXPECT_THAT(error_of("max_pool: {window: 2, padding: [2, 0, 0, 0]}", {Shape{5, 5, 1}}),
              HasSubstr("padding must be smaller than the window"));
  EXPECT_THAT(error_of("conv2d: {filters: 4, kernel: 3, padding: around}", {Shape{5, 5, 1}}),
              AllOf(HasSubstr("unknown padding 'around'"), HasSubstr("[top, bottom, left, right]")));
  EXPECT_THAT(error_of("conv1d: {filters: 4, kernel: 3, padding: [1, -1]}", {Shape{5, 1}}),
              HasSubstr("padding must be whole numbers that are not negative"));
}

TEST(SpatialErrors, ContradictoryOptionsAreRejected) {
  EXPECT_THAT(
      error_of("conv2d_transpose: {filters: 4, kernel: 3, stride: 2, padding: valid, output_padding: 2}",
               {Shape{5, 5, 1}}),
      HasSubstr("output_padding 2 must be smaller than the stride 2"));
  EXPECT_THAT(
      error_of("conv2d_transpose: {filters: 4, kernel: 3, stride: 2, output_padding: 1}", {Shape{5, 5, 1}}),
      HasSubstr("output_padding is for valid and explicit padding"));
  EXPECT_THAT(error_of("conv3d: {name: c, filters: 4, kernel: 3, groups: 3}", {Shape{5, 5, 5, 3}}),
              HasSubstr("layer c: with 3 groups, input channels (3) and filters (4)"));
  EXPECT_THAT(error_of("conv2d_transpose: {filters: 4, kernel: 3, groups: 2}", {Shape{5, 5, 3}}),
              HasSubstr("with 2 groups, input channels (3) and filters (4)"));
  EXPECT_THAT(error_of("upsample: {align_corners: true}", {Shape{5, 5, 1}}),
              HasSubstr("align_corners is for bilinear interpolation only"));
  EXPECT_THAT(error_of("upsample: {method: cubic}", {Shape{5, 5, 1}}), HasSubstr("cubic"));
}

}  // namespace
}  // namespace lockstep
