// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense layers and convolutions on a GPU. If the GPU is emulated, the libraries are too: then these tests
// check that shapes, layouts, lanes and scratch are used as the interface requires, but not the calls of
// cuBLASLt and cuDNN.
#include "kernels/linear_cuda.h"

#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaLinear : public GpuTest {};

/// The error of a sum of k products in any order, with fused or separate rounding (Higham 2002, section 3.1).
double dot_error(std::int64_t k) { return static_cast<double>(k + 2) * kRounding; }

ConvolutionSpec convolution(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t in_c,
                            std::int64_t out_c, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                            std::int64_t groups = 1, std::int64_t dilation = 1) {
  ConvolutionSpec s;
  s.n = n, s.in_h = h, s.in_w = w, s.in_c = in_c, s.out_c = out_c;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_bottom = s.pad_left = s.pad_right = pad;
  s.dilation_h = s.dilation_w = dilation;
  s.groups = groups;
  s.out_h = (h + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  s.out_w = (w + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  return s;
}

/// Bottom and right have one more row of padding ("same" with stride 2), and the kernel is not square.
ConvolutionSpec asymmetric(std::int64_t n, std::int64_t in_c, std::int64_t out_c) {
  ConvolutionSpec s = convolution(n, 8, 10, in_c, out_c, 3, 2, 0);
  s.kernel_w = 5;
  s.pad_bottom = 1;
  s.pad_left = 1, s.pad_right = 2;
  s.out_h = (8 + 1 - 3) / 2 + 1;
  s.out_w = (10 + 3 - 5) / 2 + 1;
  return s;
}

/// A volume with depth padding at the back only.
ConvolutionSpec volume(std::int64_t n, std::int64_t in_c, std::int64_t out_c, std::int64_t stride,
                       std::int64_t back, std::int64_t groups = 1) {
  ConvolutionSpec s = convolution(n, 6, 5, in_c, out_c, 3, stride, 1, groups);
  s.in_d = 4, s.kernel_d = 2, s.stride_d = stride, s.pad_back = back;
  s.out_d = (4 + back - 2) / stride + 1;
  return s;
}

struct Results {
  std::vector<float> y, dx, dw;
};
Results run(const LinearPrimitive& primitive, const Values& x, const Values& dy, const Values& w,
            const Values& b) {
  const CudaLane lane(primitive.scratch_bytes());
  const OnDevice<unsigned char> packed(static_cast<std::int64_t>(primitive.packed_bytes()));
  const DeviceFloats dx(x), ddy(dy), dw(w), db(b), y(static_cast<std::int64_t>(dy.size())),
      gx(static_cast<std::int64_t>(x.size())), gw(static_cast<std::int64_t>(w.size()));
  primitive.pack(lane, dw.data(), packed.data());
  primitive.forward(lane, dx.data(), dw.data(), packed.data(), db.data(), y.data());
  primitive.backward_data(lane, ddy.data(), dw.data(), packed.data(), gx.data());
  primitive.backward_weights(lane, dx.data(), ddy.data(), gw.data());
  return {y.host(), gx.host(), gw.host()};
}
Values values_of(const std::vector<float>& numbers) { return {numbers.begin(), numbers.end()}; }

TEST_F(CudaLinear, ConvolutionsMatchTheReference) {
  for (ConvolutionSpec s :
       {convolution(2, 8, 8, 16, 16, 3, 1, 1), convolution(3, 9, 7, 3, 16, 3, 1, 1),
        convolution(2, 16, 16, 16, 32, 3, 2, 1), convolution(2, 9, 9, 16, 32, 1, 2, 0),
        convolution(1, 6, 6, 17, 33, 3, 2, 1), convolution(2, 10, 10, 16, 16, 3, 1, 2, 1, 2),
        convolution(2, 8, 8, 16, 32, 3, 1, 1, 4), convolution(1, 9, 9, 6, 6, 3, 2, 1, 6),
        asymmetric(2, 16, 16), asymmetric(1, 3, 5), volume(2, 16, 16, 1, 1), volume(1, 3, 5, 2, 0),
        volume(1, 6, 9, 1, 0, 3)})
    for (bool relu : {false, true}) {
      s.bias = s.in_c != 16;
      s.relu = relu;
      const std::string what = fmt::format(
          "n {} in {}x{}x{}x{} out_c {} kernel {}x{}x{} stride {} groups {} relu {}", s.n, s.in_d, s.in_h,
          s.in_w, s.in_c, s.out_c, s.kernel_d, s.kernel_h, s.kernel_w, s.stride_h, s.groups, s.relu);
      const Values x = random_values(s.n * s.in_positions() * s.in_c, 1),
                   dy = random_values(s.n * s.out_positions() * s.out_c, 2),
                   w = random_values(s.kernel_rows() * s.out_c, 3),
                   b = s.bias ? random_values(s.out_c, 4) : Values{};
      const auto primitive = gpu().make.convolution(s, 1);
      const Results r = run(*primitive, x, dy, w, b);
      const std::int64_t window = s.kernel_rows();
      ConvolutionSpec linear = s;
      linear.relu = false;
      expect_close(values_of(r.y), reference::convolution(s, x, w, b),
                   reference::convolution(linear, absolute(x), absolute(w), absolute(b)),
                   dot_error(window + 1), 0.0, "y " + what);
      expect_close(values_of(r.dx), reference::convolution_backward_data(s, dy, w),
                   reference::convolution_backward_data(s, absolute(dy), absolute(w)),
                   dot_error(s.kernel_d * s.kernel_h * s.kernel_w * s.out_c / s.groups), 0.0, "dx " + what);
      expect_close(values_of(r.dw), reference::convolution_backward_weights(s, x, dy),
                   reference::convolution_backward_weights(s, absolute(x), absolute(dy)),
                   dot_error(s.n * s.out_positions()), 0.0, "dw " + what);
      const Results again = run(*gpu().make.convolution(s, 1), x, dy, w, b);
      expect_same(again.y, r.y, "again, y " + what);
      expect_same(again.dx, r.dx, "again, dx " + what);
      expect_same(again.dw, r.dw, "again, dw " + what);
    }
}

TEST_F(CudaLinear, DenseLayersMatchTheReference) {
  struct Shape {
    std::int64_t n, in, out;
  };
  for (Shape shape :
       {Shape{1, 1, 1}, Shape{3, 17, 5}, Shape{32, 64, 10}, Shape{130, 33, 70}, Shape{7, 300, 128}})
    for (bool bias : {false, true})
      for (bool relu : {false, true}) {
        DenseSpec s;
        s.n = shape.n, s.in = shape.in, s.out = shape.out;
        s.bias = bias, s.relu = relu;
        const std::string what = fmt::format("{}x{}x{} bias {} relu {}", s.n, s.in, s.out, bias, relu);
        const Values x = random_values(s.n * s.in, 1), dy = random_values(s.n * s.out, 2),
                     w = random_values(s.in * s.out, 3), b = bias ? random_values(s.out, 4) : Values{};
        const Results r = run(*gpu().make.dense(s, 1), x, dy, w, b);
        DenseSpec linear = s;
        linear.relu = false;
        expect_close(values_of(r.y), reference::dense(s, x, w, b),
                     reference::dense(linear, absolute(x), absolute(w), absolute(b)), dot_error(s.in + 1),
                     0.0, "y " + what);
        expect_close(values_of(r.dx), reference::dense_backward_data(s, dy, w),
                     reference::dense_backward_data(s, absolute(dy), absolute(w)), dot_error(s.out), 0.0,
                     "dx " + what);
        expect_close(values_of(r.dw), reference::dense_backward_weights(s, x, dy),
                     reference::dense_backward_weights(s, absolute(x), absolute(dy)), dot_error(s.n), 0.0,
                     "dw " + what);
        const Results again = run(*gpu().make.dense(s, 1), x, dy, w, b);
        expect_same(again.y, r.y, "again, y " + what);
        expect_same(again.dx, r.dx, "again, dx " + what);
        expect_same(again.dw, r.dw, "again, dw " + what);
      }
}

TEST_F(CudaLinear, NanPassesThroughProductsBiasAndRelu) {
  DenseSpec s;
  s.n = 4, s.in = 8, s.out = 8;
  s.bias = s.relu = true;
  Values x = random_values(32, 1);
  x[9] = std::nan("");
  const Results r =
      run(*gpu().make.dense(s, 1), x, random_values(32, 2), random_values(64, 3), random_values(8, 4));
  for (std::size_t i = 0; i < r.y.size(); ++i) EXPECT_EQ(std::isnan(r.y[i]), i / 8 == 1) << i;
  ConvolutionSpec c = convolution(2, 4, 4, 4, 4, 1, 1, 0);
  c.bias = c.relu = true;
  Values image = random_values(128, 5);
  image[70] = std::nan("");
  const Results k = run(*gpu().make.convolution(c, 1), image, random_values(128, 6), random_values(16, 7),
                        random_values(4, 8));
  for (std::size_t i = 0; i < k.y.size(); ++i) EXPECT_EQ(std::isnan(k.y[i]), i / 4 == 70 / 4) << i;
}

TEST_F(CudaLinear, RejectsMissingTrainingAndScratch) {
  DenseSpec s;
  s.n = 64, s.in = 64, s.out = 64;
  s.training = false;
  const auto primitive = gpu().make.dense(s, 1);
  const DeviceFloats numbers(random_values(64 * 64, 1)), y(64 * 64);
  const CudaLane lane(primitive->scratch_bytes());
  EXPECT_THROW(primitive->backward_data(lane, numbers.data(), numbers.data(), nullptr, y.data()), Error);
  EXPECT_THROW(primitive->backward_weights(lane, numbers.data(), numbers.data(), y.data()), Error);
  if (primitive->scratch_bytes() > 0) {
    Lane none = lane.lane;
    none.scratch_bytes = 0;
    EXPECT_THROW(primitive->forward(none, numbers.data(), numbers.data(), nullptr, nullptr, y.data()), Error);
  }
}

TEST_F(CudaLinear, TransposesMoveAllNumbers) {
  const CudaLane lane(0);
  for (Size size : {Size{1, 1}, Size{3, 17}, Size{33, 32}, Size{100, 70}, Size{5, 4000}}) {
    const Values from = random_values(size.rows * size.channels, 1);
    Values expected(from.size());
    for (std::int64_t r = 0; r < size.rows; ++r)
      for (std::int64_t c = 0; c < size.channels; ++c)
        expected[static_cast<std::size_t>(c * size.rows + r)] =
            from[static_cast<std::size_t>(r * size.channels + c)];
    const DeviceFloats there(from), back(size.rows * size.channels), turned(size.rows * size.channels);
    cuda::transpose(lane, size.rows, size.channels, there.data(), turned.data());
    cuda::transpose(lane, size.channels, size.rows, turned.data(), back.data());
    EXPECT_EQ(turned.values(), expected) << describe(size);
    EXPECT_EQ(back.values(), from) << describe(size);
  }
}

TEST_F(CudaLinear, OneTablePerSetOfOptions) {
  EXPECT_NE(&cuda_kernels({true}), &cuda_kernels({false}));
  EXPECT_EQ(gpu().scratch_bytes, cuda::kScratchBytes);
}

TEST(CudaLibraries, ReportTheirVersionsWithoutAGpu) {
  const std::string versions = cuda_library_versions();
  EXPECT_NE(versions.find(", "), std::string::npos) << versions;
  EXPECT_GT(versions.size(), 10U) << versions;
}

}  // namespace
}  // namespace lockstep
