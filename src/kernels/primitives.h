// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stateful primitives. A device creates a primitive for one shape (including the number of samples) and a
// number of lanes; any lane then executes it without allocation or locks. Weights are stored in the
// variable's plain layout and packed once per step into the layout that the primitive prefers; all lanes
// share the pack.
//
// A primitive's arithmetic depends on its shape alone: it is created and executed with one OpenMP thread, and
// both calls set the calling thread's OpenMP thread count to one. Activations, weights, packs and scratch are
// 64-byte aligned. NaN inputs produce NaN outputs. On the CPU, oneDNN itself makes about seven small
// allocations (under 400 bytes in total) per call, on the calling thread; Lockstep adds none.
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
/// out_c. An image is a volume of depth 1; a sequence is an image of height 1.
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

  /// True if the convolution has no extent along the depth.
  bool flat() const { return in_d == 1 && out_d == 1 && kernel_d == 1 && pad_front == 0 && pad_back == 0; }
  std::int64_t in_positions() const { return in_d * in_h * in_w; }  ///< per sample
  std::int64_t out_positions() const { return out_d * out_h * out_w; }
  /// Number of products summed in one element of y: the rows of the kernel seen as a matrix rows x out_c.
  std::int64_t kernel_rows() const { return kernel_d * kernel_h * kernel_w * (in_c / groups); }
};

/// A dense layer: y = x W + bias (then relu); x is n x in, W is in x out, row-major.
struct DenseSpec {
  std::int64_t n = 0, in = 0, out = 0;
  bool bias = false, relu = false, training = true;
  DType dtype = DType::f32;  ///< of activations and their gradients: f32, bf16 or f16
  /// y or dx is float32 for any dtype, for callers that add to it before rounding.
  bool wide_y = false, wide_dx = false;
  /// Pack the weights if the device can. This pays off if few rows are multiplied by the same weights many
  /// times in a step.
  bool packed = false;
  bool aligned = true;  ///< operands begin at multiples of 16 bytes; false: of 4 bytes

  DType y_type() const { return wide_y ? DType::f32 : dtype; }
  DType dx_type() const { return wide_dx ? DType::f32 : dtype; }
};

/// The interface of convolution and dense primitives. x, y, dy and dx have the spec's shapes and dtype;
/// weights, bias and dweights are always float32. With a 16-bit dtype, pack() rounds the weights to it,
/// products are of numbers of that type, sums and the bias are float32, and y and dx are rounded when stored.
/// `packed` is the output of pack().
class LinearPrimitive {
 public:
  virtual ~LinearPrimitive() = default;
  /// Lane scratch that the primitive needs.
  virtual std::size_t scratch_bytes() const = 0;
  /// Bytes of the packed weights (forward and backward). 0: the primitive uses the plain weights.
  virtual std::size_t packed_bytes() const = 0;
  /// True if this primitive can use `other`'s pack.
  virtual bool same_packing(const LinearPrimitive& other) const = 0;
  /// Packs the weights; call once per change of the weights.
  virtual void pack(const Lane&, const float* weights, void* packed) const = 0;
  /// y = op(x) + bias, then relu if the spec says so. `weights` are the plain weights. bias may be null if
  /// !spec.bias.
  virtual void forward(const Lane&, ConstData x, const float* weights, const void* packed, const float* bias,
                       Data y) const = 0;
  /// dx = gradient of x (overwritten). dy already includes relu's mask.
  virtual void backward_data(const Lane&, ConstData dy, const float* weights, const void* packed,
                             Data dx) const = 0;
  /// dweights = gradient of the weights in their plain layout (overwritten).
  /// ElementwiseKernels::mask_and_sum_rows computes the bias gradient.
  virtual void backward_weights(const Lane&, ConstData x, ConstData dy, float* dweights) const = 0;
  /// Multiplications and additions of one forward pass.
  virtual double flops() const = 0;
  /// Why products of 16-bit numbers are computed in float32 on widened numbers; empty: they are not.
  virtual std::string_view widened() const { return {}; }
};

class PoolPrimitive {
 public:
  virtual ~PoolPrimitive() = default;
  virtual std::size_t scratch_bytes() const = 0;
  /// Bytes that forward stores for backward (the positions of the maxima), per microshard in flight.
  virtual std::size_t saved_bytes() const = 0;
  /// x, y, dy and dx have the spec's dtype.
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
