// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The measurements of kernel_rates: numbers in a device's memory, the time of a call, and the rows of the
// table. A time is the best of several measurements of many consecutive calls in one stream, by the host's
// clock. It is correct for calls that take longer on the device than their launch. Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "core/data.h"
#include "core/function_ref.h"
#include "kernels/backend.h"
#include "kernels/kernel_table.h"

namespace lockstep {

/// The type in which a matrix product or a convolution computes; passes over memory have no TF32.
struct ComputeType {
  DType dtype = DType::f32;
  bool tf32 = false;
  std::string_view name() const { return tf32 ? "tf32" : name_of(dtype); }
};

struct Rate {
  std::string kernel, shape, type;
  double seconds = 0, value = 0;
  std::string_view unit;  ///< GB/s of memory read and written, or TFLOP/s
  double share = 0;       ///< of the copy bandwidth, or of the GEMM rate in this type; 0: unknown
  std::string problem;    ///< why there is no value
};

struct RateOptions {
  int device = 0;
  bool tiny = false;  ///< small arrays, one call each, for a trial run
  std::string json;   ///< rewritten after every row; empty: no file
};

class RateBench {
 public:
  using Call = FunctionRef<void(const Lane&)>;

  RateBench(Backend& backend, const RateOptions& options);

  bool tiny() const { return options_.tiny; }
  Device& device() { return device_; }
  const KernelTable& kernels(const ComputeType& type = {}) const { return type.tf32 ? tf32_ : kernels_; }
  const Lane& lane() const { return lane_; }
  /// Raises a lane's scratch to at least this size.
  void grow_scratch(std::size_t bytes);

  /// `count` numbers from `low` to `low` + 1, none of them denormal.
  Buffer filled(std::int64_t count, DType type = DType::f32, float low = -0.5F);
  /// Copies these bytes to the device.
  Buffer uploaded(const void* from, std::size_t bytes);

  /// Each adds a row to the table. `bytes` and `flops` are per call. An exception of the call becomes the
  /// row's problem, and further rows go on.
  void copy(std::int64_t bytes);
  void bandwidth(std::string kernel, std::string shape, DType type, double bytes, Call call);
  void flops(std::string kernel, std::string shape, const ComputeType& type, double flops, Call call);
  /// The next flops() of each type becomes the reference for later ones of that type.
  void next_is_the_peak() { peak_next_ = true; }
  /// Adds a row without a value.
  void problem(std::string kernel, std::string shape, std::string_view type, const std::string& what);

  /// Rows with a problem so far.
  int failures() const { return failures_; }

 private:
  double seconds(Call call);
  void measure(Rate row, double work, double unit_size, Call call);
  void add(const Rate& row);
  double* reference(const Rate& row);
  void write() const;

  RateOptions options_;
  Device& device_;
  const KernelTable &kernels_, &tf32_;
  std::string description_;
  std::vector<std::pair<std::string, std::string>> versions_;
  DeviceStream stream_;
  Buffer scratch_;
  Lane lane_;
  std::vector<Rate> rows_;
  double copy_rate_ = 0;
  std::vector<std::pair<std::string, double>> peaks_;  // by type
  bool peak_next_ = false;
  int failures_ = 0;
};

/// The cases. `type` is the activation type.
void update_rates(RateBench& bench);
void pass_rates(RateBench& bench, DType type);
void sequence_pass_rates(RateBench& bench, DType type);
/// A large product, the peak of its type.
void gemm_rate(RateBench& bench, const ComputeType& type);
void dense_rates(RateBench& bench, const ComputeType& type);
void convolution_rates(RateBench& bench, const ComputeType& type);
void attention_rates(RateBench& bench, DType type);

}  // namespace lockstep
