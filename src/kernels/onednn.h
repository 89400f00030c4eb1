// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// oneDNN for the CPU primitives (private to this room): the engine, a creation function per kind of primitive
// descriptor, and Execution, which runs a primitive on any lane without allocations of its own. Only this
// header and onednn.cpp handle the differences between oneDNN 2.5, 2.6 and 3.x.
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

/// The CPU engine. The first call limits oneDNN's instruction set to isa_level(), before oneDNN generates any
/// code.
const dnnl::engine& engine();

/// True if bfloat16 products use the processor's AVX-512 BF16: the processor has it, isa_level() allows it,
/// and it is not slower than float32 (or LOCKSTEP_BFLOAT16=avx512 requests it). Otherwise oneDNN's bfloat16
/// products take up to four times as long as float32 ones. Throws Error(config).
bool multiplies_bfloat16();
/// Why products of numbers of a 16-bit type are computed in float32; empty: they are not.
std::string why_not_multiplied(DType type);

/// "2.6.3".
std::string version();

/// Sets the calling thread's OpenMP thread count to one. Primitives are created and executed with it.
void use_one_thread();

/// Throws Error(device) that contains `what` unless `status` is success.
void check(dnnl_status_t status, const char* what);

/// A memory descriptor for an activation type, with these extents and this layout. With Tag::any the
/// primitive chooses the layout.
Desc numbers(DType type, const Dims& extents, Tag tag);
inline Desc f32(const Dims& extents, Tag tag) { return numbers(DType::f32, extents, tag); }

/// Attributes of all our primitives: the lane provides the scratchpad.
dnnl::primitive_attr attributes();

struct ConvolutionDescs {
  Desc x, weights, bias, y;  ///< bias of zero size: none; weights are the weights or their gradient
  Dims strides, dilations, pad_front, pad_back;  ///< dilation 1: dense kernel
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

/// y = x weights (+ bias; of zero size: none). Each matrix is row-major or transposed.
struct MatmulDescs {
  Desc x, weights, bias, y;
};
dnnl::matmul::primitive_desc matmul(const MatmulDescs& d, const dnnl::primitive_attr& attr);

/// Calls make() with one OpenMP thread and converts oneDNN's exception to an Error(device) that names
/// `subject`.
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

  /// Runs on the lane's thread. `addresses` has one address per argument, in the order of construction.
  /// Several lanes may run at the same time.
  void run(const Lane& lane, std::initializer_list<const void*> addresses) const;

 private:
  struct alignas(64) LaneState {  // separate cache lines, since lanes write here
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
