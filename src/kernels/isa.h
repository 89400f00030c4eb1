// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hot kernels, once per instruction-set level. The files that src/kernels/CMakeLists.txt gives to
// lockstep_isa_sources() are compiled three times (baseline, avx2, avx512), each time with that level's flags
// and with LOCKSTEP_ISA set to its name, which is also the namespace of what they define.
//
// Rules for such a file:
// - It includes plain headers only (<cstdint>, <cstddef>, a family's header, vec.h). An inline function or
// template of
//   external linkage is emitted in every object that uses it, and the linker keeps any one copy for the whole
//   program: were that the AVX-512 one, a lesser processor would stop with an illegal instruction. So
//   everything here is in an unnamed namespace inside lockstep::LOCKSTEP_ISA, and the abstract families have
//   their destructors, hence their vtables and type information, in kernel_table.cpp.
//   tests/unit/kernels/isa_symbols.cmake checks the objects.
// - Arithmetic is written without fused multiply-add, and sums follow an order that the shape alone fixes. So
// every
//   level gives the same bits (unlike oneDNN behind the primitives, whose bits depend on the level).
#pragma once

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/broadcast.h"
#include "kernels/clip.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/group_norm.h"
#include "kernels/layout.h"
#include "kernels/loss.h"
#include "kernels/loss_terms.h"
#include "kernels/norm.h"
#include "kernels/pool.h"
#include "kernels/recurrent.h"
#include "kernels/sampling.h"
#include "kernels/sequence.h"
#include "kernels/spatial.h"
#include "kernels/update.h"

#define LOCKSTEP_DECLARE_LEVEL(level)              \
  namespace lockstep::level {                      \
  const ActivationKernels& activation_kernels();   \
  const BroadcastKernels& broadcast_kernels();     \
  const ClipKernels& clip_kernels();               \
  const ElementwiseKernels& elementwise_kernels(); \
  const GroupNormKernels& group_norm_kernels();    \
  const LayoutKernels& layout_kernels();           \
  const NormKernels& norm_kernels();               \
  const LossKernels& loss_kernels();               \
  const LossTermKernels& loss_term_kernels();      \
  const PoolKernels& pool_kernels();               \
  const RecurrentKernels& recurrent_kernels();     \
  const SequenceKernels& sequence_kernels();       \
  const SpatialKernels& spatial_kernels();         \
  const UpdateKernels& update_kernels();           \
  const EmbeddingKernels& embedding_kernels();     \
  const AttentionKernels& attention_kernels();     \
  const SamplingKernels& sampling_kernels();       \
  }

LOCKSTEP_DECLARE_LEVEL(baseline)
#if defined(__x86_64__)
LOCKSTEP_DECLARE_LEVEL(avx2)
LOCKSTEP_DECLARE_LEVEL(avx512)
#endif

#undef LOCKSTEP_DECLARE_LEVEL
