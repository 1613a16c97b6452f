// AMD's matrix cores: MFMA of wavefronts of 64 lanes (CDNA), WMMA of 32 (RDNA). The choices are those of Triton 3.6, so
// that a kernel is made of as many matrix instructions.
#include "MatrixModel.h"

#include "../Layouts.h"
#include "tessera/ir/TransposedLoads.h"
#include "tessera/passes/Allocation.h"

using namespace mlir;

namespace tessera {

namespace {

using layouts::tileType;

/// A wavefront reads so much of device memory's lines at once that narrower runs of lanes waste none of it.
constexpr unsigned kLineBytes = 128;

/// A tile is turned round only for stores that are at least as wide: single bytes cost more registers than they save.
constexpr unsigned kLeastStoreBytes = 4;

/// Where an operand comes from: a load, whose dimension order[i] is dimension i of the operand.
struct LoadedOperand {
  tt::LoadOp load;
  SmallVector<int32_t> order;
};

LoadedOperand loadedOperand(Value v) {
  LoadedOperand found{{}, llvm::to_vector(llvm::seq<int32_t>(tileType(v).getRank()))};
  while (Operation *op = v.getDefiningOp()) {
    if (!v.hasOneUse())
      return found;
    if ((found.load = dyn_cast<tt::LoadOp>(op)))
      return found;
    Value next;
    if (auto trans = dyn_cast<tt::TransOp>(op)) {
      for (int32_t &d : found.order)
        d = trans.getOrder()[d];
      next = trans.getSrc();
    } else if (isa<ttg::ConvertLayoutOp>(op)) {
      next = op->getOperand(0);
    } else if (layouts::isUniform(op) && isMemoryEffectFree(op) && !isa<tt::BroadcastOp>(op)) {
      for (Value operand : op->getOperands())
        if (tileType(operand) && !(operand.getDefiningOp() && layouts::isSource(operand.getDefiningOp()))) {
          if (next && next != operand)
            return found;
          next = operand;
        }
    }
    if (!next)
      return found;
    v = next;
  }
  return found;
}

class AmdMatrixModel final : public MatrixModel {
public:
  AmdMatrixModel(MatrixFamily family, unsigned version, const SharedMemoryModel &shared, bool asyncCopies)
      : family(family), version(version), shared(shared), asyncCopies(asyncCopies) {}

  std::optional<MatrixInstruction> instruction(const Product &p) const final {
    Type a = p.a(), b = p.b(), c = p.c();
    bool fp8 = tt::isFloat8(a) && tt::isFloat8(b);
    if ((a != b && !fp8) || !takes(a) || !takes(b))
      return std::nullopt;
    if (a.isInteger(8) ? !c.isInteger(32) : a.isF64() ? !c.isF64() : !c.isF32())
      return std::nullopt;
    unsigned bits = tt::bitWidth(a);
    bool tf32 = a.isF32() && tt::DotOp(p.dot).getInputPrecision() == tt::InputPrecision::TF32;
    unsigned edge = family == MatrixFamily::Mfma && bits != 64 && std::min(p.m, p.n) >= 32 ? 32 : 16;
    std::optional<MatrixInstruction> best;
    for (unsigned k : {128, 64, 32, 16, 8, 4, 2}) { // the deepest that fits, else the shallowest there is
      MatrixInstruction i{family, version, edge, edge, k, bits};
      if (!exists(i) || !isFor(i, fp8, tf32) || (best && p.k >= best->k))
        continue;
      best = i;
    }
    return best;
  }

  /// 8-bit floats of all kinds fit in f16. gfx90a takes f16's denormals, which those of two bits of mantissa reach, for
  /// zero; they fit in bf16, too.
  Type operandType(Type a, Type b) const final {
    if (takes(a) && takes(b))
      return {};
    auto deep = [](Type t) { return isa<Float8E5M2Type, Float8E5M2FNUZType>(t); };
    if (family == MatrixFamily::Mfma && version == 2 && (deep(a) || deep(b)))
      return BFloat16Type::get(a.getContext());
    return Float16Type::get(a.getContext());
  }

  /// f32 is exact; gfx942 alone has something less exact, and faster.
  tt::InputPrecision precision(tt::InputPrecision asked) const final {
    bool xf32 = family == MatrixFamily::Mfma && version == 3 && asked == tt::InputPrecision::TF32;
    return xf32 ? asked : tt::InputPrecision::IEEE;
  }

  bool executes(const MatrixInstruction &i, Type a, Type b) const final {
    bool fp8 = tt::isFloat8(a) && tt::isFloat8(b);
    return i.family == family && i.version == version && exists(i) && takes(a) && takes(b) &&
           isFor(i, fp8, i.bits == 32 && elementsPerLane(i) == 2);
  }

  ttg::MatrixEncoding accumulators(const Product &p, const MatrixInstruction &i) const final {
    SmallVector<unsigned> warps = warpTiling(p, i);
    // Exchanged, so that a lane holds consecutive columns: stores are wide, and 16-bit results are a next A as they
    // lie.
    if (family == MatrixFamily::Mfma)
      return ttg::AmdMfmaEncodingAttr::get(p.dot->getContext(), version, warps, {i.m, i.n, i.k}, /*isTransposed=*/true,
                                           i.bits == 64 ? 64 : 32);
    return ttg::AmdWmmaEncodingAttr::get(p.dot->getContext(), version, warps, {i.m, i.n, i.k}, /*isTransposed=*/true);
  }

  unsigned kWidth(const Product &p, const MatrixInstruction &i) const final {
    if (family == MatrixFamily::Wmma && version == 1)
      return i.k;                      // a lane holds all of k
    unsigned groups = i.lanes() / i.m; // of lanes, along k
    // What a lane holds of a row of the sum it comes from; else 16 bytes, one access of shared memory.
    unsigned width = p.fedByDot ? (family == MatrixFamily::Wmma ? 8 : i.bits == 64 ? 1 : 4) : 128 / i.bits;
    if (!p.fedByDot && (isReadSingly(p, 0) || isReadSingly(p, 1)))
      width = std::min(width, elementsPerLane(i)); // a register an element, until an instruction's worth is together
    while (width > 1 && int64_t(width) * groups > p.k)
      width /= 2;
    return width;
  }

  void prepareLoad(const Product &p, const MatrixInstruction &, ttg::DotOperandEncodingAttr encoding,
                   unsigned index) const final {
    LoadedOperand from = loadedOperand(p.dot->getOperand(index));
    auto blocked = from.load && p.rank == 2
                       ? dyn_cast<ttg::BlockedEncodingAttr>(layouts::encodingOf(from.load.getResult()))
                       : ttg::BlockedEncodingAttr();
    if (!blocked)
      return;
    unsigned k = from.order[encoding.getKDim()];
    Attribute wanted = blocked.getOrder()[0] != k ? alongBoth(p, from.load, blocked, k) : Attribute();
    if (Attribute copied = inOrder(p, from, blocked, encoding, wanted))
      wanted = copied;
    if (wanted)
      layouts::setAccessEncoding(from.load, wanted);
  }

  /// As they lie: that needs no shared memory, and a lane has four columns or more side by side. On gfx11 it has every
  /// second column, so that a way through shared memory is better where it needs no more of it than the operands did.
  Attribute storeEncoding(ttg::MatrixEncoding encoding, RankedTensorType tile, uint64_t operandBytes) const final {
    bool apart = family == MatrixFamily::Wmma && version == 1;
    return apart && uint64_t(tile.getNumElements()) * storageBytes(tile) <= operandBytes ? Attribute() : encoding;
  }

  Attribute sharedEncoding(const StoredOperand &o) const final {
    SmallVector<int64_t> shape(o.order.size());
    for (auto [i, d] : llvm::enumerate(o.order))
      shape[d] = o.type.getShape()[i];
    SmallVector<unsigned> asStored(o.memoryOrder), alongK(o.memoryOrder);
    if (auto operand = dyn_cast<ttg::DotOperandEncodingAttr>(o.type.getEncoding())) {
      unsigned k = o.order[operand.getKDim()];
      llvm::erase(alongK, k);
      alongK.insert(alongK.begin(), k);
    }
    Search search(*this, o, shape);
    search.tryOrder(alongK);
    if (asStored != alongK)
      search.tryOrder(asStored);
    search.tryLinear();
    return search.best ? search.best : ttg::SwizzledSharedEncodingAttr::get(o.type.getContext(), 1, 1, 1, asStored);
  }

private:
  MatrixFamily family;
  unsigned version;
  SharedMemoryModel shared;
  bool asyncCopies;

  /// Of 8-bit floats gfx942 multiplies those of the fnuz kind, its successors OCP's.
  bool takes(Type t) const {
    if (isFnuz(t))
      return family == MatrixFamily::Mfma && version == 3;
    return !isFp8(t) || (family == MatrixFamily::Mfma ? version == 4 : version >= 2);
  }

  /// Of the instructions for so many bits, those for the type.
  bool isFor(const MatrixInstruction &i, bool fp8, bool tf32) const {
    unsigned perLane = elementsPerLane(i);
    if (family == MatrixFamily::Wmma)
      return i.bits != 8 || version != 3 || fp8 || i.k == 64;
    if (i.bits == 32)
      return (perLane == 2) == tf32;
    if (i.bits == 8 && version == 4)
      return fp8 ? perLane == 32 || perLane == 8 : perLane == 16 || perLane == 8;
    return true;
  }

  /// Warps over (batch, rows, columns). A warp keeps whole rows of a product whose result is the next one's A, and of
  /// that one; else its part is about square in instructions.
  static SmallVector<unsigned> warpTiling(const Product &p, const MatrixInstruction &i) {
    unsigned batch = std::min<int64_t>(p.numWarps, p.batch), rest = p.numWarps / batch;
    int64_t down = std::max<int64_t>(1, p.m / i.m), across = std::max<int64_t>(1, p.n / i.n);
    unsigned rows = 1, columns = 1;
    if (p.feedsA || p.fedByDot) {
      rows = std::min<int64_t>(rest, down);
      columns = rest / rows;
    } else {
      while (rows * columns < rest)
        (down / (2 * rows) >= across / columns && rows < down ? rows : columns) *= 2;
      if (columns > across)
        std::swap(rows, columns);
    }
    if (p.rank == 2)
      return {rows, columns};
    return {batch, rows, columns};
  }

  /// Whether lanes will read the operand from shared memory element by element: it is loaded along m or n, and too
  /// narrow to be turned.
  static bool isReadSingly(const Product &p, unsigned index) {
    LoadedOperand from = loadedOperand(p.dot->getOperand(index));
    auto blocked = from.load && p.rank == 2
                       ? dyn_cast<ttg::BlockedEncodingAttr>(layouts::encodingOf(from.load.getResult()))
                       : ttg::BlockedEncodingAttr();
    unsigned k = blocked ? from.order[1 - index] : 0;
    return blocked && blocked.getOrder()[0] != k && storageBytes(tileType(from.load.getResult())) < 4 &&
           !alongBoth(p, from.load, blocked, k);
  }

  /// The operand is loaded along m or n, but a lane needs it along k: lanes load blocks of both, and what they store is
  /// along k. A line of device memory is read by neighbouring lanes, the rest of them go along k.
  static Attribute alongBoth(const Product &p, tt::LoadOp load, ttg::BlockedEncodingAttr blocked, unsigned k) {
    RankedTensorType type = tileType(load.getResult());
    unsigned run = 1 - k, bytes = storageBytes(type);
    ArrayRef<int64_t> shape = type.getShape();
    int64_t perThread = type.getNumElements() / (int64_t(p.numWarps) * p.lanes);
    SmallVector<unsigned> size{1, 1}, threads{1, 1}, warps{1, 1};
    size[run] = blocked.getSizePerThread()[run];
    size[k] = std::min<int64_t>({16 / bytes, perThread / size[run], shape[k]});
    if (size[k] < 2 || size[k] * bytes < kLeastStoreBytes)
      return {};
    threads[run] =
        std::clamp<int64_t>(kLineBytes / (size[run] * bytes), 1, std::min<int64_t>(p.lanes, shape[run] / size[run]));
    threads[k] = std::min<int64_t>(p.lanes / threads[run], shape[k] / size[k]);
    threads[run] = p.lanes / threads[k];
    warps[run] = std::clamp<int64_t>(shape[run] / (int64_t(size[run]) * threads[run]), 1, p.numWarps);
    warps[k] = p.numWarps / warps[run];
    return ttg::BlockedEncodingAttr::get(load.getContext(), size, threads, warps, blocked.getOrder());
  }

  /// Background copies write the lanes of a wavefront one after the other: who loads what follows from the place in
  /// shared memory. Null where there are none, or it is better to store the tile along k from the layout `turned`.
  Attribute inOrder(const Product &p, const LoadedOperand &from, ttg::BlockedEncodingAttr blocked,
                    ttg::DotOperandEncodingAttr encoding, Attribute turned) const {
    if (!asyncCopies)
      return {};
    tt::LoadOp load = from.load;
    RankedTensorType type = tileType(load.getResult());
    unsigned bytes = storageBytes(type), width = blocked.getSizePerThread()[blocked.getOrder()[0]] * bytes;
    width = width >= 16 ? 16 : 4;
    SmallVector<int64_t> shape;
    for (int32_t d : from.order)
      shape.push_back(type.getShape()[d]);
    auto operand = RankedTensorType::get(shape, type.getElementType(), encoding);
    Attribute source = turned ? turned : Attribute(blocked);
    LinearLayout memory =
        ttg::toLinearLayout(type.getShape(), sharedEncoding({operand, blocked.getOrder(), from.order, source}));
    ArrayRef<LinearLayout::Basis> offsets = memory.bases(HwDim::Offset);
    if (offsets.empty() || memory.coords(offsets.front())[blocked.getOrder()[0]] == 0)
      return {};
    unsigned vector = llvm::Log2_32(width / bytes), lanes = llvm::Log2_32(p.lanes), warps = llvm::Log2_32(p.numWarps);
    if (bytes > width || offsets.size() < vector + lanes + warps)
      return {};
    LinearLayout::Bases registers(offsets.take_front(vector)), rest(offsets.drop_front(vector + lanes + warps));
    registers.append(rest.begin(), rest.end());
    LinearLayout layout(type.getShape(), {{HwDim::Register, registers},
                                          {HwDim::Lane, LinearLayout::Bases(offsets.slice(vector, lanes))},
                                          {HwDim::Warp, LinearLayout::Bases(offsets.slice(vector + lanes, warps))},
                                          {HwDim::Block, {}}});
    return ttg::encodingOf(load.getContext(), layout);
  }

  /// The layout with lanes renumbered such that those served at once in wide loads follow each other.
  LinearLayout inPhases(const LinearLayout &layout) const {
    ArrayRef<LinearLayout::Basis> lanes = layout.bases(HwDim::Lane);
    LinearLayout::Bases renumbered;
    SmallVector<unsigned> masks(ArrayRef<unsigned>(shared.wideLoadLanes)), reduced;
    for (unsigned bit = 0; bit < lanes.size(); ++bit)
      masks.push_back(1u << bit);
    for (unsigned mask : masks) {
      unsigned rest = mask; // what earlier masks do not give
      for (unsigned earlier : reduced)
        rest = std::min(rest, rest ^ earlier);
      if (!rest || mask >> lanes.size())
        continue;
      reduced.push_back(rest);
      uint64_t basis = 0;
      for (unsigned bit = 0; bit < lanes.size(); ++bit)
        basis ^= mask >> bit & 1 ? lanes[bit] : 0;
      renumbered.push_back(basis);
    }
    return layout.withIn(HwDim::Lane, renumbered);
  }

  SharedAccessCost loadCost(const LinearLayout &registers, const LinearLayout &memory, unsigned bytes) const {
    auto transposed = asyncCopies ? planTransposedLoad(registers, memory, bytes) : std::nullopt; // gfx950 has both
    if (!transposed)
      return sharedAccessCost(registers, memory, bytes, true, shared);
    // Four elements of each lane, from where its row starts.
    LinearLayout offsets = LinearLayout::identity(memory.shape(), HwDim::Offset);
    LinearLayout rows(memory.shape(), {{HwDim::Register, {1, 2}},
                                       {HwDim::Lane, LinearLayout::Bases(transposed->rowOffset.bases(HwDim::Lane))}});
    SharedAccessCost one = sharedAccessCost(rows, offsets, bytes, true, shared);
    unsigned count = transposed->instructions.size();
    return {count * one.accesses, count * one.wavefronts};
  }

  /// The swizzle with the fewest instructions and wavefronts for one store and one load of the operand.
  struct Search {
    const AmdMatrixModel &model;
    const StoredOperand &o;
    ArrayRef<int64_t> shape;
    Attribute best = {};
    unsigned cost = UINT_MAX, least = 0; ///< what wide accesses without conflicts would cost

    Search(const AmdMatrixModel &model, const StoredOperand &o, ArrayRef<int64_t> shape)
        : model(model), o(o), shape(shape) {
      LinearLayout registers = ttg::toLinearLayout(o.type);
      unsigned bytes = registers.size(HwDim::Register) * storageBytes(o.type),
               all = bytes * registers.size(HwDim::Lane);
      least = weigh({std::max(1u, bytes / 16), all / (model.shared.banks * model.shared.bankBytes)});
    }

    static unsigned weigh(SharedAccessCost c) { return c.wavefronts + 4 * c.accesses; } // cycles, roughly

    void consider(Attribute shared, bool swizzled, bool stores, bool turned) {
      unsigned bytes = storageBytes(o.type);
      LinearLayout memory = ttg::toLinearLayout(shape, shared), registers = ttg::toLinearLayout(o.type);
      SharedAccessCost loads = model.loadCost(registers, memory.transpose(o.order), bytes);
      // Elements read one by one are many: their places are to differ by constants, so that they share an address.
      if (swizzled && bytes < 4 && loads.accesses == registers.size(HwDim::Register))
        return;
      unsigned sum = weigh(loads);
      if (stores) {
        LinearLayout source = ttg::toLinearLayout(shape, o.source);
        SharedAccessCost c = sharedAccessCost(source, memory, bytes, false, model.shared);
        if (turned && source.size(HwDim::Register) / c.accesses * bytes < kLeastStoreBytes)
          return;
        sum += weigh(c);
      }
      if (sum < cost) {
        cost = sum;
        best = shared;
      }
    }

    /// No swizzle of whole rows, but any linear map: conversions through shared memory plan one that suits both sides.
    void tryLinear() {
      unsigned bytes = storageBytes(o.type);
      if (!o.source || !llvm::is_sorted(o.order))
        return;
      LinearLayout source = ttg::toLinearLayout(shape, o.source), wanted = model.inPhases(ttg::toLinearLayout(o.type));
      ConversionPlan plan = planThroughShared(source, wanted, bytes, model.shared);
      if (plan.kind != ConversionPlan::Kind::Shared || plan.passes() != 1 || !plan.memory.isInjective())
        return;
      SmallVector<unsigned> offsets;
      for (uint64_t basis : plan.memory.bases(HwDim::Offset))
        for (int64_t coordinate : plan.memory.coords(basis))
          offsets.push_back(coordinate);
      Attribute before = best;
      unsigned was = cost;
      // An interval as long as the tile: no padding.
      consider(ttg::PaddedSharedEncodingAttr::get(o.type.getContext(), {unsigned(plan.memory.numElements())},
                                                  {16 / bytes}, shape.size(), offsets, {}),
               /*swizzled=*/true, /*stores=*/true, /*turned=*/true);
      // Each of its places takes a register for the address. Where single bytes are read many are taken already: not
      // for little.
      if (before && bytes == 1 && uint64_t(cost) * 4 > uint64_t(was) * 3)
        best = before, cost = was;
    }

    void tryOrder(ArrayRef<unsigned> order) {
      MLIRContext *context = o.type.getContext();
      unsigned bytes = storageBytes(o.type), row = shape[order[0]];
      bool turned = order != o.memoryOrder, stores = o.source && (turned || !model.asyncCopies);
      for (unsigned vecBytes : {16, 32, 64, 8, 4}) {
        unsigned vec = std::max(1u, vecBytes / bytes);
        if (vec > row || (vecBytes < 16 && model.asyncCopies && !turned)) // a copy writes 16 bytes in one place
          continue;
        for (unsigned perPhase : {1, 2, 4, 8})
          for (unsigned maxPhase = std::min(16u, row / vec); maxPhase >= 1 && cost > least; maxPhase /= 2) {
            consider(ttg::SwizzledSharedEncodingAttr::get(context, vec, perPhase, maxPhase, order), maxPhase > 1,
                     stores, turned);
            if (maxPhase > 1 && stores)
              consider(ttg::AmdRotatingSharedEncodingAttr::get(context, vec, perPhase, maxPhase, order), true, stores,
                       turned);
          }
      }
    }
  };
};

} // namespace

/// The lanes that LDS serves at once in 16-byte reads are measured ones (AMD, "Avoiding LDS bank conflicts on AMD
/// GPUs"): of 64 lanes 0-3 with 20-23, and on gfx950, with twice the banks, 12-15 and 24-27 too.
SharedMemoryModel amdSharedMemory(StringRef arch) {
  SharedMemoryModel model;
  if (arch == "gfx950") {
    model.banks = 64;
    model.wideLoadLanes = {1, 2, 20, 12};
  } else if (arch.starts_with("gfx9")) {
    model.wideLoadLanes = {1, 2, 20};
  }
  return model;
}

std::unique_ptr<MatrixModel> amdMatrixModel(StringRef arch) {
  auto make = [&](MatrixFamily family, unsigned version) {
    return std::make_unique<AmdMatrixModel>(family, version, amdSharedMemory(arch), arch == "gfx950");
  };
  if (arch == "gfx90a")
    return make(MatrixFamily::Mfma, 2);
  if (arch == "gfx942")
    return make(MatrixFamily::Mfma, 3);
  if (arch == "gfx950")
    return make(MatrixFamily::Mfma, 4);
  if (arch.starts_with("gfx11"))
    return make(MatrixFamily::Wmma, 1);
  if (arch == "gfx1200" || arch == "gfx1201")
    return make(MatrixFamily::Wmma, 2);
  if (arch == "gfx1250")
    return make(MatrixFamily::Wmma, 3);
  return nullptr;
}

} // namespace tessera
