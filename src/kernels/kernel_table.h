// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a device, by family. Each family is an abstract class with one implementation per device
// (and, on the CPU, per instruction-set level): a family without an implementation for a device does not
// compile.
#pragma once

#include <cstddef>
#include <string>

#include "core/device.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/broadcast.h"
#include "kernels/clip.h"
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
  std::size_t scratch_bytes = 0;  ///< what the families need of a lane's scratch, besides the primitives
};

/// The kernels of this process's processor, at core/cpu.h's isa_level().
const KernelTable& cpu_kernels();

/// "oneDNN 2.6.3 (avx512)": the library behind the primitives, and the level it uses. For bfloat16 also
/// whether the processor multiplies it, on which the bits depend: ", AVX-512 BF16" in the brackets.
std::string primitive_library_version(DType activations = DType::f32);

}  // namespace lockstep
