// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The operation graphs of attention, and their plans (private to this room). cuDNN has one kernel for a whole
// graph if it recognises attention in it. The graphs are those that NVIDIA's cudnn-frontend documents
// (docs/operations/Attention.md):
//   forward:  x = factor (q k'), masked; m = max x, e = exp(x - m), l = sum e; statistics = m + log l;
//             y = (e / l) v
//   backward: delta = sum (dy * y); p = exp(masked(factor (q k') - statistics)); dv = p' dy;
//             ds = factor p (dy v' - delta); dk = ds' q; dq = ds k
// with e / l, p and ds rounded to the type of the activations as operands of products.
//
// dq is the direct result of its product: cuDNN then writes ds to its workspace (2 bytes per score) and
// multiplies in a second kernel, in a fixed order. With a float32 dq between the product and the result, its
// kernels add to that with atomic operations; the notes of cuDNN 9.19 on those engines do not say so.
#pragma once

#include "kernels/cudnn_attention_cuda.h"
#include "kernels/cudnn_plan_cuda.h"

namespace lockstep::cuda {

/// The oldest cuDNN whose attention is used. Earlier ones want other masks, or padding where the number of
/// keys is not a multiple of 128.
inline constexpr std::size_t kLeastAttentionVersion = 91600;

/// The most workspace of a plan: of backward, the gradients of the scores; a margin for both passes.
std::int64_t most_attention_workspace(const AttentionPlanSpec& spec);

/// As find_plan() of cudnn_plan_cuda.h.
FoundPlan find_attention_plan(const AttentionPlanSpec& spec, const PlanTarget& target,
                              const std::string& what);

/// Identifiers in a plan and in its variant pack; the numbers between operations follow.
enum class AttentionTensor : std::int64_t {
  q = 1,
  k,
  v,
  y,
  statistics,
  dy,
  dq,
  dk,
  dv,
  delta,
  factor,
  masked,
  one,
  between
};

/// Operands in host memory, which cudnnBackendExecute() reads.
struct AttentionScalars {
  explicit AttentionScalars(const AttentionPlanSpec& spec);
  float factor, masked, one = 1.0F;
};

/// The operands of a plan and where they are.
struct AttentionAddresses {
  AttentionAddresses(const AttentionPlanSpec& spec, const AttentionOperands& operands,
                     const AttentionScalars& scalars);
  std::vector<AttentionTensor> ids;
  std::vector<const void*> at;
};

/// The variant pack for an execution.
Descriptor attention_variant_pack(const AttentionAddresses& addresses, void* workspace,
                                  const std::string& what);

}  // namespace lockstep::cuda
