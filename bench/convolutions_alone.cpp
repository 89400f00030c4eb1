// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "convolutions_alone.h"

#include <algorithm>

#include "kernels/kernel_table.h"

namespace lockstep {

namespace {

/// Zeros and denormals would be another benchmark.
Buffer floats(std::int64_t count) {
  Buffer buffer(cpu_device(), static_cast<std::size_t>(count) * sizeof(float));
  const auto values = buffer.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 1000) * 1e-4F - 0.05F;
  return buffer;
}
float* data(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

ConvolutionSpec spec_of(const ConvolutionShape& shape, std::int64_t n) {
  ConvolutionSpec s;
  s.n = n;
  s.in_h = s.in_w = shape.in_size;
  s.in_c = shape.in_c, s.out_c = shape.out_c;
  s.out_h = s.out_w = shape.in_size / shape.stride;
  s.kernel_h = s.kernel_w = shape.kernel;
  s.stride_h = s.stride_w = shape.stride;
  const std::int64_t padding =
      std::max<std::int64_t>(0, shape.kernel - shape.stride);  // "same" of even sizes
  s.pad_top = s.pad_left = padding / 2;
  s.pad_bottom = s.pad_right = padding - padding / 2;
  return s;
}

}  // namespace

/// One thread's microshard: activations of its own, weights shared.
class ConvolutionsAlone::Chain {
 public:
  Chain(const std::vector<ConvolutionShape>& shapes, std::int64_t n, int lanes) : shapes_(shapes) {
    std::int64_t largest = 0;
    activations_.push_back(floats(n * 32 * 32 * 3));
    for (const ConvolutionShape& shape : shapes) {
      const ConvolutionSpec s = spec_of(shape, n);
      primitives_.push_back(cpu_kernels().make.convolution(s, lanes));
      const std::int64_t in = n * s.in_h * s.in_w * s.in_c, out = n * s.out_h * s.out_w * s.out_c,
                         weights = s.kernel_h * s.kernel_w * s.in_c * s.out_c;
      activations_.push_back(floats(out));
      weights_.push_back(floats(weights));
      gradients_.push_back(floats(weights));
      packed_.push_back(Buffer(cpu_device(), primitives_.back()->packed_bytes()));
      largest = std::max({largest, in, out});
      scratch_bytes_ = std::max(scratch_bytes_, primitives_.back()->scratch_bytes());
    }
    dy_ = floats(largest);
    dx_ = floats(largest);
  }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  void pack(const Lane& lane) {
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      primitives_[i]->pack(lane, data(weights_[i]), packed_[i].data());
  }
  void run(const Lane& lane) {
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      primitives_[i]->forward(lane, input(i), data(weights_[i]), packed_[i].data(), nullptr,
                              data(activations_[i + 1]));
    for (std::size_t i = shapes_.size(); i-- > 0;) {
      // One gradient that is always the same: a chain of them would fade to denormals.
      primitives_[i]->backward_weights(lane, input(i), data(dy_), data(gradients_[i]));
      // Nobody wants the gradient of the images.
      if (i > 0)
        primitives_[i]->backward_data(lane, data(dy_), data(weights_[i]), packed_[i].data(), data(dx_));
    }
  }

 private:
  const float* input(std::size_t i) const {
    return data(activations_[static_cast<std::size_t>(shapes_[i].input)]);
  }

  const std::vector<ConvolutionShape>& shapes_;
  std::vector<std::unique_ptr<LinearPrimitive>> primitives_;
  std::vector<Buffer> activations_, weights_, gradients_, packed_;
  Buffer dy_, dx_;
  std::size_t scratch_bytes_ = 0;
};

ConvolutionsAlone::ConvolutionsAlone(Workers& workers, std::int64_t n, std::int64_t microshards)
    : workers_(workers), microshards_(microshards), shapes_(resnet20_convolutions()) {
  const int threads = workers.pool().size();
  for (int t = 0; t < threads; ++t) chains_.push_back(std::make_unique<Chain>(shapes_, n, threads));
  workers.grow_scratch(chains_.front()->scratch_bytes());
  workers.pool().run([&](int t) {
    chains_[static_cast<std::size_t>(t)]->pack(workers.lanes()[static_cast<std::size_t>(t)]);
  });
  run();  // warm
}

ConvolutionsAlone::~ConvolutionsAlone() = default;

void ConvolutionsAlone::run() {
  workers_.pool().run([&](int t) {
    const Range part = part_of(microshards_, t, workers_.pool().size());
    for (std::int64_t i = part.first; i < part.last; ++i)
      chains_[static_cast<std::size_t>(t)]->run(workers_.lanes()[static_cast<std::size_t>(t)]);
  });
}

}  // namespace lockstep
