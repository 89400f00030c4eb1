// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU's kernels, one function per family (private to this room). kernel_table_cuda.cpp builds a
// KernelTable from them.
#pragma once

#include <memory>
#include <string>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/broadcast.h"
#include "kernels/clip.h"
#include "kernels/distribution.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/fingerprint.h"
#include "kernels/group_norm.h"
#include "kernels/kernel_table_cuda.h"
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

namespace lockstep::cuda {

const ActivationKernels& activation_kernels();
const BroadcastKernels& broadcast_kernels();
const ClipKernels& clip_kernels();
const DistributionKernels& distribution_kernels();
const ElementwiseKernels& elementwise_kernels();
const GroupNormKernels& group_norm_kernels();
const LayoutKernels& layout_kernels();
const NormKernels& norm_kernels();
const LossKernels& loss_kernels();
const LossTermKernels& loss_term_kernels();
const UpdateKernels& update_kernels();
const RecurrentKernels& recurrent_kernels();
const SequenceKernels& sequence_kernels();
const EmbeddingKernels& embedding_kernels();
const AttentionKernels& attention_kernels();
const SamplingKernels& sampling_kernels();
const SpatialKernels& spatial_kernels();
const FingerprintKernels& fingerprint_kernels();
const MetricKernels& metric_kernels();

std::unique_ptr<LinearPrimitive> make_convolution(const ConvolutionSpec& spec, const CudaOptions& options);
std::unique_ptr<LinearPrimitive> make_dense(const DenseSpec& spec, int lanes, const CudaOptions& options);
std::unique_ptr<PoolPrimitive> make_pool(const PoolSpec& spec);

/// "cuBLAS 13.1.0", "cuDNN 9.19.0": versions of the libraries for dense layers and convolutions.
std::string dense_library_version();
std::string convolution_library_version();

}  // namespace lockstep::cuda
