// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stateful primitives: made by the device for one shape (number of samples included), for a number of lanes,
// then executed by any lane without allocation or locks. Weights are kept in the variable's plain layout and
// packed once per step into the layout that the primitive prefers; the pack is shared by all lanes.
//
// A primitive's arithmetic depends on its shape alone: it is created and executed with one OpenMP thread
// (both set the calling thread's count to one). Activations, weights, packs and scratch are 64-byte aligned.
// NaN in gives NaN out. On the CPU, oneDNN itself makes about seven small allocations (under 400 bytes in
// all) per call, on the calling thread; Lockstep adds none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/data.h"
#include "core/dtype.h"
#include "kernels/lane.h"
#include "kernels/pool.h"

namespace lockstep {

/// Convolution of n volumes, channels last. The kernel is kernel_d x kernel_h x kernel_w x (in_c / groups) x
/// out_c. An image is a volume of depth 1, a sequence an image of height 1.
struct ConvolutionSpec {
  std::int64_t n = 0, in_d = 1, in_h = 1, in_w = 0, in_c = 0;
  std::int64_t out_d = 1, out_h = 1, out_w = 0, out_c = 0;
  std::int64_t kernel_d = 1, kernel_h = 1, kernel_w = 1, stride_d = 1, stride_h = 1, stride_w = 1;
  std::int64_t dilation_d = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t pad_front = 0, pad_back = 0, pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t groups = 1;
  bool bias = false;
  bool relu = false;         ///< y = max(conv + bias, 0); NaN stays NaN
  bool training = true;      ///< false: forward only
  DType dtype = DType::f32;  ///< of activations and their gradients: f32, bf16 or f16

  /// Nothing happens along the depth.
  bool flat() const { return in_d == 1 && out_d == 1 && kernel_d == 1 && pad_front == 0 && pad_back == 0; }
  std::int64_t in_positions() const { return in_d * in_h * in_w; }  ///< of a sample
  std::int64_t out_positions() const { return out_d * out_h * out_w; }
  /// Products that are added up in one element of y: rows of the kernel as a matrix rows x out_c.
  std::int64_t kernel_rows() const { return kernel_d * kernel_h * kernel_w * (in_c / groups); }
};

/// Rows times a matrix: y = x W + bias (then relu); x is n x in, W is in x out, row-major.
struct DenseSpec {
  std::int64_t n = 0, in = 0, out = 0;
  bool bias = false, relu = false, training = true;
  DType dtype = DType::f32;  ///< of activations and their gradients: f32, bf16 or f16
  /// y or dx is float32, whatever dtype is: for who adds to it before it is rounded.
  bool wide_y = false, wide_dx = false;
  /// Pack the weights if the device can: pays where few rows meet the same weights many times in a step.
  bool packed = false;
  bool aligned = true;  ///< operands begin at multiples of 16 bytes; false: of 4

  DType y_type() const { return wide_y ? DType::f32 : dtype; }
  DType dx_type() const { return wide_dx ? DType::f32 : dtype; }
};

/// The one interface of both. x, y, dy, dx as in the spec, in the spec's dtype; weights, bias and dweights
/// are float32 always. Where dtype has 16 bits, pack() rounds the weights to it, products are of numbers of
/// that type, sums and the bias are float32, and y and dx are rounded when stored. `packed` is what pack()
/// wrote.
class LinearPrimitive {
 public:
  virtual ~LinearPrimitive() = default;
  /// Scratch that a lane must bring.
  virtual std::size_t scratch_bytes() const = 0;
  /// Bytes of the packed weights (forward and backward); 0: the plain weights are used as they are.
  virtual std::size_t packed_bytes() const = 0;
  /// True if `other`'s pack can be used by this primitive.
  virtual bool same_packing(const LinearPrimitive& other) const = 0;
  /// Packs the weights; once per change of the weights.
  virtual void pack(const Lane&, const float* weights, void* packed) const = 0;
  /// y = op(x) + bias, then relu if the spec says so. `weights` are the plain ones. bias may be null if
  /// !spec.bias.
  virtual void forward(const Lane&, ConstData x, const float* weights, const void* packed, const float* bias,
                       Data y) const = 0;
  /// dx = gradient of x (overwritten). dy is already masked by relu.
  virtual void backward_data(const Lane&, ConstData dy, const float* weights, const void* packed,
                             Data dx) const = 0;
  /// dweights = gradient of the weights in their plain layout (overwritten). The bias gradient is
  /// ElementwiseKernels::mask_and_sum_rows.
  virtual void backward_weights(const Lane&, ConstData x, ConstData dy, float* dweights) const = 0;
  /// Multiplications and additions of one forward pass.
  virtual double flops() const = 0;
  /// Why products of 16-bit numbers are float32's of widened ones here; empty: they are not.
  virtual std::string_view widened() const { return {}; }
};

class PoolPrimitive {
 public:
  virtual ~PoolPrimitive() = default;
  virtual std::size_t scratch_bytes() const = 0;
  /// Bytes that forward leaves for backward (the positions of the maxima); per microshard in flight.
  virtual std::size_t saved_bytes() const = 0;
  /// x, y, dy and dx are of the spec's dtype.
  virtual void forward(const Lane&, ConstData x, Data y, void* saved) const = 0;
  virtual void backward(const Lane&, ConstData dy, const void* saved, Data dx) const = 0;
};

class PrimitiveFactory {
 public:
  virtual ~PrimitiveFactory() = default;
  virtual std::unique_ptr<LinearPrimitive> convolution(const ConvolutionSpec&, int lanes) const = 0;
  virtual std::unique_ptr<LinearPrimitive> dense(const DenseSpec&, int lanes) const = 0;
  virtual std::unique_ptr<PoolPrimitive> pool(const PoolSpec&, int lanes) const = 0;
};

}  // namespace lockstep
