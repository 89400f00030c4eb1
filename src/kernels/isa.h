// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Declares the hot kernels, compiled once per instruction-set level. The files passed to
// lockstep_isa_sources() in src/kernels/CMakeLists.txt are compiled three times (baseline, avx2, avx512),
// each time with that level's flags and with LOCKSTEP_ISA set to its name. LOCKSTEP_ISA is also the namespace
// of their definitions.
//
// Rules for such a file:
// - It includes plain headers only (<cstdint>, <cstddef>, a family's header, vec.h). An inline function or
//   template with external linkage is emitted in every object that uses it, and the linker keeps any one copy
//   for the whole program. If it kept the AVX-512 copy, a processor without AVX-512 would stop with an
//   illegal instruction. So everything in the file is in an unnamed namespace inside lockstep::LOCKSTEP_ISA.
//   The abstract families have their destructors, and with them their vtables and type information, in
//   kernel_table.cpp. tests/unit/kernels/isa_symbols.cmake checks the objects.
// - Arithmetic does not use fused multiply-add, and the shape alone fixes the order of sums. So the bits are
//   the same at every level. The primitives differ: oneDNN's bits depend on the level.
#pragma once

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/broadcast.h"
#include "kernels/clip.h"
#include "kernels/distribution.h"
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

#define LOCKSTEP_DECLARE_LEVEL(level)                \
  namespace lockstep::level {                        \
  const ActivationKernels& activation_kernels();     \
  const BroadcastKernels& broadcast_kernels();       \
  const ClipKernels& clip_kernels();                 \
  const DistributionKernels& distribution_kernels(); \
  const ElementwiseKernels& elementwise_kernels();   \
  const GroupNormKernels& group_norm_kernels();      \
  const LayoutKernels& layout_kernels();             \
  const NormKernels& norm_kernels();                 \
  const LossKernels& loss_kernels();                 \
  const LossTermKernels& loss_term_kernels();        \
  const PoolKernels& pool_kernels();                 \
  const RecurrentKernels& recurrent_kernels();       \
  const SequenceKernels& sequence_kernels();         \
  const SpatialKernels& spatial_kernels();           \
  const UpdateKernels& update_kernels();             \
  const EmbeddingKernels& embedding_kernels();       \
  const AttentionKernels& attention_kernels();       \
  const SamplingKernels& sampling_kernels();         \
  }

LOCKSTEP_DECLARE_LEVEL(baseline)
#if defined(__x86_64__)
LOCKSTEP_DECLARE_LEVEL(avx2)
LOCKSTEP_DECLARE_LEVEL(avx512)
#endif

#undef LOCKSTEP_DECLARE_LEVEL
