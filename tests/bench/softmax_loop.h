#pragma once
// Row softmax as one would write it by hand for a CPU: the yardstick of the CPU target. Compiled with
// -O3 -march=native -ffast-math, so that the compiler vectorises all three loops, exp included (libmvec).
#include <cstddef>

/// y[r, :] = softmax(x[r, :]), rows spread over `threads` threads that live as long as the process.
void softmax_loop(const float *x, float *y, std::size_t rows, std::size_t cols, unsigned threads);
