/* SPDX-FileCopyrightText: The Lockstep authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Predicts with a trained model in C (docs/predictor.md):
 *
 *   predict_c RUN < numbers        one sample per line; prints its outputs */
#include <lockstep/c_api.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  lockstep_model* net = argc == 2 ? lockstep_open(argv[1], NULL) : NULL;
  if (net == NULL) {
    fprintf(stderr, "%s\n", argc == 2 ? lockstep_last_error() : "predict_c RUN < numbers");
    return 1;
  }
  const int64_t in = lockstep_input_size(net, 0), out = lockstep_output_size(net, 0);
  float* const state = malloc((size_t)in * sizeof(float));
  float* const flux = malloc((size_t)out * sizeof(float));
  const float* const inputs[] = {state};
  float* const outputs[] = {flux};
  int code = state == NULL || flux == NULL;
  int64_t read = 0;
  while (code == 0 && scanf("%f", &state[read]) == 1) {
    if (++read < in) continue;
    read = 0;
    code = lockstep_predict(net, inputs, outputs, 1);
    for (int64_t i = 0; code == 0 && i < out; ++i)
      printf("%.9g%c", (double)flux[i], i + 1 == out ? '\n' : ' ');
  }
  if (code != 0) fprintf(stderr, "%s\n", lockstep_last_error());
  free(state);
  free(flux);
  lockstep_close(net);
  return code;
}
