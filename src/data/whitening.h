// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whitening: vectors become uncorrelated, with variance 1. The eigenvectors U (columns, the largest variance
// first) and eigenvalues L of the covariance of a training set give
//
//   pca:  y = (L + epsilon)^(-1/2) U^T (x - mean)      the components of x
//   zca:  y = U (L + epsilon)^(-1/2) U^T (x - mean)    the nearest to x: images stay images
//
// The covariance has the divisor n - 1, as NumPy's and scikit-learn's; the sign of an eigenvector is that
// with which its element of the largest size is positive. Kessy, Lewin, Strimmer: Optimal whitening and
// decorrelation, 2018.
//
// Rank 0 computes the eigenvectors and sends mean and matrix to the others: on every rank they would take as
// long, and the memory on each. It is an option of the data set, not a transform in the list, since the list
// may differ between training and evaluation. With a share of the variance (`components` below 1) the model's
// input depends on the data: then, and only then, the numbers are computed before the model is built. Images
// of 3,072 values cost 9.4 million products each whenever a batch is made, so a vector has 4,096 values at
// most.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/params.h"
#include "config/table.h"
#include "core/shape.h"
#include "data/covariance.h"
#include "data/whiten_by.h"

namespace lockstep {

class ReaderDataset;
class SampleChoice;

struct WhitenEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  WhitenOptions::Method method;
};
/// pca and zca, then those that add() added.
Table<WhitenEntry>& whiten_table();

/// The option, which the table of transform_list.h binds.
struct WrittenWhitening {
  Node whiten;
};
/// Its value. Throws Error(config).
WhitenOptions whiten_options(const Params& params);

/// The shape of samples of `shape`, whitened; empty if the number of components is not known yet. Throws
/// Error(config) without a place if they cannot be whitened so.
std::optional<Shape> whitened_shape(const WhitenOptions& options, const Shape& shape);

/// `all`: the sum over all parts. Takes the time and memory of eigenvectors: for n values 9 n^3 operations,
/// and 4 n^2 numbers. Throws Error(data).
Whitening whitening_of(const ReaderDataset& data, const CovarianceSums& sums, const CovariancePart& all,
                       int threads);

/// All of it on this process, with `threads` threads.
Whitening computed_whitening(const ReaderDataset& data, const SampleChoice* choice, int threads);

/// The bytes of a .npy file: an array of components + 1 rows, the mean and then the matrix.
std::string whitening_file(const Whitening& whitening);
/// Throws Error(data) at `where` for bytes of another form.
Whitening whitening_from_file(std::string_view bytes, const std::string& where);

}  // namespace lockstep
