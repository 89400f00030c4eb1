// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// oneDNN behind the CPU primitives (private to this room): the engine, one call for every kind of primitive
// descriptor, and Execution, which runs a primitive on any lane without allocating anything itself. Whatever
// differs between oneDNN 2.5, 2.6 and 3.x is in onednn.cpp and here, nowhere else.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "kernels/lane.h"

namespace lockstep::onednn {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

/// The CPU engine. The first call caps oneDNN's instruction set at isa_level(), before oneDNN generates any
/// code.
const dnnl::engine& engine();

/// bfloat16 is multiplied by the processor's AVX-512 BF16: it has that, isa_level() allows it, and it is no
/// slower than float32 (or LOCKSTEP_BFLOAT16=avx512 asks for it). Elsewhere oneDNN's products of bfloat16
/// take up to four times as long as those of float32. Throws Error(config).
bool multiplies_bfloat16();
/// Why products of numbers of a 16-bit type are left to float32's; empty: they are not.
std::string why_not_multiplied(DType type);

/// "2.6.3".
std::string version();

/// Sets the calling thread's OpenMP thread count to one: primitives are created and executed so.
void use_one_thread();

/// Throws Error(device) that names `what` unless `status` is success.
void check(dnnl_status_t status, const char* what);

/// Numbers of a type of activations, of these extents in this layout; Tag::any lets the primitive choose.
Desc numbers(DType type, const Dims& extents, Tag tag);
inline Desc f32(const Dims& extents, Tag tag) { return numbers(DType::f32, extents, tag); }

/// Attributes of all our primitives: the scratchpad is brought by the lane.
dnnl::primitive_attr attributes();

struct ConvolutionDescs {
  Desc x, weights, bias, y;                      ///< bias of zero size: none; weights or their gradient
  Dims strides, dilations, pad_front, pad_back;  ///< dilation 1: dense
  bool training;
};
dnnl::convolution_forward::primitive_desc convolution_forward(const ConvolutionDescs& d,
                                                              const dnnl::primitive_attr& attr);
dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvolutionDescs& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward);
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvolutionDescs& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward);

/// y = x weights (+ bias, of zero size: none); matrices, each row-major or transposed.
struct MatmulDescs {
  Desc x, weights, bias, y;
};
dnnl::matmul::primitive_desc matmul(const MatmulDescs& d, const dnnl::primitive_attr& attr);

/// Calls make() with one OpenMP thread and turns oneDNN's exception into Error(device) that names `subject`.
template <typename Make>
auto create(const std::string& subject, const Make& make);
[[noreturn]] void throw_creation_failure(const std::string& subject, const dnnl::error& error);

/// A primitive with the memory objects that each lane needs to run it.
class Execution {
 public:
  struct Argument {
    int index;  ///< DNNL_ARG_*
    Desc desc;
  };
  static constexpr std::size_t kMaxArguments = 6;

  Execution() = default;
  Execution(const dnnl::primitive& primitive, const char* name, const std::vector<Argument>& arguments,
            int lanes);

  /// Runs on the lane's thread; one address per argument, in the order given at construction. Lanes may run
  /// at the same time.
  void run(const Lane& lane, std::initializer_list<const void*> addresses) const;

 private:
  struct alignas(64) LaneState {  // its own cache lines: lanes write here
    dnnl::stream stream;
    std::vector<dnnl::memory> memories;
    std::array<dnnl_exec_arg_t, kMaxArguments> arguments{};
    std::array<const void*, kMaxArguments> addresses{};
  };
  dnnl::primitive primitive_;
  const char* name_ = "";
  mutable std::vector<LaneState> lanes_;
};

template <typename Make>
auto create(const std::string& subject, const Make& make) {
  use_one_thread();
  engine();
  try {
    return make();
  } catch (const dnnl::error& error) {
    throw_creation_failure(subject, error);
  }
}

}  // namespace lockstep::onednn
