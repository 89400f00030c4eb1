// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "dense_alone.h"

#include <algorithm>

#include "bench_memory.h"
#include "core/range.h"
#include "kernels/kernel_table.h"

namespace lockstep {

/// One thread's microshard. Each product has its own memory, as in a step.
class DenseAlone::Chain {
 public:
  Chain(const std::vector<Product>& products, std::int64_t rows, int lanes) {
    for (const auto& [in, out] : products) {
      Link link{cpu_kernels().make.dense({.n = rows, .in = in, .out = out, .bias = true}, lanes),
                bench_floats(in * out),
                bench_floats(in * out),
                bench_floats(out),
                bench_floats(rows * in),
                bench_floats(rows * in),
                bench_floats(rows * out),
                bench_floats(rows * out),
                {}};
      link.packed = Buffer(cpu_device(), link.product->packed_bytes());
      links_.push_back(std::move(link));
    }
  }
  std::size_t scratch_bytes() const {
    std::size_t most = 0;
    for (const Link& link : links_) most = std::max(most, link.product->scratch_bytes());
    return most;
  }
  void pack(const Lane& lane) {
    for (Link& link : links_) link.product->pack(lane, at(link.weights), link.packed.data());
  }
  void run(const Lane& lane) {
    for (Link& link : links_)
      link.product->forward(lane, at(link.x), at(link.weights), link.packed.data(), at(link.bias),
                            at(link.y));
    for (auto link = links_.rbegin(); link != links_.rend(); ++link) {
      link->product->backward_weights(lane, at(link->x), at(link->dy), at(link->dweights));
      link->product->backward_data(lane, at(link->dy), at(link->weights), link->packed.data(), at(link->dx));
    }
  }

 private:
  struct Link {
    std::unique_ptr<LinearPrimitive> product;
    Buffer weights, dweights, bias, x, dx, y, dy, packed;
  };
  static float* at(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }
  std::vector<Link> links_;
};

DenseAlone::DenseAlone(Workers& workers, std::vector<Product> products, std::int64_t rows,
                       std::int64_t microshards)
    : workers_(workers), microshards_(microshards) {
  const int threads = workers.pool().size();
  for (int t = 0; t < threads; ++t) chains_.push_back(std::make_unique<Chain>(products, rows, threads));
  workers.grow_scratch(chains_.front()->scratch_bytes());
  workers.pool().run([&](int t) {
    chains_[static_cast<std::size_t>(t)]->pack(workers.lanes()[static_cast<std::size_t>(t)]);
  });
  run();  // warm-up
}

DenseAlone::~DenseAlone() = default;

void DenseAlone::run() {
  workers_.pool().run([&](int t) {
    const Range part = part_of(microshards_, t, workers_.pool().size());
    for (std::int64_t i = part.first; i < part.last; ++i)
      chains_[static_cast<std::size_t>(t)]->run(workers_.lanes()[static_cast<std::size_t>(t)]);
  });
}

}  // namespace lockstep
