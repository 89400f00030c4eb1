// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/onednn.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/cpu.h"
#include "core/error.h"
#include "kernels/not_supported.h"
#include "kernels/openmp_threads.h"

namespace lockstep::onednn {
namespace {

dnnl::engine make_engine() {
  dnnl::cpu_isa isa = dnnl::cpu_isa::sse41;
  if (isa_level() == IsaLevel::avx2) isa = dnnl::cpu_isa::avx2;
  // If the processor has more than the AVX-512 core, float32 has the same bits with and without this limit.
  if (isa_level() == IsaLevel::avx512) isa = dnnl::cpu_isa::avx512_core_bf16;
#if defined(__x86_64__)
  LOCKSTEP_REQUIRE(
      dnnl::set_max_cpu_isa(isa) == dnnl::status::success, ErrorKind::device,
      "oneDNN's instruction set cannot be limited to {}: oneDNN was used before Lockstep's first kernel",
      name_of(isa_level()));
#endif
  return {dnnl::engine::kind::cpu, 0};
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu = make_engine();
  return cpu;
}

namespace {

bool can_multiply_bfloat16() {
#if defined(__x86_64__)
  engine();
  return isa_level() == IsaLevel::avx512 && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

/// AMX: on such a processor AVX-512 multiplies bfloat16 more slowly than float32 (measured on one:
/// docs/precision.md). oneDNN 2.6.3 itself ends some dense products with an illegal instruction if it uses
/// AMX, so engine() limits its instruction set.
bool has_amx() {
#if defined(__x86_64__)
  constexpr unsigned int kFeatures = 7, kAmxBfloat16 = 1U << 22;  // Intel SDM, CPUID, leaf 7, EDX
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kAmxBfloat16) != 0;
#else
  return false;
#endif
}

bool chosen_for_bfloat16() {
  const char* wanted = std::getenv("LOCKSTEP_BFLOAT16");
  if (wanted == nullptr || *wanted == '\0') return can_multiply_bfloat16() && !has_amx();
  if (std::string_view(wanted) == "avx512") return can_multiply_bfloat16();
  if (std::string_view(wanted) == "widened") return false;
  throw Error(ErrorKind::config, fmt::format("'{}' is not a way to multiply bfloat16", wanted),
              "environment variable LOCKSTEP_BFLOAT16", "Use avx512 or widened, or unset it.");
}

}  // namespace

bool multiplies_bfloat16() {
  static const bool chosen = chosen_for_bfloat16();
  return chosen;
}

std::string why_not_multiplied(DType type) {
  if (type == DType::f32 || (type == DType::bf16 && multiplies_bfloat16())) return "";
  if (type == DType::bf16 && can_multiply_bfloat16())
    return std::getenv("LOCKSTEP_BFLOAT16") != nullptr
               ? "LOCKSTEP_BFLOAT16=widened is set"
               : "this processor multiplies bfloat16 slower than float32";
  return fmt::format("this processor cannot multiply {}", name_of(type));
}

Desc numbers(DType type, const Dims& extents, Tag tag) {
  LOCKSTEP_CHECK(type == DType::f32 || type == DType::bf16, "oneDNN with {}", name_of(type));
  using Type = dnnl::memory::data_type;
  return {extents, type == DType::f32 ? Type::f32 : Type::bf16, tag};
}

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

void use_one_thread() { use_one_openmp_thread(); }

void check(dnnl_status_t status, const char* what) {
  LOCKSTEP_REQUIRE(status == dnnl_success, ErrorKind::device, "oneDNN failed in {} with status {}", what,
                   static_cast<int>(status));
}

void throw_creation_failure(const std::string& subject, const dnnl::error& error) {
  std::string text = fmt::format("oneDNN {} cannot create {}: {}", version(), subject, error.what());
  if (error.status == dnnl_unimplemented) throw NotSupported(ErrorKind::device, std::move(text));
  throw Error(ErrorKind::device, std::move(text));
}

Execution::Execution(const dnnl::primitive& primitive, const char* name,
                     const std::vector<Argument>& arguments, int lanes)
    : primitive_(primitive), name_(name), lanes_(static_cast<std::size_t>(lanes)) {
  LOCKSTEP_CHECK(arguments.size() <= kMaxArguments, "{} arguments", arguments.size());
  for (LaneState& lane : lanes_) {
    lane.stream = dnnl::stream(engine());
    lane.memories.reserve(arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      lane.memories.emplace_back(arguments[i].desc, engine(), nullptr);
      lane.arguments[i] = {arguments[i].index, lane.memories.back().get()};
    }
  }
}

void Execution::run(const Lane& lane, std::initializer_list<const void*> addresses) const {
  LOCKSTEP_CHECK(lane.index >= 0 && static_cast<std::size_t>(lane.index) < lanes_.size(), "{}: lane {} of {}",
                 name_, lane.index, lanes_.size());
  LaneState& state = lanes_[static_cast<std::size_t>(lane.index)];
  LOCKSTEP_CHECK(addresses.size() == state.memories.size(), "{}: {} addresses for {} arguments", name_,
                 addresses.size(), state.memories.size());
  use_one_thread();
  std::size_t i = 0;
  for (const void* address : addresses) {
    if (state.addresses[i] != address) {
      check(dnnl_memory_set_data_handle(state.memories[i].get(), const_cast<void*>(address)), name_);
      state.addresses[i] = address;
    }
    ++i;
  }
  check(dnnl_primitive_execute(primitive_.get(), state.stream.get(), static_cast<int>(addresses.size()),
                               state.arguments.data()),
        name_);
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 4)
  attr.set_deterministic(true);
#endif
  return attr;
}

namespace {

dnnl::prop_kind forward_kind(bool training) {
  return training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
}
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// Converts dilations to oneDNN's convention, in which 0 is dense.
Dims from_zero(Dims dilations) {
  for (auto& dilation : dilations) dilation -= 1;
  return dilations;
}

}  // namespace

#if DNNL_VERSION_MAJOR >= 3

dnnl::convolution_forward::primitive_desc convolution_forward(const ConvolutionDescs& d,
                                                              const dnnl::primitive_attr& attr) {
  return {engine(),  forward_kind(d.training), kDirect,     d.x,        d.weights, d.bias, d.y,
          d.strides, from_zero(d.dilations),   d.pad_front, d.pad_back, attr};
}
dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvolutionDescs& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine(),    kDirect,    d.x,     d.weights, d.y, d.strides, from_zero(d.dilations),
          d.pad_front, d.pad_back, forward, attr};
}
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvolutionDescs& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine(),    kDirect,    d.x,     d.weights, d.y, d.strides, from_zero(d.dilations),
          d.pad_front, d.pad_back, forward, attr};
}

dnnl::matmul::primitive_desc matmul(const MatmulDescs& d, const dnnl::primitive_attr& attr) {
  return {engine(), d.x, d.weights, d.bias, d.y, attr};
}

#else

namespace {

/// The 1x1 kernels of oneDNN 2.6.3 for AVX2 move whole vectors of 8 channels, and whole strides, where the
/// stride is above 1. Where these are incomplete, they read and write past the end of the activations: seen
/// as a crash, with a transposed convolution of 8 x 8 x 4 to 16 x 16 x 4.
bool leaves_its_memory(const ConvolutionDescs& d, std::string_view implementation) {
  if (implementation.find("1x1") == std::string_view::npos ||
      implementation.find("avx2") == std::string_view::npos)
    return false;
  const dnnl::memory::dims x = d.x.dims(), y = d.y.dims();
  bool is_strided = false, is_incomplete = x[1] % 8 != 0 || y[1] % 8 != 0;
  for (std::size_t axis = 0; axis < d.strides.size(); ++axis) {
    is_strided = is_strided || d.strides[axis] > 1;
    is_incomplete = is_incomplete || y[axis + 2] * d.strides[axis] > x[axis + 2];
  }
  return is_strided && is_incomplete;
}

/// The first implementation that stays in its memory. The description that `found` was made from is alive:
/// oneDNN keeps its address.
template <typename PrimitiveDesc>
PrimitiveDesc safe(const ConvolutionDescs& d, PrimitiveDesc found) {
  while (leaves_its_memory(d, found.impl_info_str()))
    LOCKSTEP_CHECK(found.next_impl(),
                   "oneDNN has no implementation of a convolution that stays in its memory");
  return found;
}

}  // namespace

dnnl::convolution_forward::primitive_desc convolution_forward(const ConvolutionDescs& d,
                                                              const dnnl::primitive_attr& attr) {
  const dnnl::convolution_forward::desc desc(forward_kind(d.training), kDirect, d.x, d.weights, d.bias, d.y,
                                             d.strides, from_zero(d.dilations), d.pad_front, d.pad_back);
  return safe(d, dnnl::convolution_forward::primitive_desc(desc, attr, engine()));
}
dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvolutionDescs& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_data::desc desc(kDirect, d.x, d.weights, d.y, d.strides,
                                                   from_zero(d.dilations), d.pad_front, d.pad_back);
  return safe(d, dnnl::convolution_backward_data::primitive_desc(desc, attr, engine(), forward));
}
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvolutionDescs& d, const dnnl::primitive_attr& attr,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_weights::desc desc(kDirect, d.x, d.weights, d.y, d.strides,
                                                      from_zero(d.dilations), d.pad_front, d.pad_back);
  return safe(d, dnnl::convolution_backward_weights::primitive_desc(desc, attr, engine(), forward));
}

dnnl::matmul::primitive_desc matmul(const MatmulDescs& d, const dnnl::primitive_attr& attr) {
  return {{d.x, d.weights, d.bias, d.y}, attr, engine()};
}

#endif

}  // namespace lockstep::onednn
