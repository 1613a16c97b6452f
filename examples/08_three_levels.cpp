// Softmax and matrix product, three times: written by hand, from the vendor's library, and in Tessera; each checked
// against float64, and timed with --bench.
//
// On a GPU "by hand" is the CUDA C++ below, compiled at run time by NVRTC, and the libraries are cuDNN and cuBLAS; on
// the CPU it is a C++ loop, and a BLAS. Compiler and libraries are opened where they are found; nothing of them is
// needed to build this program, and Tessera needs none of them to run.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <tessera/tessera.h>

namespace tl = tessera::tl;
using i32 = tl::val<tl::i32>;

// ---- in Tessera -----------------------------------------------------------------------------------------------------

struct row_config {
  int block = 1024;
};
const auto softmax = tl::kernel("softmax", [](tl::ptr<const float> x, tl::ptr<float> y, i32 cols, row_config c) {
  auto row = tl::program_id(0) * cols;
  auto col = tl::arange(0, c.block);
  auto in = col < cols;
  auto v = tl::load(x + row + col, in, {.other = -tl::inf});
  auto e = tl::exp(v - tl::max(v, 0));
  tl::store(y + row + col, e / tl::sum(e, 0), in);
});

struct mm_config {
  int bm = 64, bn = 64, bk = 64, group = 8, stages = 3;
};
template <class T>
const auto matmul = tl::kernel("matmul", [](tl::ptr<const T> A, tl::ptr<const T> B, tl::ptr<T> C, i32 M, i32 N, i32 K,
                                            mm_config c) {
  using tl::all, tl::newaxis;
  auto pid = tl::program_id(0);
  auto in_group = tl::cdiv(N, c.bn) * c.group;
  auto first = pid / in_group * c.group;
  auto rows = tl::minimum(tl::cdiv(M, c.bm) - first, c.group);
  auto m = (first + pid % in_group % rows) * c.bm + tl::arange(0, c.bm);
  auto n = pid % in_group / rows * c.bn + tl::arange(0, c.bn);
  auto k = tl::arange(0, c.bk);
  tl::var a = A + (m % M)[all, newaxis] * K + k[newaxis, all];
  tl::var b = B + k[all, newaxis] * N + (n % N)[newaxis, all];
  tl::var acc = tl::zeros<float>({c.bm, c.bn});
  for (auto k0 : tl::range(0, K, c.bk, {.stages = c.stages})) {
    acc = tl::dot(tl::load(a, k[newaxis, all] < K - k0), tl::load(b, k[all, newaxis] < K - k0), acc);
    a += c.bk;
    b += c.bk * N;
  }
  tl::store(C + m[all, newaxis] * N + n[newaxis, all], tl::cast<T>(acc), m[all, newaxis] < M && n[newaxis, all] < N);
});

// ---- by hand, for a GPU ---------------------------------------------------------------------------------------------

constexpr int hand_threads = 256, hand_tile = 128; // of both kernels; rows and columns of a block of C

const char *const cuda_source = R"(
// Adds up, or takes the maximum, over the 256 threads of a block.
template <bool maximum> __device__ float over_block(float v) {
  __shared__ float part[8];
  for (int d = 16; d; d /= 2) {
    float w = __shfl_xor_sync(~0u, v, d);
    v = maximum ? fmaxf(v, w) : v + w;
  }
  __syncthreads(); // part may still be read from the call before
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int i = 1; i < 8; ++i) v = maximum ? fmaxf(v, part[i]) : v + part[i];
  return v;
}

extern "C" __global__ void __launch_bounds__(256) softmax(const float *x, float *y, int cols) {
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  float top = __int_as_float(0xff800000), sum = 0;
  for (int c = threadIdx.x; c < cols; c += 256) top = fmaxf(top, x[c]);
  top = over_block<true>(top);
  for (int c = threadIdx.x; c < cols; c += 256) sum += __expf(x[c] - top);
  sum = over_block<false>(sum);
  for (int c = threadIdx.x; c < cols; c += 256) y[c] = __expf(x[c] - top) / sum;
}

// 128 x 128 of C a block, 64 x 32 a warp: tensor cores by hand, through shared memory, without overlapping the copies.
// N and K are multiples of 8.
typedef unsigned short half_bits;
__device__ unsigned shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(256) matmul(const half_bits *A, const half_bits *B, half_bits *C, int M, int N, int K) {
  __shared__ __align__(16) half_bits a[128][40], b[32][136]; // padded, so that ldmatrix meets no bank conflicts
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, wm = warp / 4 * 64, wn = warp % 4 * 32;
  const int m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
  float acc[4][4][4] = {};
  for (int k0 = 0; k0 < K; k0 += 32) {
    for (int i = threadIdx.x; i < 512; i += 256) {
      const int r = i / 4, c = i % 4 * 8;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (m0 + r < M && k0 + c < K) v = *(const uint4 *)(A + (size_t)(m0 + r) * K + k0 + c);
      *(uint4 *)&a[r][c] = v;
    }
    for (int i = threadIdx.x; i < 512; i += 256) {
      const int r = i / 16, c = i % 16 * 8;
      uint4 v = make_uint4(0, 0, 0, 0);
      if (k0 + r < K && n0 + c < N) v = *(const uint4 *)(B + (size_t)(k0 + r) * N + n0 + c);
      *(uint4 *)&b[r][c] = v;
    }
    __syncthreads();
    for (int k = 0; k < 32; k += 16) {
      unsigned fa[4][4], fb[2][4];
      for (int i = 0; i < 4; ++i)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                     : "r"(shared(&a[wm + 16 * i + lane % 16][k + lane / 16 * 8])));
      for (int j = 0; j < 2; ++j)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j][2]), "=r"(fb[j][3])
                     : "r"(shared(&b[k + lane % 16][wn + 16 * j + lane / 16 * 8])));
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                       : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                       : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j / 2][j % 2 * 2]), "r"(fb[j / 2][j % 2 * 2 + 1]));
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int h = 0; h < 2; ++h) {
        const int row = m0 + wm + 16 * i + lane / 4 + 8 * h, col = n0 + wn + 8 * j + lane % 4 * 2;
        unsigned two;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(acc[i][j][2 * h + 1]), "f"(acc[i][j][2 * h]));
        if (row < M && col < N) *(unsigned *)(C + (size_t)row * N + col) = two;
      }
}
)";

/// A library opened at run time: the one that the user names, else the first of several names that works.
class library {
public:
  library() = default;
  library(const std::string &named, std::initializer_list<const char *> names) {
    if (!named.empty() && !(handle_ = dlopen(named.c_str(), RTLD_NOW | RTLD_GLOBAL)))
      throw tessera::error(tessera::stage::launch, dlerror());
    for (const char *n : names)
      if (!handle_)
        handle_ = dlopen(n, RTLD_NOW | RTLD_GLOBAL);
  }
  explicit operator bool() const { return handle_; }
  /// Calls the C function `name`, whose arguments have exactly the types given, and expects 0.
  template <class... A> void call(const char *name, A... args) const {
    const auto f = reinterpret_cast<int (*)(A...)>(dlsym(handle_, name));
    const int code = f ? f(args...) : -1;
    if (code)
      throw tessera::error(tessera::stage::launch,
                           std::string(name) + (f ? " gives error " + std::to_string(code) : " is missing"));
  }
  [[nodiscard]] void *find(const char *name) const { return dlsym(handle_, name); }

private:
  void *handle_ = nullptr;
};

/// The kernels above, compiled by NVRTC for the device and launched through the driver.
class hand_written {
public:
  hand_written(const library &nvrtc, const tessera::device &d) : cuda_("", {"libcuda.so.1"}) {
    void *program = nullptr, *context = nullptr, *module = nullptr;
    const std::string arch = "--gpu-architecture=" + d.properties().arch;
    const char *options[] = {arch.c_str()};
    nvrtc.call("nvrtcCreateProgram", &program, cuda_source, "three_levels.cu", 0, nullptr, nullptr);
    try {
      nvrtc.call("nvrtcCompileProgram", program, 1, static_cast<const char *const *>(options));
    } catch (const tessera::error &) {
      std::size_t n = 0;
      nvrtc.call("nvrtcGetProgramLogSize", program, &n);
      std::string log(n, ' ');
      nvrtc.call("nvrtcGetProgramLog", program, log.data());
      throw tessera::error(tessera::stage::launch, log);
    }
    std::size_t n = 0;
    nvrtc.call("nvrtcGetCUBINSize", program, &n);
    std::string cubin(n, ' ');
    nvrtc.call("nvrtcGetCUBIN", program, cubin.data());
    int device = 0;
    cuda_.call("cuInit", 0u);
    cuda_.call("cuDeviceGet", &device, d.properties().index);
    cuda_.call("cuDevicePrimaryCtxRetain", &context, device); // the context Tessera uses
    cuda_.call("cuCtxSetCurrent", context);
    cuda_.call("cuModuleLoadData", &module, static_cast<const void *>(cubin.data()));
    cuda_.call("cuModuleGetFunction", &softmax_, module, "softmax");
    cuda_.call("cuModuleGetFunction", &matmul_, module, "matmul");
  }
  void softmax(const tessera::stream &s, const float *x, float *y, int rows, int cols) const {
    void *args[] = {&x, &y, &cols};
    launch(s, softmax_, static_cast<unsigned>(rows), 1, args);
  }
  void matmul(const tessera::stream &s, const void *a, const void *b, void *c, int m, int n, int k) const {
    void *args[] = {&a, &b, &c, &m, &n, &k};
    launch(s, matmul_, tl::cdiv(n, hand_tile), tl::cdiv(m, hand_tile), args);
  }

private:
  void launch(const tessera::stream &s, void *function, unsigned x, unsigned y, void **args) const {
    cuda_.call("cuLaunchKernel", function, x, y, 1u, static_cast<unsigned>(hand_threads), 1u, 1u, 0u, s.native(), args,
               static_cast<void **>(nullptr));
  }
  library cuda_;
  void *softmax_ = nullptr, *matmul_ = nullptr;
};

// ---- by hand, for the CPU -------------------------------------------------------------------------------------------

void loop_softmax(const float *x, float *y, std::int64_t rows, std::int64_t cols) {
  for (; rows--; x += cols, y += cols) {
    const float top = *std::max_element(x, x + cols);
    float sum = 0;
    for (std::int64_t c = 0; c < cols; ++c)
      sum += y[c] = std::exp(x[c] - top);
    for (std::int64_t c = 0; c < cols; ++c)
      y[c] /= sum;
  }
}

void loop_matmul(const float *a, const float *b, float *c, std::int64_t m, std::int64_t n, std::int64_t k) {
  std::fill(c, c + m * n, 0.0f);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * k + l] * b[l * n + j];
}

// ---- the comparison -------------------------------------------------------------------------------------------------

template <class T> std::vector<T> random(std::size_t n, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i)
    if (i >= 1'000'003)
      v[i] = v[i - 1'000'003];
    else if (float x = normal(bits); std::fabs(x) >= 0x1p-14f) // smaller f16 are zeros to the MI200's matrix cores
      v[i] = T(x);
  return v;
}

struct level {
  std::string name;
  std::function<void()> run;
};

/// Runs every level into poisoned memory, checks it and times it.
template <class T>
bool compare(tessera::cli &cli, const tessera::stream &s, const std::string &what, const char *rate, double amount,
             tessera::device_buffer<T> &out, const std::vector<level> &levels,
             const std::function<bool(const std::vector<T> &)> &check) {
  bool ok = true;
  double ours = 0;
  std::printf("\n%s\n", what.c_str());
  for (const level &l : levels) {
    out.fill(T(std::nanf("")));
    l.run();
    s.synchronize();
    const bool right = check(out.to_host());
    ok = ok && right;
    std::printf("  %-28s %s\n", l.name.c_str(), right ? "right" : "WRONG");
    if (cli.bench()) {
      const auto t = tessera::bench(s, l.run);
      if (ours == 0)
        ours = t.median; // Tessera comes first
      cli.report(what + ", " + l.name, t, {{rate, amount / t.median}, {"of tessera's time", t.median / ours}});
    }
  }
  return ok;
}

bool compare_softmax(tessera::cli &cli, const tessera::stream &s, std::int64_t rows, std::int64_t cols,
                     const hand_written *hand, const library &cudnn) {
  if (rows > std::numeric_limits<tl::i32>::max() / cols)
    throw tessera::error(tessera::stage::launch, "the kernels count elements with 32 bits: fewer rows or columns");
  const auto host = random<float>(rows * cols, 1);
  tessera::device_buffer<float> x(s.device(), host), y(s.device(), host.size());
  const int block = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(cols)));
  const bool native = s.device().target().str() == "cpu";
  const auto k = softmax.with({.block = block}, {.num_warps = native ? 0 : std::clamp(block / 1024, 4, 16)});
  std::vector<level> levels{{"Tessera", [&] { k(s, rows, x, y, cols); }}};
  void *handle = nullptr, *shape = nullptr;
  const float one = 1, zero = 0;
  if (hand)
    levels.push_back({"CUDA C++ by hand (NVRTC)",
                      [&] { hand->softmax(s, x.data(), y.data(), static_cast<int>(rows), static_cast<int>(cols)); }});
  if (!s.device().is_cpu() && cudnn) {
    cudnn.call("cudnnCreate", &handle);
    cudnn.call("cudnnSetStream", handle, s.native());
    cudnn.call("cudnnCreateTensorDescriptor", &shape);
    cudnn.call("cudnnSetTensor4dDescriptor", shape, 0 /*NCHW*/, 0 /*f32*/, static_cast<int>(rows),
               static_cast<int>(cols), 1, 1);
    levels.push_back({"cuDNN", [&] {
                        cudnn.call("cudnnSoftmaxForward", handle, 1 /*accurate*/, 0 /*each row*/,
                                   static_cast<const void *>(&one), shape, static_cast<const void *>(x.data()),
                                   static_cast<const void *>(&zero), shape, static_cast<void *>(y.data()));
                      }});
  }
  if (native)
    levels.push_back({"C++ loop, one thread", [&] { loop_softmax(x.data(), y.data(), rows, cols); }});
  const bool ok = compare<float>(
      cli, s, "softmax f32 " + std::to_string(rows) + "x" + std::to_string(cols), "gbps",
      8e-6 * static_cast<double>(rows * cols), y, levels, [&](const std::vector<float> &got) {
        for (std::int64_t r = 0; r < rows; ++r) {
          const float *in = host.data() + r * cols, *out = got.data() + r * cols;
          const double top = *std::max_element(in, in + cols);
          double sum = 0;
          for (std::int64_t c = 0; c < cols; ++c)
            sum += std::exp(in[c] - top);
          for (std::int64_t c = 0; c < cols; ++c)
            if (const double want = std::exp(in[c] - top) / sum; !(std::fabs(out[c] - want) <= 2e-5 * want + 1e-9))
              return false;
        }
        return true;
      });
  if (handle) {
    cudnn.call("cudnnDestroyTensorDescriptor", shape);
    cudnn.call("cudnnDestroy", handle);
  }
  return ok;
}

/// f16 on a GPU, f32 on the CPU: what each has fast units and libraries for.
template <class T>
bool compare_matmul(tessera::cli &cli, const tessera::stream &s, std::int64_t n, const hand_written *hand,
                    const library &blas) {
  const auto ha = random<T>(n * n, 1), hb = random<T>(n * n, 2);
  tessera::device_buffer<T> a(s.device(), ha), b(s.device(), hb), c(s.device(), n * n);
  const bool native = s.device().target().str() == "cpu", large = n >= 2048 && !s.device().is_cpu();
  const mm_config at = native  ? mm_config{.bm = 128, .bn = n >= 1024 ? 256 : 128}
                       : large ? mm_config{.bm = 128, .bn = 256}
                               : mm_config{};
  const auto k = matmul<T>.with(at, {.num_warps = native ? 0 : large ? 8 : 4});
  const int size = static_cast<int>(n);
  std::vector<level> levels{
      {"Tessera", [&] { k(s, tl::cdiv(size, at.bm) * tl::cdiv(size, at.bn), a, b, c, n, n, n); }}};
  void *handle = nullptr;
  const float one = 1, zero = 0;
  if constexpr (std::is_same_v<T, tl::f16>) {
    if (hand)
      levels.push_back(
          {"CUDA C++ by hand (NVRTC)", [&] { hand->matmul(s, a.data(), b.data(), c.data(), size, size, size); }});
    if (!s.device().is_cpu() && blas) {
      blas.call("cublasCreate_v2", &handle);
      blas.call("cublasSetStream_v2", handle, s.native());
      levels.push_back({"cuBLAS", [&] { // column by column: the product of the transposed
                          blas.call("cublasGemmEx", handle, 0, 0, size, size, size, static_cast<const void *>(&one),
                                    static_cast<const void *>(b.data()), 2 /*f16*/, size,
                                    static_cast<const void *>(a.data()), 2, size, static_cast<const void *>(&zero),
                                    static_cast<void *>(c.data()), 2, size, 68 /*sums in f32*/, -1);
                        }});
    }
  } else if (native) {
    using sgemm =
        void(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
    if (const auto f = blas ? reinterpret_cast<sgemm *>(blas.find("cblas_sgemm")) : nullptr)
      levels.push_back({"BLAS", [&, f] {
                          f(101 /*by rows*/, 111, 111, size, size, size, 1, a.data(), size, b.data(), size, 0, c.data(),
                            size);
                        }});
    levels.push_back({"C++ loop, one thread", [&] { loop_matmul(a.data(), b.data(), c.data(), n, n, n); }});
  }
  const bool ok =
      compare<T>(cli, s, std::string("matmul ") + (sizeof(T) == 2 ? "f16 " : "f32 ") + std::to_string(n) + "^3",
                 "tflops", 2e-9 * std::pow(static_cast<double>(n), 3), c, levels, [&](const std::vector<T> &got) {
                   for (std::int64_t r = 0; r < n; r += std::max<std::int64_t>(1, n / 64)) { // 64 rows
                     std::vector<double> want(n);
                     for (std::int64_t l = 0; l < n; ++l)
                       for (std::int64_t j = 0; j < n; ++j)
                         want[j] += static_cast<double>(ha[r * n + l]) * static_cast<double>(hb[l * n + j]);
                     for (std::int64_t j = 0; j < n; ++j) {
                       const double allowed =
                           (sizeof(T) == 2 ? 0x1p-10 * std::fabs(want[j]) : 0) + 8 * 0x1p-23 * static_cast<double>(n);
                       if (!(std::fabs(static_cast<double>(got[r * n + j]) - want[j]) <= allowed))
                         return false;
                     }
                   }
                   return true;
                 });
  if (handle)
    blas.call("cublasDestroy_v2", handle);
  return ok;
}

int main(int argc, char **argv) {
  std::int64_t rows = 0, cols = 0, size = 0;
  std::string nvrtc_path, blas_path, cudnn_path;
  bool alone = false;
  tessera::cli cli("three_levels", "Softmax and matrix product by hand, from a library, and in Tessera");
  cli.option("--rows", rows, "rows of the softmax; 0: what suits the device, here and below", 0);
  cli.option("--cols", cols, "its columns", 0, 1 << 20);
  cli.option("--size", size, "rows and columns of the matrices of the product, a multiple of 8", 0, 46336);
  cli.option("--nvrtc", nvrtc_path, "file of NVRTC, where the loader does not find it");
  cli.option("--blas", blas_path, "the same of cuBLAS, or of the CPU's BLAS");
  cli.option("--cudnn", cudnn_path, "the same of cuDNN");
  cli.flag("--alone", alone, "on a GPU: Tessera, with nothing beside it");

  return cli.run(argc, argv, [&] {
    if (cli.compile_only()) {
      cli.show(softmax.with({}, {.num_warps = 4}).compile_for(cli.target()));
      return cli.show(matmul<tl::f16>.with({}, {.num_warps = 4}).compile_for(cli.target()));
    }
    const tessera::device device = cli.device();
    const tessera::stream stream(device);
    const bool large = cli.bench() && !device.is_cpu(), medium = cli.bench() && device.target().str() == "cpu";
    rows = rows ? rows : large ? 8192 : medium ? 2048 : 128;
    cols = cols ? cols : large ? 4096 : 1000;
    size = size ? size : large ? 4096 : medium ? 1024 : 200;
    if (size % 8)
      throw tessera::error(tessera::stage::launch,
                           "--size: a multiple of 8, please: the kernel by hand reads 8 numbers at once");
    std::printf("%s (%s)\n", device.name().c_str(), device.target().str().c_str());

    if (device.is_cpu()) {
      const bool native = device.target().str() == "cpu";
      const library none, blas = native ? library(blas_path, {"libopenblas.so.0", "libblas.so.3"}) : none;
      const bool ok = compare_softmax(cli, stream, rows, cols, nullptr, none);
      return (native ? compare_matmul<float>(cli, stream, size, nullptr, blas)
                     : compare_matmul<tl::f16>(cli, stream, size, nullptr, none)) &&
             ok;
    }
    if (alone || device.target().kind != tessera::target_kind::cuda) { // what there is to compare with is made for CUDA
      const library none;
      const bool ok = compare_softmax(cli, stream, rows, cols, nullptr, none);
      return compare_matmul<tl::f16>(cli, stream, size, nullptr, none) && ok;
    }
    const library nvrtc(nvrtc_path, {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"});
    const library cublas(blas_path, {"libcublas.so", "libcublas.so.13", "libcublas.so.12"});
    const library cudnn(cudnn_path, {"libcudnn.so", "libcudnn.so.9", "libcudnn.so.8"});
    std::optional<hand_written> hand;
    if (nvrtc)
      hand.emplace(nvrtc, device);
    std::printf("found: NVRTC %s, cuBLAS %s, cuDNN %s\n", nvrtc ? "yes" : "no", cublas ? "yes" : "no",
                cudnn ? "yes" : "no");
    const bool ok = compare_softmax(cli, stream, rows, cols, hand ? &*hand : nullptr, cudnn);
    return compare_matmul<tl::f16>(cli, stream, size, hand ? &*hand : nullptr, cublas) && ok;
  });
}
