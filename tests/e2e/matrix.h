#pragma once
// What the tests of matrix products share: strided matrices, a float64 reference, and what rounding allows.
#include "harness.h"

namespace e2e {

/// What products of T add up in.
template <class T>
using sum_of =
    std::conditional_t<std::is_same_v<T, i8>, i32, std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// Where the elements of a rows x cols matrix are.
struct strides {
  std::int64_t row = 0, col = 0, size = 0;

  /// Stored by rows, or by columns if `transposed`; neighbours are `step` apart and runs are followed by `pad`
  /// elements.
  strides(std::int64_t rows, std::int64_t cols, bool transposed = false, std::int64_t pad = 0, std::int64_t step = 1) {
    const std::int64_t run = (transposed ? rows : cols) * step + pad;
    row = transposed ? step : run, col = transposed ? run : step;
    size = (transposed ? cols : rows) * run;
  }
};

/// A random matrix; what lies between its elements is poison.
template <class T> struct matrix {
  std::int64_t rows, cols;
  strides at;
  std::vector<T> host;

  matrix(std::int64_t rows, std::int64_t cols, const strides &s, unsigned seed)
      : rows(rows), cols(cols), at(s), host(s.size, nothing()) {
    std::mt19937_64 bits(seed);
    // Smaller f16 are zeros to CDNA2's matrix cores (docs/cpu.md).
    std::normal_distribution<double> normal;
    auto number = [&] {
      double x = normal(bits);
      return std::fabs(x) < 0x1p-14 ? 0 : x;
    };
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c)
        host[r * at.row + c * at.col] = is_float<T> ? make<T>(number()) : static_cast<T>(bits() >> 56);
  }
  matrix(std::int64_t rows, std::int64_t cols, unsigned seed) : matrix(rows, cols, strides(rows, cols), seed) {}
  /// The elements of `m` at other strides.
  matrix(const matrix &m, const strides &s) : rows(m.rows), cols(m.cols), at(s), host(s.size, nothing()) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c)
        host[r * at.row + c * at.col] = m.host[r * m.at.row + c * m.at.col];
  }

  double operator()(std::int64_t r, std::int64_t c) const { return to_double(host[r * at.row + c * at.col]); }

private:
  static T nothing() {
    if constexpr (is_float<T>)
      return T(std::nanf(""));
    else
      return 99;
  }
};

/// Row-major float64 products, and the sizes that rounding errors are measured with: |row of a| |column of b|.
struct reference {
  std::int64_t m, n, k;
  std::vector<double> value, size;

  template <class A, class B>
  reference(const matrix<A> &a, const matrix<B> &b) : m(a.rows), n(b.cols), k(a.cols), value(m * n), size(m * n) {
    std::vector<double> bd(k * n), b_norm(n);
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        bd[i * n + j] = b(i, j);
        b_norm[j] += b(i, j) * b(i, j);
      }
    for (std::int64_t r = 0; r < m; ++r) {
      double a_norm = 0, *out = value.data() + r * n;
      for (std::int64_t i = 0; i < k; ++i) {
        const double x = a(r, i), *row = bd.data() + i * n;
        a_norm += x * x;
        for (std::int64_t j = 0; j < n; ++j)
          out[j] += x * row[j];
      }
      for (std::int64_t j = 0; j < n; ++j)
        size[r * n + j] = std::sqrt(a_norm * b_norm[j]);
    }
  }
};

/// Relative error of a product of T, and of adding it.
template <class T> double product_epsilon(tl::precision p) {
  if (!is_float<T>)
    return 0;
  if (is_float8<T>)
    return 0x1p-12; // matrix units keep about 13 bits when they add products of fp8
  if (std::is_same_v<T, double>)
    return 0x1p-52;
  if (std::is_same_v<T, float> && p != tl::precision::ieee)
    return p == tl::precision::tf32 ? 0x1p-10 : 0x1p-20;
  return 0x1p-23;
}

/// K random products have a sum of size |a| |b| / sqrt(K); its error grows with sqrt(K).
inline double tolerance(double epsilon, double size) { return 2 * epsilon * size; }

/// Compares a whole result, at strides `at`; what no element has must still be poison.
template <class R>
void check_product(const std::string &what, const std::vector<R> &got, const strides &at, const reference &want,
                   double epsilon) {
  const double rounding = is_float<R> ? std::ldexp(1.0, -digits<R>) : 0;
  std::vector<bool> used(got.size());
  std::int64_t wrong = 0, first = 0;
  for (std::int64_t i = want.m * want.n; i-- > 0;) {
    const std::int64_t where = i / want.n * at.row + i % want.n * at.col;
    used[where] = true;
    const double g = to_double(got[where]), w = want.value[i];
    if (!(std::fabs(g - w) <= rounding * std::fabs(w) + tolerance(epsilon, want.size[i])))
      ++wrong, first = i;
  }
  const std::int64_t at_first = first / want.n * at.row + first % want.n * at.col;
  CHECK_MESSAGE(wrong == 0, what, ": ", wrong, " of ", want.m * want.n, " wrong, first [", first / want.n, ", ",
                first % want.n, "]: got ", to_double(got[at_first]), ", want ", want.value[first], " within ",
                tolerance(epsilon, want.size[first]));
  std::int64_t outside = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    outside += !used[i] && !output<R>::is_poison(got[i]);
  CHECK_MESSAGE(outside == 0, what, ": ", outside, " elements written that belong to no row");
}

/// A repeatable choice of one of several.
class chooser {
public:
  explicit chooser(std::uint64_t seed) : bits_(seed * 7919 + 17) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(n)); }
  template <class T> T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<std::int64_t>(list.size()))];
  }

private:
  std::mt19937_64 bits_;
};

} // namespace e2e
