/* Kernels compiled when this program was built, called from C. It runs where there is neither a compiler nor LLVM, on the
 * first GPU if there is one, and on the CPU. The kernels are in 09_ahead_of_time_kernels.cpp.
 *
 *     LD_DEBUG=libs 09_ahead_of_time    shows what is loaded
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ahead_of_time_kernels.h"

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (call) {                                                                                                        \
      fprintf(stderr, "09_ahead_of_time: %s\n", tessera_error());                                                      \
      exit(2);                                                                                                         \
    }                                                                                                                  \
  } while (0)

/* Softmax of 3 x cols numbers, then doubled; whether the result is right. */
static int run(tessera_stream s, int cols) {
  enum { rows = 3 };
  const size_t n = (size_t)rows * (size_t)cols, bytes = n * sizeof(float);
  float *host = malloc(bytes), *result = malloc(bytes);
  void *x, *y;
  for (size_t i = 0; i < n; ++i)
    host[i] = (float)((i * 37) % 101) / 25.0f;
  CHECK(tessera_allocate(s.device, bytes, &x));
  CHECK(tessera_allocate(s.device, bytes, &y));
  CHECK(tessera_copy_to_device(s, x, host, bytes));

  const tessera_grid one_a_row = {rows, 1, 1}, blocks = {((int64_t)n + 1023) / 1024, 1, 1};
  if (cols <= 256)
    CHECK(softmax_256(s, one_a_row, x, y, cols));
  else
    CHECK(softmax_1024(s, one_a_row, x, y, cols));
  CHECK(scale(s, blocks, y, 2.0f, (int32_t)n));

  CHECK(tessera_copy_to_host(s, result, y, bytes));
  double worst = 0;
  for (int r = 0; r < rows; ++r) {
    const float *in = host + r * cols, *out = result + r * cols;
    double sum = 0, top = in[0];
    for (int c = 1; c < cols; ++c)
      top = in[c] > top ? in[c] : top;
    for (int c = 0; c < cols; ++c)
      sum += exp(in[c] - top);
    for (int c = 0; c < cols; ++c) {
      const double error = fabs(out[c] - 2 * exp(in[c] - top) / sum);
      worst = error <= worst ? worst : error; /* NaN stays */
    }
  }
  CHECK(tessera_release(s.device, x));
  CHECK(tessera_release(s.device, y));
  free(host), free(result);
  const char *target;
  CHECK(tessera_target_of(s.device, &target));
  printf("softmax of rows of %d on device %d (%s): error %.1e%s\n", cols, s.device, target, worst,
         worst < 1e-6 ? "" : ": WRONG");
  return worst < 1e-6;
}

/* The result is 77 where there is no such device. */
int main(int argc, char **argv) {
  const char *target = argc == 2 && !strncmp(argv[1], "--target=", 9) ? argv[1] + 9 : "";
  if (argc > 1 && !*target) {
    const int asked = !strcmp(argv[1], "--help");
    fputs("usage: 09_ahead_of_time [--target=cpu|cuda|hip|hip:gfx942|…]\n", asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  int devices = 0, right = 1, ran = 0;
  CHECK(tessera_count_devices(&devices));
  for (int device = devices - 1; device >= -1; --device) {
    const char *runs;
    CHECK(tessera_target_of(device, &runs));
    if (*target ? strncmp(runs, target, strlen(target)) : device > 0)
      continue;
    tessera_stream s;
    CHECK(tessera_create_stream(device, &s));
    right &= run(s, 256) & run(s, 250) & run(s, 1) & run(s, 1000);
    CHECK(tessera_synchronize(s));
    CHECK(tessera_destroy_stream(s));
    ran = 1;
  }
  if (!ran)
    fprintf(stderr, "09_ahead_of_time: there is no device %s\n", target);
  return !ran ? 77 : right ? 0 : 1;
}
