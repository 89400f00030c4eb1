// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "convolutions_alone.h"

#include <algorithm>
#include <utility>

#include "core/range.h"
#include "kernels/kernel_table.h"
#include "kernels/transposed_convolution.h"

namespace lockstep {

namespace {

/// Numbers without zeros and denormals, which have a different speed.
Buffer floats(std::int64_t count) {
  Buffer buffer(cpu_device(), static_cast<std::size_t>(count) * sizeof(float));
  const auto values = buffer.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 1000) * 1e-4F - 0.05F;
  return buffer;
}
float* data(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

}  // namespace

/// One thread's microshard, with its own activations; weights are shared.
class ConvolutionsAlone::Chain {
 public:
  Chain(const std::vector<BenchConvolution>& convolutions, std::int64_t n, int lanes)
      : convolutions_(convolutions) {
    std::int64_t largest = 0;
    for (const BenchConvolution& convolution : convolutions) {
      ConvolutionSpec s = convolution.spec;
      s.n = n;
      primitives_.push_back(convolution.transposed ? make_transposed_convolution(cpu_kernels(), s, lanes)
                                                   : cpu_kernels().make.convolution(s, lanes));
      std::int64_t in = n * s.in_positions() * s.in_c, out = n * s.out_positions() * s.out_c;
      if (convolution.transposed) std::swap(in, out);
      const std::int64_t weights = s.kernel_rows() * s.out_c;
      if (outputs_.empty()) features_ = floats(in);
      outputs_.push_back(floats(out));
      own_inputs_.push_back(floats(convolution.input == kOwnInput ? in : 0));
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
    for (std::size_t i = 0; i < convolutions_.size(); ++i)
      primitives_[i]->pack(lane, data(weights_[i]), packed_[i].data());
  }
  void run(const Lane& lane) {
    for (std::size_t i = 0; i < convolutions_.size(); ++i)
      primitives_[i]->forward(lane, input(i), data(weights_[i]), packed_[i].data(), nullptr,
                              data(outputs_[i]));
    for (std::size_t i = convolutions_.size(); i-- > 0;) {
      // The same gradient for every convolution: a chain of gradients would fade to denormals.
      primitives_[i]->backward_weights(lane, input(i), data(dy_), data(gradients_[i]));
      // The gradient of the features is not needed.
      if (convolutions_[i].input != 0)
        primitives_[i]->backward_data(lane, data(dy_), data(weights_[i]), packed_[i].data(), data(dx_));
    }
  }

 private:
  const float* input(std::size_t i) const {
    const int from = convolutions_[i].input;
    return data(from == kOwnInput ? own_inputs_[i]
                : from == 0       ? features_
                                  : outputs_[static_cast<std::size_t>(from - 1)]);
  }

  const std::vector<BenchConvolution>& convolutions_;
  std::vector<std::unique_ptr<LinearPrimitive>> primitives_;
  std::vector<Buffer> outputs_, own_inputs_, weights_, gradients_, packed_;
  Buffer features_, dy_, dx_;
  std::size_t scratch_bytes_ = 0;
};

ConvolutionsAlone::ConvolutionsAlone(Workers& workers, std::vector<BenchConvolution> convolutions,
                                     std::int64_t n, std::int64_t microshards)
    : workers_(workers), microshards_(microshards), convolutions_(std::move(convolutions)) {
  const int threads = workers.pool().size();
  for (int t = 0; t < threads; ++t) chains_.push_back(std::make_unique<Chain>(convolutions_, n, threads));
  workers.grow_scratch(chains_.front()->scratch_bytes());
  workers.pool().run([&](int t) {
    chains_[static_cast<std::size_t>(t)]->pack(workers.lanes()[static_cast<std::size_t>(t)]);
  });
  run();  // warm-up
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
