// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the reduction (comm/node_arithmetic.h) by the kernels of a device.
#pragma once

#include "comm/node_arithmetic.h"
#include "kernels/elementwise.h"

namespace lockstep {

class KernelArithmetic final : public NodeArithmetic {
 public:
  explicit KernelArithmetic(const ElementwiseKernels& kernels) : kernels_(kernels) {}

  void add(void* stream, std::int64_t count, float* into, const float* from) const override {
    kernels_.accumulate({.stream = stream}, count, into, from);
  }
  void add_rounded(void* stream, std::int64_t count, float* into, const float* from,
                   bool total) const override {
    kernels_.accumulate_rounded({.stream = stream}, count, into, from, total);
  }
  void add_rounded(void* stream, std::int64_t count, float* into, const BFloat16* from,
                   bool total) const override {
    kernels_.accumulate_rounded({.stream = stream}, count, into, from, total);
  }
  void round(void* stream, std::int64_t count, float* values) const override {
    kernels_.round_to_bfloat16({.stream = stream}, count, values);
  }
  void narrow(void* stream, std::int64_t count, const float* from, BFloat16* to) const override {
    kernels_.convert({.stream = stream}, count, from, to);
  }
  void widen(void* stream, std::int64_t count, const BFloat16* from, float* to) const override {
    kernels_.convert({.stream = stream}, count, from, to);
  }

 private:
  const ElementwiseKernels& kernels_;
};

}  // namespace lockstep
