/* SPDX-FileCopyrightText: The Lockstep authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A trained model for programs in C, Fortran, Python and others (docs/predictor.md): the shared library
 * liblockstep_c.so, plain C99.
 *
 *   lockstep_model* net = lockstep_open("runs/closure", NULL);
 *   if (net == NULL) { fprintf(stderr, "%s\n", lockstep_last_error()); ... }
 *   const float* inputs[] = {state};
 *   float* outputs[] = {flux};
 *   if (lockstep_predict(net, inputs, outputs, 1) != 0) ...
 *   lockstep_close(net);
 *
 * Numbers are in the units of the data, samples one after the other, channels last; the bits are those of
 * `lockstep predict`.
 *
 * No function throws, ends the process, or changes MPI, signals, the locale, standard output, or OpenMP's
 * settings of the calling thread. Warnings (a damaged checkpoint was passed over) go to standard error.
 *
 * Threads: a model is for one thread at a time; lockstep_clone() gives each thread one of its own, which
 * shares the weights. All functions may be called at the same time.
 *
 * A null model, an index that does not exist and other wrong arguments are errors like any other, but for
 * lockstep_close().
 */
#ifndef LOCKSTEP_C_API_H
#define LOCKSTEP_C_API_H

#include <stdint.h>

#if defined(__GNUC__)
#define LOCKSTEP_C_EXPORT __attribute__((visibility("default")))
#else
#define LOCKSTEP_C_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lockstep_model lockstep_model;

/* "0.1.0". */
LOCKSTEP_C_EXPORT const char* lockstep_version(void);

/* What the last function that failed on this thread says: what is wrong, where, and what to do, in lines; ""
 * before any did. Valid until the next function fails on this thread. */
LOCKSTEP_C_EXPORT const char* lockstep_last_error(void);

/* Loads a model from a run directory, the file of a checkpoint, or an exported folder. `checkpoint`: of a run
 * directory, "last", "best" or a step ("2500"); NULL: the last one. Variables have the values of their moving
 * averages, where there are some. Returns NULL if it fails. */
LOCKSTEP_C_EXPORT lockstep_model* lockstep_open(const char* path, const char* checkpoint);

/* The same model for another thread, with the same weights in memory; NULL if it fails. The models may be
 * closed in any order. */
LOCKSTEP_C_EXPORT lockstep_model* lockstep_clone(const lockstep_model* model);

/* NULL is allowed. */
LOCKSTEP_C_EXPORT void lockstep_close(lockstep_model* model);

/* Inputs and outputs are numbered from 0. A count, a rank or a size of -1 and a name of NULL: the function
 * failed. */
LOCKSTEP_C_EXPORT int lockstep_input_count(const lockstep_model* model);
LOCKSTEP_C_EXPORT int lockstep_output_count(const lockstep_model* model);

/* "features" is the only input, "outputs" the only output of a model that gives them no names. Valid until
 * the model is closed. */
LOCKSTEP_C_EXPORT const char* lockstep_input_name(const lockstep_model* model, int input);
LOCKSTEP_C_EXPORT const char* lockstep_output_name(const lockstep_model* model, int output);

/* The shape of one sample, without the axis of samples: returns the number of its extents, and writes at most
 * `most` of them. `extents` may be NULL if `most` is 0. */
LOCKSTEP_C_EXPORT int lockstep_input_shape(const lockstep_model* model, int input, int64_t* extents,
                                           int most);
LOCKSTEP_C_EXPORT int lockstep_output_shape(const lockstep_model* model, int output, int64_t* extents,
                                            int most);

/* The number of values of one sample. */
LOCKSTEP_C_EXPORT int64_t lockstep_input_size(const lockstep_model* model, int input);
LOCKSTEP_C_EXPORT int64_t lockstep_output_size(const lockstep_model* model, int output);

/* What the numbers of an output are: "probability" (of classes), "logit" (of labels), "value". */
LOCKSTEP_C_EXPORT const char* lockstep_output_quantity(const lockstep_model* model, int output);

/* The name of a class (of the last axis) or of a value of an output; "" if it has none. */
LOCKSTEP_C_EXPORT const char* lockstep_output_label(const lockstep_model* model, int output, int64_t number);

/* Predicts `samples` samples. `inputs` has an array of samples x lockstep_input_size() values for each input,
 * `outputs` room for samples x lockstep_output_size() values for each output; NULL instead of an output: it
 * is not wanted.
 *
 * Returns 0, or else 1 failed, 2 wrong call, 3 a sample that the model cannot take, 4 bad checkpoint; outputs
 * are undefined then. After the first call of a model it allocates no memory of its own. */
LOCKSTEP_C_EXPORT int lockstep_predict(lockstep_model* model, const float* const* inputs,
                                       float* const* outputs, int64_t samples);
/* The same with double: inputs are rounded to float, outputs are the numbers of lockstep_predict(). */
LOCKSTEP_C_EXPORT int lockstep_predict_double(lockstep_model* model, const double* const* inputs,
                                              double* const* outputs, int64_t samples);

#ifdef __cplusplus
}
#endif

#endif
