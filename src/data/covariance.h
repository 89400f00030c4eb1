// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Mean and covariance of a training set, for whitening.
//
// The chosen samples are cut into parts that depend on their number and size only. A part is summed in
// double, vector by vector, as deviations from one origin: the mean of some samples. Parts are added along a
// binary tree (the left child of n parts has the largest power of two below n, as comm/tree.h). So the result
// has the same bits whoever computes which part.
//
// Why sums from one origin and not Chan's formula: the covariance of images of 3,072 values is a matrix of 75
// MB in double, which 256 parts cannot each keep. The origin, a mean of 64 samples spread over the set, keeps
// the digits that E[x x^T] - E[x] E[x]^T would lose. There are 256 parts, or the number that fits into 64
// MiB, but 8 at least. A rank owns consecutive parts, adds the subtrees among them, and sends these sums to
// rank 0. Threads share a large part by rows of the matrix, and take small parts each: an element is summed
// in the order of the samples either way.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep {

class ReaderDataset;
class SampleChoice;

/// Sums over some parts: of deviations, and of their products (outer_products.h).
using CovariancePart = std::vector<double>;

class CovarianceSums {
 public:
  /// Of the set's WhitenOptions, which are used, over the samples that `choice` takes (null: all). Both must
  /// live as long as this. `data` is normalised, if it is to be. Reads some samples. Throws Error(data).
  CovarianceSums(const ReaderDataset& data, const SampleChoice* choice);

  std::int64_t num_samples() const;
  /// The number of values of a vector, and of vectors.
  std::int64_t values() const { return values_; }
  std::int64_t num_vectors() const { return num_samples() * vectors_per_sample_; }
  int num_parts() const { return num_parts_; }
  /// Numbers of a CovariancePart.
  std::int64_t part_values() const;
  /// The sum over parts [first, last), a node of the tree. Throws Error(data).
  CovariancePart sum(int first, int last, int threads) const;

  /// Mean, of values() values, and covariance with the divisor num_vectors() - 1: row-major into `matrix`,
  /// upper triangle. `all`: the sum over all parts.
  std::vector<double> finish(const CovariancePart& all, double* matrix) const;

 private:
  CovariancePart part(int part, int threads) const;
  void gather(std::int64_t first, std::int64_t count, int threads, std::vector<double>& deviations) const;

  const ReaderDataset& data_;
  const SampleChoice* const choice_;
  const std::int64_t values_per_sample_, values_, vectors_per_sample_;
  int num_parts_;
  std::vector<double> origin_;
};

/// into += from.
void add_to(CovariancePart& into, const CovariancePart& from);

/// Adds the sums of consecutive nodes of the tree, in their order.
class CovarianceFold {
 public:
  /// The sum over the next `parts` parts.
  void push(CovariancePart sum, int parts);
  /// The sum over all that were pushed, at least one.
  CovariancePart finish();

 private:
  struct Node {
    int parts;
    CovariancePart sum;
  };
  std::vector<Node> nodes_;
};

}  // namespace lockstep
