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

/// Every assembler takes the name: letters, digits, _ and $, no digit first. LLVM ends the process over others.
bool isSymbolName(llvm::StringRef name);

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
  /// i1 lane value: this lane and warp hold the first copy; nullptr when there are no copies.
  V isFirstCopy(uint64_t freeLanes, uint64_t freeWarps);
  V constant(uint64_t value); ///< i32 lane value

  // ---- control flow (Emitter.cpp) -----------------------------------------------------------------------------------
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitRegionWithBlocks(mlir::Region &region);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  llvm::SmallVector<llvm::PHINode *> createPhis(mlir::TypeRange types, unsigned incoming);
  void bindPhis(mlir::ValueRange values, llvm::ArrayRef<llvm::PHINode *> phis);
  void addIncoming(llvm::ArrayRef<llvm::PHINode *> phis, llvm::ArrayRef<V> values, llvm::BasicBlock *from);
  Lanes flatten(mlir::ValueRange values);
  llvm::BasicBlock *newBlock(const llvm::Twine &name);

  // ---- elementwise (Elementwise.cpp) --------------------------------------------------------------------------------
  /// Handles arith, math and the elementwise tt ops; false when `op` is none of them.
  std::optional<mlir::LogicalResult> emitElementwise(mlir::Operation *op);
  std::optional<mlir::LogicalResult> emitMath(mlir::Operation *op);
  mlir::LogicalResult mapLanes(mlir::Operation *op, llvm::function_ref<V(llvm::ArrayRef<V>)> fn);
  mlir::LogicalResult emitMathFn(mlir::Operation *op, MathFn fn, bool precise);
  mlir::LogicalResult emitConstant(mlir::Operation *op, mlir::Attribute value);
  mlir::LogicalResult emitExternCall(tt::ExternElementwiseOp op);
  mlir::LogicalResult emitInlineAsm(tt::ElementwiseInlineAsmOp op);
  V math(MathFn fn, llvm::ArrayRef<V> args, bool precise);
  V divide(V a, V b, bool isSigned, bool remainder);
  V floatToInt(V v, llvm::Type *to, bool isSigned);
  V truncateFloat(V v, llvm::Type *to, bool towardZero);

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
  mlir::LogicalResult combineAll(mlir::Region &region, llvm::SmallVectorImpl<Lanes> &items);
  mlir::LogicalResult reduceLanes(tt::ReduceOp op, llvm::ArrayRef<unsigned> masks, Lanes &tuple);
  mlir::LogicalResult reduceWarps(tt::ReduceOp op, const ReductionPlan &plan, llvm::SmallVectorImpl<Lanes> &results);
  mlir::LogicalResult emitConvert(ttg::ConvertLayoutOp op);
  void convertByShuffles(const ConversionPlan &plan, llvm::ArrayRef<V> source, Lanes &result);
  void convertThroughShared(ttg::ConvertLayoutOp op, const ConversionPlan &plan, unsigned scratch,
                            llvm::ArrayRef<V> source, Lanes &result);
  void applySelect(const ConversionPlan::Select &step, Lanes &registers);
  V byteOffset(const Base &base, uint64_t constantElements, unsigned elementBytes, unsigned scratch);

  // ---- shared memory (Shared.cpp) -----------------------------------------------------------------------------------
  mlir::LogicalResult forEachSharedAccess(mlir::Operation *op, mlir::Value tile, mlir::Value buffer,
                                          llvm::function_ref<void(llvm::ArrayRef<unsigned>, V)> fn);
  mlir::LogicalResult storeTile(mlir::Operation *op, mlir::Value tile, mlir::Value buffer);
  Lanes tagsOf(mlir::Value tile, mlir::Value buffer, llvm::ArrayRef<unsigned> registers);
  std::optional<mlir::LogicalResult> emitSharedOp(mlir::Operation *op);

  mlir::ModuleOp module;
  const compile_options &options;
  TargetInfo &target;
  llvm::Module &llvmModule;
  llvm::IRBuilder<> b;
  AxisInfoAnalysis axisInfo;
  std::unique_ptr<DebugInfo> debug;
  llvm::Function *function = nullptr;
  V lane = nullptr, warp = nullptr, thread = nullptr; ///< ids, computed in the entry block
  llvm::BumpPtrAllocator storage; ///< of the lanes in `values`: get() stays valid while more values are set
  llvm::DenseMap<mlir::Value, llvm::ArrayRef<V>> values;
  llvm::DenseMap<mlir::Type, std::unique_ptr<LinearLayout>> layouts;
  llvm::DenseMap<mlir::Type, Base> bases; ///< of make_range results: one index computation per layout
  llvm::SmallVector<Lanes, 2> yielded;    ///< operands of the terminator met last, per enclosing region
  bool scalarsAreLanes = false;           ///< inside a combine region a scalar of the IR is a lane value
  unsigned callDepth = 0;
  llvm::SmallVector<std::string> libraryPaths;
};

} // namespace tessera::codegen
