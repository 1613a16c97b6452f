#pragma once
// The one lowering from ttgir to LLVM IR, for every target: a visitor that emits through IRBuilder. What a target does
// its own way is asked of TargetInfo; where an element lives is asked of its linear layout, and of nothing else.
#include "tessera/codegen/TargetInfo.h"
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/ir/ttir/Ttir.h"
#include "tessera/passes/AxisInfo.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Allocator.h"

namespace mlir::scf {
class ForOp;
class IfOp;
class WhileOp;
} // namespace mlir::scf

namespace tessera::ttng {
class WarpGroupDotOp;
class WarpGroupDotWaitOp;
} // namespace tessera::ttng

namespace tessera::codegen {

class DebugInfo;

using V = llvm::Value *;
/// A tt value in LLVM IR: one lane value per register of the layout for a tensor, one uniform value for a scalar.
using Lanes = llvm::SmallVector<V, 4>;

/// Flat index of register `reg` of lane 0 of warp 0.
inline uint64_t registerImage(const LinearLayout &layout, unsigned reg) {
  uint64_t image = 0;
  for (auto [i, basis] : llvm::enumerate(layout.bases(HwDim::Register)))
    if (reg >> i & 1)
      image ^= basis;
  return image;
}

/// A predicate known to be true is none.
V simplify(V predicate);
/// Float operations on tiles of the ops in `block`, not in regions within.
uint64_t flopsOf(mlir::Block &block);
AccessHints hintsOf(tt::CacheModifier cache, tt::EvictionPolicy evict, bool isVolatile);

/// Every assembler takes the name: letters, digits, _ and $, no digit first. LLVM ends the process over others.
bool isSymbolName(llvm::StringRef name);
/// The float function that a math op, or a division or square root, is, and whether precisely.
std::optional<std::pair<MathFn, bool>> mathFunction(mlir::Operation *op, bool precise);

class Emitter {
public:
  Emitter(mlir::ModuleOp module, const compile_options &options, TargetInfo &target, llvm::Module &llvmModule);
  ~Emitter();

  /// Emits the kernel. Failures are reported as diagnostics at the op that cannot be lowered.
  mlir::LogicalResult emitKernel(mlir::FunctionOpInterface kernel, unsigned sharedBytes);
  /// Bitcode files that extern_elementwise ops name, each once.
  llvm::ArrayRef<std::string> libraries() const { return libraryPaths; }

private:
  // ---- values (Emitter.cpp) -----------------------------------------------------------------------------------------
  llvm::Type *scalarType(mlir::Type type); ///< of an element, pointer or scalar, as a register holds it
  llvm::Type *memoryType(mlir::Type type); ///< as memory holds it: i1 takes a byte
  llvm::Type *valueType(mlir::Type type);  ///< lane type of a tensor, else scalarType
  unsigned numValues(mlir::Type type);     ///< registers of a tensor, else 1
  const LinearLayout &layoutOf(mlir::Type tensor);
  llvm::ArrayRef<V> get(mlir::Value v);
  V getUniform(mlir::Value v) { return get(v).front(); }
  void set(mlir::Value v, Lanes lanes);
  /// Lanes of `v` as they would be in a tensor with `count` registers: scalars are splat.
  Lanes getAsLanes(mlir::Value v, unsigned count);
  V asLane(V v); ///< splat, where it is not a lane value already
  bool isTensor(mlir::Value v) { return mlir::isa<mlir::RankedTensorType>(v.getType()); }

  // ---- hardware position -> index -----------------------------------------------------------------------------------
  /// The part of a linear map that a lane computes once: the xor of the images of its lane and warp bits, and which
  /// bits of the result can be set by it. The image of the register bits is a constant added per register.
  struct Base {
    V value = nullptr; ///< i32 lane value
    uint64_t mask = 0;
  };
  Base baseOf(const LinearLayout &layout);
  /// base ^ constant, in a form that address selection can split into base + immediate wherever no carry is possible.
  V at(const Base &base, uint64_t constant);
  V applyBits(llvm::ArrayRef<uint64_t> bases, V id, uint64_t &mask);
  /// i1 lane value: (this lane & laneMask) == ofLane and the same of the warp; nullptr when all are meant.
  V isThread(uint64_t laneMask, uint64_t warpMask, uint64_t ofLane, uint64_t ofWarp);
  /// The same: this lane and warp hold the first copy.
  V isFirstCopy(uint64_t freeLanes, uint64_t freeWarps) { return isThread(freeLanes, freeWarps, 0, 0); }
  V constant(uint64_t value); ///< i32 lane value

  // ---- control flow (Emitter.cpp) -----------------------------------------------------------------------------------
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitRegionWithBlocks(mlir::Region &region);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  mlir::LogicalResult emitCall(tt::CallOp call);
  llvm::SmallVector<llvm::PHINode *> createPhis(mlir::TypeRange types, unsigned incoming);
  void bind(mlir::ValueRange values, llvm::ArrayRef<V> flat); ///< the reverse of flatten
  void bindPhis(mlir::ValueRange values, llvm::ArrayRef<llvm::PHINode *> phis);
  void addIncoming(llvm::ArrayRef<llvm::PHINode *> phis, llvm::ArrayRef<V> values, llvm::BasicBlock *from);
  Lanes flatten(mlir::ValueRange values);
  llvm::BasicBlock *newBlock(const llvm::Twine &name);
  void barrier(bool ofGlobalMemory = false);
  /// Where warps take turns (WarpTurns.h): whether this loop or branch has a barrier in it; begins a cut; ends one.
  bool isCut(mlir::Operation *op);
  void beginCut(const llvm::Twine &name);
  void endCut();

  // ---- elementwise (Elementwise.cpp, Math.cpp, InlineAsm.cpp) -------------------------------------------------------
  /// Handles arith, math and the elementwise tt ops; nothing where `op` is none of them.
  std::optional<mlir::LogicalResult> emitElementwise(mlir::Operation *op);
  std::optional<mlir::LogicalResult> emitMath(mlir::Operation *op);
  mlir::LogicalResult mapLanes(mlir::Operation *op, llvm::function_ref<V(llvm::ArrayRef<V>)> fn);
  mlir::LogicalResult emitMathFn(mlir::Operation *op, MathFn fn, bool precise);
  llvm::SmallVector<mlir::Operation *> longChain(mlir::Operation *first); // ElementwiseChain.cpp
  mlir::LogicalResult emitChain(llvm::ArrayRef<mlir::Operation *> chain);
  mlir::LogicalResult emitConstant(mlir::Operation *op, mlir::Attribute value);
  mlir::LogicalResult emitExternCall(tt::ExternElementwiseOp op);
  mlir::LogicalResult emitInlineAsm(tt::ElementwiseInlineAsmOp op);
  V math(MathFn fn, llvm::ArrayRef<V> args, bool precise);
  llvm::Function *mathAnywhere(MathFn fn, llvm::ArrayRef<V> like);
  V divide(V a, V b, bool isSigned, bool remainder);
  V floatToInt(V v, llvm::Type *to, bool isSigned);
  V truncateFloat(V v, llvm::Type *to, bool towardZero);
  /// A cast to or from an 8-bit float (Fp8.cpp); nothing where `op` is none.
  std::optional<mlir::LogicalResult> emitFp8Cast(mlir::Operation *op, bool towardZero);
  V fromFp8(V v, mlir::Type from, llvm::Type *to);

  // ---- memory (Memory.cpp) ------------------------------------------------------------------------------------------
  mlir::LogicalResult emitLoad(tt::LoadOp op);
  mlir::LogicalResult emitStore(tt::StoreOp op);
  mlir::LogicalResult emitPrint(tt::PrintOp op);
  mlir::LogicalResult emitAssert(tt::AssertOp op);
  /// Elements per access of `ptr` in its layout, given its alignment facts and that `mask` is constant over the
  /// elements.
  unsigned accessWidth(mlir::Value ptr, mlir::Value mask, AccessHints &hints);
  V toMemory(V v, llvm::Type *memory);   ///< i1 -> i8
  V fromMemory(V v, llvm::Type *scalar); ///< i8 -> i1

  // ---- shape (Shape.cpp) --------------------------------------------------------------------------------------------
  mlir::LogicalResult emitMakeRange(tt::MakeRangeOp op);
  /// Result register r takes the source register that holds element elementOf(flat index of r). The lane and warp parts
  /// of the two layouts must agree; the passes see to that.
  mlir::LogicalResult permuteRegisters(mlir::Operation *op, mlir::Value source, mlir::Value result,
                                       llvm::function_ref<uint64_t(uint64_t)> elementOf);
  mlir::LogicalResult emitJoin(tt::JoinOp op);
  mlir::LogicalResult emitSplit(tt::SplitOp op);
  mlir::LogicalResult emitCat(tt::CatOp op);
  std::optional<mlir::LogicalResult> emitShapeOp(mlir::Operation *op);

  // ---- across lanes (Reduce.cpp, ConvertLayout.cpp) -----------------------------------------------------------------
  mlir::LogicalResult emitReduce(tt::ReduceOp op);
  /// The combine region applied to two tuples of lane values.
  mlir::LogicalResult combine(mlir::Region &region, llvm::ArrayRef<V> a, llvm::ArrayRef<V> c, Lanes &result);
  mlir::LogicalResult combineAll(mlir::Region &region, llvm::SmallVectorImpl<Lanes> &items,
                                 mlir::Region *inOrder = nullptr);
  mlir::LogicalResult reduceLanes(tt::ReduceOp op, llvm::ArrayRef<unsigned> masks, Lanes &tuple);
  mlir::FailureOr<llvm::Function *> laneReduction(tt::ReduceOp op, const ReductionPlan &plan);
  mlir::LogicalResult reduceWarps(tt::ReduceOp op, const ReductionPlan &plan, llvm::SmallVectorImpl<Lanes> &results);
  mlir::LogicalResult emitConvert(ttg::ConvertLayoutOp op);
  void convertByShuffles(const ConversionPlan &plan, llvm::ArrayRef<V> source, Lanes &result);
  void convertThroughShared(ttg::ConvertLayoutOp op, const ConversionPlan &plan, unsigned scratch,
                            llvm::ArrayRef<V> source, Lanes &result);
  void applySelect(const ConversionPlan::Select &step, Lanes &registers);
  /// (base ^ constantElements) * elementBytes + start, with all that is constant added last: it becomes the immediate of
  /// the access.
  V byteOffset(const Base &base, uint64_t constantElements, unsigned elementBytes, V start);
  V addLast(V sum, V term); ///< sum + term, with the sum's constant again last

  // ---- shared memory (Shared.cpp) -----------------------------------------------------------------------------------
  /// A tile and the buffer it is read from or written to: position -> offset in elements, and where that begins.
  struct SharedTile {
    LinearLayout offsets;
    Base base;                       ///< of offsets and of a view that is no constant
    uint64_t view = 0, viewMask = 0; ///< offset of the view, where constant; bits that it may have
    V movingView = nullptr;          ///< offset of the view where it is no constant (uniform)
    V start = nullptr;               ///< byte offset of the allocation (uniform)
    unsigned elementBytes = 1;
    ttg::PaddedSharedEncodingAttr padded;
  };
  SharedTile placeOf(const LinearLayout &layout, mlir::Value buffer); ///< without base
  SharedTile sharedTile(const LinearLayout &layout, mlir::Value buffer);
  Base baseIn(const SharedTile &tile, const LinearLayout &offsets);
  /// Byte offset (lane value) of the register whose image in tile.offsets is `image`.
  V sharedOffset(const SharedTile &tile, uint64_t image);
  llvm::SmallVector<unsigned> vectorBits(const SharedTile &tile, unsigned maxBytes = 16);
  void forEachSharedAccess(const SharedTile &tile, llvm::ArrayRef<unsigned> vectorBits,
                           llvm::function_ref<void(llvm::ArrayRef<unsigned>, V)> fn);
  void storeTile(mlir::Value tile, mlir::Value buffer);
  void loadTile(mlir::Value tile, mlir::Value buffer);
  void loadMatrices(const MatrixAccess &access, llvm::Type *memory, llvm::Type *scalar,
                    llvm::function_ref<V(uint64_t)> byteOffsetOf,
                    llvm::function_ref<Lanes(llvm::ArrayRef<unsigned>)> tagsOf, Lanes &result);
  void storeMatrices(const MatrixAccess &access, llvm::ArrayRef<V> values, llvm::Type *memory,
                     llvm::function_ref<V(uint64_t)> byteOffsetOf,
                     llvm::function_ref<Lanes(llvm::ArrayRef<unsigned>)> tagsOf);
  unsigned bufferStride(ttg::MemDescIndexOp op);
  Lanes tagsOf(mlir::Value tile, mlir::Value buffer, llvm::ArrayRef<unsigned> registers);
  /// `layout` of a tile in the view `buffer` as one of the whole, untransposed allocation, and where the view starts.
  std::pair<LinearLayout, uint64_t> inAllocation(LinearLayout layout, mlir::Value buffer);
  std::optional<mlir::LogicalResult> emitSharedOp(mlir::Operation *op);

  // ---- matrix products (Dot.cpp, WarpGroupDot.cpp, LocalDot.cpp) and asynchronous copies (AsyncCopy.cpp) ------------
  std::optional<mlir::LogicalResult> emitMatrixOp(mlir::Operation *op);
  class WarpProduct;
  mlir::LogicalResult emitDot(tt::DotOp op);
  class WarpGroupProduct;
  mlir::LogicalResult emitWarpGroupDot(ttng::WarpGroupDotOp op);
  mlir::LogicalResult emitWarpGroupWait(ttng::WarpGroupDotWaitOp op);
  class DotOperand;
  mlir::LogicalResult emitLocalDot(ttg::LocalDotOp op);
  llvm::SmallVector<V> descriptors(mlir::Value buffer, const WarpGroupOperand &operand, llvm::ArrayRef<uint64_t> origins,
                                   const LinearLayout::Bases &warps);
  V descriptorStart(mlir::Value buffer);
  /// Elements of one 32-bit word, low ones first, and back.
  Lanes unpack(V word, llvm::Type *scalar);
  V pack(llvm::ArrayRef<V> elements);
  std::optional<mlir::LogicalResult> emitAsyncOp(mlir::Operation *op);
  mlir::LogicalResult emitAsyncCopy(ttg::AsyncCopyGlobalToLocalOp op);
  V trueEverywhere(mlir::Value mask);
  struct AsyncCopy {
    unsigned bytes;
    V offset, pointer, active, mask;
    V everywhere; ///< uniform: mask is true in all lanes; null: not known
    V exists;     ///< uniform: elsewhere, nobody reads what is copied; null: not known
    bool besideProduct; ///< in a loop of products of warp groups
    AccessHints hints;
    Lanes tags;
  };
  llvm::SmallVector<AsyncCopy> startedCopies; ///< not yet emitted
  void flushCopies();
  V tripExists(mlir::Value mask);

  mlir::ModuleOp module;
  const compile_options &options;
  TargetInfo &target;
  llvm::Module &llvmModule;
  llvm::IRBuilder<> b;
  AxisInfoAnalysis axisInfo;
  std::unique_ptr<DebugInfo> debug;
  llvm::Function *function = nullptr;
  V lane = nullptr, warp = nullptr, thread = nullptr; ///< ids, computed in the entry block
  unsigned turns = 1;
  llvm::SmallVector<llvm::BasicBlock *> cuts;
  llvm::BumpPtrAllocator storage; ///< of the lanes in `values`: get() stays valid while more values are set
  llvm::DenseMap<mlir::Value, llvm::ArrayRef<V>> values;
  llvm::DenseMap<V, std::pair<V, unsigned>> wordOf; ///< elements that unpack took out of a word, and which
  llvm::DenseMap<mlir::Type, std::unique_ptr<LinearLayout>> layouts;
  llvm::DenseMap<mlir::Type, Base> bases; ///< of make_range results: one index computation per layout
  llvm::SmallVector<Lanes, 2> yielded;    ///< operands of the terminator met last, per enclosing region
  bool scalarsAreLanes = false;           ///< inside a combine region a scalar of the IR is a lane value
  bool oneElement = false;                ///< inside a function of one element: a tensor is one lane value
  unsigned callDepth = 0;
  llvm::SmallVector<std::string> libraryPaths;
};

} // namespace tessera::codegen
