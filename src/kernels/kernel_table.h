// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a device, by family. Each family is an abstract class with one implementation per device (on
// the CPU: per instruction-set level). A missing implementation is a compile error.
#pragma once

#include <cstddef>
#include <string>

#include "core/device.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/broadcast.h"
#include "kernels/clip.h"
#include "kernels/distribution.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/fingerprint.h"
#include "kernels/group_norm.h"
#include "kernels/layout.h"
#include "kernels/loss.h"
#include "kernels/loss_terms.h"
#include "kernels/metric.h"
#include "kernels/norm.h"
#include "kernels/primitives.h"
#include "kernels/recurrent.h"
#include "kernels/sampling.h"
#include "kernels/sequence.h"
#include "kernels/spatial.h"
#include "kernels/update.h"

namespace lockstep {

struct KernelTable {
  const ActivationKernels& activation;
  const BroadcastKernels& broadcast;
  const ClipKernels& clip;
  const DistributionKernels& distribution;
  const ElementwiseKernels& elementwise;
  const GroupNormKernels& group_norm;
  const LayoutKernels& layout;
  const NormKernels& norm;
  const LossKernels& loss;
  const LossTermKernels& loss_terms;
  const UpdateKernels& update;
  const RecurrentKernels& recurrent;
  const SequenceKernels& sequence;
  const EmbeddingKernels& embedding;
  const AttentionKernels& attention;
  const SamplingKernels& sampling;
  const SpatialKernels& spatial;
  const FingerprintKernels& fingerprint;
  const MetricKernels& metric;
  const PrimitiveFactory& make;
  std::size_t scratch_bytes = 0;  ///< lane scratch that the families need, apart from the primitives
};

/// The kernels for this process's processor, at isa_level() (core/cpu.h).
const KernelTable& cpu_kernels();

/// Name and version of the primitives' library and the level that it uses: "oneDNN 2.6.3 (avx512)". If
/// activations are bfloat16 and the processor multiplies them, the parentheses also contain ", AVX-512 BF16",
/// since the bits depend on it.
std::string primitive_library_version(DType activations = DType::f32);

}  // namespace lockstep
