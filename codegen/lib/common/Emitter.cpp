// Values, hardware positions and control flow of the shared lowering. Dispatch of the other ops goes by family:
// elementwise, memory, shape, across lanes, shared memory.
#include "Emitter.h"
#include "DebugInfo.h"
#include "WarpTurns.h"

#include "tessera/passes/Allocation.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/InstIterator.h"

namespace tessera::codegen {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

TargetInfo::~TargetInfo() = default;

Emitter::Emitter(mlir::ModuleOp module, const compile_options &options, TargetInfo &target, llvm::Module &llvmModule)
    : module(module), options(options), target(target), llvmModule(llvmModule), b(llvmModule.getContext()),
      axisInfo(module) {
  if (options.enable_fp_fusion) {
    llvm::FastMathFlags flags;
    flags.setAllowContract();
    b.setFastMathFlags(flags);
  }
}
Emitter::~Emitter() = default;

/// Conversions round as they are written. Two narrowing ones that may be contracted become one, f64 to f16 say: that
/// is another number, and on a host a function that no library here has.
static void keepRoundings(llvm::Module &m) {
  for (llvm::Function &f : m)
    for (llvm::Instruction &i : llvm::instructions(f))
      if (llvm::isa<llvm::FPTruncInst>(i))
        i.copyFastMathFlags(llvm::FastMathFlags());
}

bool isSymbolName(llvm::StringRef name) {
  auto fits = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; };
  return !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, fits);
}

LogicalResult Emitter::emitKernel(mlir::FunctionOpInterface kernel, unsigned sharedBytes) {
  if (!isSymbolName(kernel.getName()))
    return kernel.emitError() << "'" << kernel.getName()
                              << "' cannot be a kernel's name: use letters, digits and _, no digit first";
  if (kernel.getName().starts_with("_Z") || kernel.getName().starts_with("__"))
    return kernel.emitError() << "'" << kernel.getName()
                              << "' cannot be a kernel's name: _Z and __ begin those of libraries";
  llvm::SmallVector<llvm::Type *> types;
  for (mlir::Type type : kernel.getArgumentTypes()) {
    llvm::Type *scalar = mlir::isa<tt::PointerType, mlir::IntegerType, mlir::FloatType>(type) ? scalarType(type) : nullptr;
    if (!scalar)
      return kernel.emitError() << "kernel parameters are pointers, integers and floats, not " << type;
    types.push_back(scalar);
  }
  llvm::SmallVector<V> args;
  function = target.createKernel(llvmModule, b, kernel.getName(), types, args, options, sharedBytes);
  if (options.line_info) {
    debug = std::make_unique<DebugInfo>(llvmModule, *function, kernel.getLoc(), target.lineDirectivesOnly());
    b.SetCurrentDebugLocation(debug->locate(kernel.getLoc()));
  }
  for (auto [i, argument] : llvm::enumerate(kernel.getArguments())) {
    set(argument, {args[i]});
    auto range = kernel.getArgAttrOfType<mlir::IntegerAttr>(i, "tt.pointer_range");
    auto *parameter = llvm::dyn_cast<llvm::Argument>(args[i]);
    if (range && range.getInt() <= 32 && parameter) // Triton's: what is behind the pointer is less than 2^31 bytes long
      parameter->addAttr(llvm::Attribute::get(b.getContext(), "tessera.below-2g"));
  }

  // Ids and index bases gather in the entry block while the body is emitted, so that they dominate every use.
  turns = ttg::lookupWarpTurns(module);
  llvm::Instruction *turn = nullptr;
  if (turns > 1) {
    turn = b.Insert(new llvm::FreezeInst(b.getInt32(0))); // takeTurns puts the number in its place
    target.takeTurn(b, turn, options.num_warps);
  }
  thread = target.threadId(b);
  lane = target.laneId(b);
  warp = target.warpId(b);
  llvm::BasicBlock *entry = b.GetInsertBlock();
  llvm::BasicBlock *body = newBlock("body");
  b.SetInsertPoint(body);
  yielded.emplace_back();
  if (failed(emitRegionWithBlocks(kernel.getFunctionBody())))
    return failure();
  llvm::BasicBlock *last = b.GetInsertBlock();
  b.SetInsertPoint(entry);
  b.CreateBr(body);
  b.SetInsertPoint(last);
  if (turns > 1)
    beginCut("end");
  target.finishKernel(b);
  if (turns > 1)
    takeTurns(*function, turns, turn, cuts);
  keepRoundings(llvmModule);
  if (debug)
    debug->finalize();
  return success();
}

// ---- values ---------------------------------------------------------------------------------------------------------

llvm::Type *Emitter::scalarType(mlir::Type type) {
  return llvm::TypeSwitch<mlir::Type, llvm::Type *>(mlir::getElementTypeOrSelf(type))
      .Case<mlir::IntegerType>([&](auto t) -> llvm::Type * {
        unsigned width = t.getWidth();
        return width == 1 || (width >= 8 && width <= 64 && llvm::isPowerOf2_32(width)) ? b.getIntNTy(width) : nullptr;
      })
      .Case<mlir::IndexType>([&](auto) { return b.getInt64Ty(); })
      .Case<mlir::Float16Type>([&](auto) { return b.getHalfTy(); })
      .Case<mlir::BFloat16Type>([&](auto) { return b.getBFloatTy(); })
      .Case<mlir::Float8E4M3FNType, mlir::Float8E5M2Type, mlir::Float8E4M3FNUZType, mlir::Float8E5M2FNUZType>(
          [&](auto) { return b.getInt8Ty(); })
      .Case<mlir::Float32Type>([&](auto) { return b.getFloatTy(); })
      .Case<mlir::Float64Type>([&](auto) { return b.getDoubleTy(); })
      .Case<tt::PointerType>([&](auto t) -> llvm::Type * {
        bool global = t.getAddressSpace() == 1 && scalarType(t.getPointeeType());
        return global ? b.getPtrTy(target.globalAddressSpace()) : nullptr;
      })
      .Case<ttg::MemDescType>([&](auto) { return b.getInt32Ty(); }) // of both offsets, see Shared.cpp
      .Case<ttg::AsyncTokenType>([&](auto) { return b.getInt1Ty(); }) // of no value
      .Default([](auto) { return nullptr; });
}

llvm::Type *Emitter::memoryType(mlir::Type type) {
  llvm::Type *scalar = scalarType(type);
  return scalar && scalar->isIntegerTy(1) ? b.getInt8Ty() : scalar;
}

llvm::Type *Emitter::valueType(mlir::Type type) {
  llvm::Type *scalar = scalarType(type);
  return scalarsAreLanes || mlir::isa<mlir::RankedTensorType>(type) ? target.laneType(scalar) : scalar;
}

const LinearLayout &Emitter::layoutOf(mlir::Type tensor) {
  auto &slot = layouts[tensor];
  if (!slot)
    slot = std::make_unique<LinearLayout>(ttg::toLinearLayout(mlir::cast<mlir::RankedTensorType>(tensor)));
  return *slot;
}

unsigned Emitter::numValues(mlir::Type type) {
  if (mlir::isa<ttg::MemDescType>(type))
    return 2;
  if (mlir::isa<ttg::AsyncTokenType>(type))
    return 0;
  return mlir::isa<mlir::RankedTensorType>(type) && !oneElement ? layoutOf(type).size(HwDim::Register) : 1;
}

llvm::ArrayRef<V> Emitter::get(mlir::Value v) { return values.find(v)->second; }
void Emitter::set(mlir::Value v, Lanes lanes) { values[v] = llvm::ArrayRef<V>(lanes).copy(storage); }

Lanes Emitter::getAsLanes(mlir::Value v, unsigned count) {
  if (isTensor(v))
    return Lanes(get(v));
  return Lanes(count, asLane(getUniform(v)));
}

V Emitter::asLane(V v) {
  return v->getType() == target.laneType(v->getType()->getScalarType()) ? v : target.splat(b, v);
}

// ---- hardware position -> index -------------------------------------------------------------------------------------

V Emitter::constant(uint64_t value) { return target.splat(b, b.getInt32(value)); }

V Emitter::applyBits(llvm::ArrayRef<uint64_t> bases, V id, uint64_t &mask) {
  V sum = nullptr;
  auto add = [&](V term, uint64_t bits) {
    if (!sum)
      sum = term;
    else
      sum = (mask & bits) ? b.CreateXor(sum, term) : b.CreateOr(sum, term, "", true);
    mask |= bits;
  };
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(id->getType(), n); };
  for (unsigned i = 0; i < bases.size();) {
    uint64_t basis = bases[i];
    if (!basis) {
      ++i;
      continue;
    }
    // A run of bits that moves as a whole: one mask and one shift.
    unsigned end = i + 1;
    while (llvm::isPowerOf2_64(basis) && end < bases.size() && bases[end] == basis << (end - i))
      ++end;
    uint64_t run = ((uint64_t(1) << (end - i)) - 1) << i;
    if (llvm::isPowerOf2_64(basis)) {
      unsigned to = llvm::Log2_64(basis);
      V bits = b.CreateAnd(id, number(run));
      add(to >= i ? b.CreateShl(bits, to - i, "", /*NUW=*/true, /*NSW=*/true) : b.CreateLShr(bits, i - to),
          to >= i ? run << (to - i) : run >> (i - to));
    } else {
      V bit = b.CreateAnd(b.CreateLShr(id, i), number(1));
      add(b.CreateAnd(b.CreateNeg(bit), number(basis)), basis);
    }
    i = end;
  }
  return sum;
}

Emitter::Base Emitter::baseOf(const LinearLayout &layout) {
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::BasicBlock &entry = function->getEntryBlock();
  if (!entry.getTerminator())
    b.SetInsertPoint(&entry);
  Base base;
  if (thread) {
    LinearLayout::Bases all(layout.bases(HwDim::Lane));
    llvm::append_range(all, layout.bases(HwDim::Warp));
    base.value = applyBits(all, thread, base.mask);
  } else {
    base.value = applyBits(layout.bases(HwDim::Lane), lane, base.mask);
    uint64_t warpMask = 0;
    if (V uniform = applyBits(layout.bases(HwDim::Warp), warp, warpMask)) {
      V part = target.splat(b, uniform);
      base.value = !base.value              ? part
                   : (base.mask & warpMask) ? b.CreateXor(base.value, part)
                                            : b.CreateOr(base.value, part, "", true);
      base.mask |= warpMask;
    }
  }
  if (!base.value)
    base.value = constant(0);
  return base;
}

V Emitter::at(const Base &base, uint64_t offset) {
  if (!offset)
    return base.value;
  return (base.mask & offset) ? b.CreateXor(base.value, constant(offset))
                              : b.CreateOr(base.value, constant(offset), "", true);
}

V Emitter::isThread(uint64_t laneMask, uint64_t warpMask, uint64_t ofLane, uint64_t ofWarp) {
  V is = nullptr;
  auto require = [&](V id, uint64_t mask, uint64_t value) {
    V same = b.CreateICmpEQ(b.CreateAnd(id, llvm::ConstantInt::get(id->getType(), mask)),
                            llvm::ConstantInt::get(id->getType(), value));
    is = is ? b.CreateAnd(is, same) : same;
  };
  if (thread) {
    unsigned laneBits = llvm::Log2_32(target.warpSize());
    if (uint64_t mask = laneMask | warpMask << laneBits)
      require(thread, mask, ofLane | ofWarp << laneBits);
    return is;
  }
  if (laneMask)
    require(lane, laneMask, ofLane);
  if (warpMask)
    require(target.splat(b, warp), warpMask, ofWarp);
  return is;
}

// ---- control flow ---------------------------------------------------------------------------------------------------

llvm::BasicBlock *Emitter::newBlock(const llvm::Twine &name) {
  return llvm::BasicBlock::Create(b.getContext(), name, function);
}

void Emitter::barrier(bool ofGlobalMemory) {
  if (turns > 1)
    beginCut("barrier");
  ofGlobalMemory ? target.globalBarrier(b) : target.barrier(b);
  if (turns > 1)
    endCut();
}

bool Emitter::isCut(mlir::Operation *op) {
  return turns > 1 && op->walk([](mlir::Operation *inner) {
    bool meets = mlir::isa<ttg::BarrierOp, tt::DebugBarrierOp>(inner) || scratchBytes(inner);
    return meets ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  }).wasInterrupted();
}

void Emitter::beginCut(const llvm::Twine &name) {
  llvm::BasicBlock *cut = newBlock(name);
  b.CreateBr(cut);
  b.SetInsertPoint(cut);
  cuts.push_back(cut);
}

void Emitter::endCut() {
  llvm::BasicBlock *part = newBlock("part");
  b.CreateBr(part);
  b.SetInsertPoint(part);
}

Lanes Emitter::flatten(mlir::ValueRange range) {
  Lanes all;
  for (mlir::Value v : range)
    llvm::append_range(all, get(v));
  return all;
}

llvm::SmallVector<llvm::PHINode *> Emitter::createPhis(mlir::TypeRange types, unsigned incoming) {
  llvm::SmallVector<llvm::PHINode *> phis;
  for (mlir::Type type : types)
    for (unsigned i = 0, n = numValues(type); i < n; ++i)
      phis.push_back(b.CreatePHI(valueType(type), incoming));
  return phis;
}

void Emitter::bind(mlir::ValueRange range, llvm::ArrayRef<V> flat) {
  for (mlir::Value v : range) {
    unsigned n = numValues(v.getType());
    set(v, Lanes(flat.take_front(n)));
    flat = flat.drop_front(n);
  }
}

void Emitter::bindPhis(mlir::ValueRange range, llvm::ArrayRef<llvm::PHINode *> phis) { bind(range, Lanes(phis)); }

void Emitter::addIncoming(llvm::ArrayRef<llvm::PHINode *> phis, llvm::ArrayRef<V> incoming, llvm::BasicBlock *from) {
  for (auto [phi, value] : llvm::zip_equal(phis, incoming))
    phi->addIncoming(value, from);
}

LogicalResult Emitter::emitBlock(mlir::Block &block) {
  if (target.countsTraffic() && !scalarsAreLanes) // what is in a combine region counts with its reduction
    if (uint64_t flops = flopsOf(block))
      target.countFlops(b, flops);
  for (auto it = block.begin(); it != block.end();) {
    llvm::SmallVector<mlir::Operation *> chain = longChain(&*it);
    if (failed(chain.empty() ? emitOp(&*it) : emitChain(chain)))
      return failure();
    std::advance(it, std::max<size_t>(chain.size(), 1));
  }
  return success();
}

/// A function body: one block, or several with cf branches. Ends with the builder after the (single) return's place.
LogicalResult Emitter::emitRegionWithBlocks(mlir::Region &region) {
  if (region.hasOneBlock())
    return emitBlock(region.front());
  if (scalarsAreLanes)
    return region.getParentOp()->emitError("a function with branches cannot be called from a combine region");

  llvm::DenseMap<mlir::Block *, llvm::BasicBlock *> blocks;
  llvm::DenseMap<mlir::Block *, llvm::SmallVector<llvm::PHINode *>> phis;
  llvm::BasicBlock *exit = newBlock("exit");
  llvm::SmallVector<std::pair<Lanes, llvm::BasicBlock *>> returns;
  llvm::ReversePostOrderTraversal<mlir::Region *> order(&region);
  blocks[&region.front()] = b.GetInsertBlock();
  for (mlir::Block *block : order) {
    if (block == &region.front())
      continue;
    blocks[block] = newBlock("block");
    b.SetInsertPoint(blocks[block]);
    phis[block] = createPhis(block->getArgumentTypes(), 2);
    bindPhis(block->getArguments(), phis[block]);
  }
  auto branchTo = [&](mlir::Block *to, mlir::ValueRange operands, llvm::BasicBlock *from) {
    addIncoming(phis[to], flatten(operands), from);
    return blocks[to];
  };
  for (mlir::Block *block : order) {
    b.SetInsertPoint(blocks[block]);
    for (mlir::Operation &op : block->without_terminator())
      if (failed(emitOp(&op)))
        return failure();
    llvm::BasicBlock *from = b.GetInsertBlock();
    mlir::Operation *end = block->getTerminator();
    if (auto br = mlir::dyn_cast<mlir::cf::BranchOp>(end)) {
      b.CreateBr(branchTo(br.getDest(), br.getDestOperands(), from));
    } else if (auto br = mlir::dyn_cast<mlir::cf::CondBranchOp>(end)) {
      V condition = getUniform(br.getCondition());
      // Two edges to one block would need two phi entries from one predecessor: give the second an own block.
      llvm::BasicBlock *then = branchTo(br.getTrueDest(), br.getTrueDestOperands(), from);
      llvm::BasicBlock *otherwise = newBlock("else");
      b.CreateCondBr(condition, then, otherwise);
      b.SetInsertPoint(otherwise);
      b.CreateBr(branchTo(br.getFalseDest(), br.getFalseDestOperands(), otherwise));
    } else if (mlir::isa<tt::ReturnOp>(end)) {
      returns.emplace_back(flatten(end->getOperands()), from);
      b.CreateBr(exit);
    } else {
      return end->emitOpError("cannot be lowered: unknown terminator");
    }
  }
  b.SetInsertPoint(exit);
  Lanes results;
  if (!returns.empty())
    for (unsigned i = 0; i < returns.front().first.size(); ++i) {
      llvm::PHINode *phi = b.CreatePHI(returns.front().first[i]->getType(), returns.size());
      for (auto &[list, from] : returns)
        phi->addIncoming(list[i], from);
      results.push_back(phi);
    }
  yielded.back() = results;
  return success();
}

/// How many elements of a carried tile share a word: of tiles that are loaded for the next iteration, in words at
/// least, as many as it holds, since they would wait for it in a register each.
static unsigned elementsPerWord(mlir::scf::ForOp loop, unsigned carried, llvm::Type *element, unsigned registers,
                                const AxisInfoAnalysis &axes) {
  auto load = loop.getYieldedValues()[carried].getDefiningOp<tt::LoadOp>();
  if (!load || element->isVectorTy() || !(element->isIntegerTy() || element->isFloatingPointTy()))
    return 1;
  unsigned bits = element->getScalarSizeInBits(), perWord = 32 / bits;
  if ((bits != 8 && bits != 16) || registers % perWord || axes.contiguousElements(load.getPtr()) < perWord ||
      (load.getMask() && axes.maskAlignment(load.getMask()) < perWord))
    return 1;
  return perWord;
}

LogicalResult Emitter::emitFor(mlir::scf::ForOp op) {
  V lower = getUniform(op.getLowerBound()), upper = getUniform(op.getUpperBound()), step = getUniform(op.getStep());
  Lanes initial = flatten(op.getInitArgs());
  // (elements per word, values) of each carried value.
  llvm::SmallVector<std::pair<unsigned, unsigned>> parts;
  for (auto [i, type] : llvm::enumerate(op.getInitArgs().getTypes())) {
    unsigned n = numValues(type);
    parts.push_back({elementsPerWord(op, i, valueType(type), n, axisInfo), n});
  }
  auto toWords = [&](llvm::ArrayRef<V> values) {
    Lanes words;
    for (auto [perWord, n] : parts) {
      for (unsigned r = 0; r < n; r += perWord)
        words.push_back(perWord == 1 ? values[r] : pack(values.slice(r, perWord)));
      values = values.drop_front(n);
    }
    return words;
  };
  initial = toWords(initial);
  llvm::BasicBlock *before = b.GetInsertBlock(), *header = newBlock("for"), *body = newBlock("for.body"),
                   *after = newBlock("for.end");
  b.CreateBr(header);
  b.SetInsertPoint(header);
  if (isCut(op))
    cuts.push_back(header);
  llvm::PHINode *iv = b.CreatePHI(lower->getType(), 2);
  iv->addIncoming(lower, before);
  llvm::SmallVector<llvm::PHINode *> phis;
  for (V value : initial)
    phis.push_back(b.CreatePHI(value->getType(), 2));
  addIncoming(phis, initial, before);
  set(op.getInductionVar(), {iv});
  llvm::ArrayRef<llvm::PHINode *> rest = phis;
  for (auto [part, arg, result] : llvm::zip_equal(parts, op.getRegionIterArgs(), op.getResults())) {
    Lanes elements;
    for (llvm::PHINode *word : rest.take_front(part.second / part.first))
      if (part.first == 1)
        elements.push_back(word);
      else
        llvm::append_range(elements, unpack(word, valueType(arg.getType())));
    rest = rest.drop_front(part.second / part.first);
    set(result, elements);
    set(arg, std::move(elements));
  }
  b.CreateCondBr(op.getUnsignedCmp() ? b.CreateICmpULT(iv, upper) : b.CreateICmpSLT(iv, upper), body, after);

  b.SetInsertPoint(body);
  yielded.emplace_back();
  if (failed(emitBlock(*op.getBody())))
    return failure();
  llvm::BasicBlock *latch = b.GetInsertBlock();
  addIncoming(phis, toWords(yielded.pop_back_val()), latch);
  iv->addIncoming(b.CreateAdd(iv, step), latch);
  b.CreateBr(header);

  b.SetInsertPoint(after);
  return success();
}

LogicalResult Emitter::emitIf(mlir::scf::IfOp op) {
  bool hasElse = !op.getElseRegion().empty(), cut = isCut(op);
  if (cut)
    beginCut("if");
  llvm::BasicBlock *then = newBlock("if.then"), *after = newBlock("if.end"),
                   *otherwise = hasElse || cut ? newBlock("if.else") : after;
  b.CreateCondBr(getUniform(op.getCondition()), then, otherwise);

  auto arm = [&](mlir::Region &region, llvm::BasicBlock *start) -> std::optional<std::pair<Lanes, llvm::BasicBlock *>> {
    b.SetInsertPoint(start);
    yielded.emplace_back();
    if (failed(emitBlock(region.front())))
      return std::nullopt;
    llvm::BasicBlock *end = b.GetInsertBlock();
    b.CreateBr(after);
    return std::make_pair(yielded.pop_back_val(), end);
  };
  auto first = arm(op.getThenRegion(), then);
  if (!first)
    return failure();
  std::optional<std::pair<Lanes, llvm::BasicBlock *>> second;
  if (hasElse && !(second = arm(op.getElseRegion(), otherwise)))
    return failure();
  if (cut && !hasElse) {
    b.SetInsertPoint(otherwise);
    b.CreateBr(after);
  }

  b.SetInsertPoint(after);
  if (cut)
    cuts.push_back(after);
  auto phis = createPhis(op.getResultTypes(), 2);
  if (!phis.empty()) { // results imply an else arm
    addIncoming(phis, first->first, first->second);
    addIncoming(phis, second->first, second->second);
  }
  bindPhis(op.getResults(), phis);
  if (cut)
    endCut();
  return success();
}

LogicalResult Emitter::emitWhile(mlir::scf::WhileOp op) {
  Lanes initial = flatten(op.getInits());
  llvm::BasicBlock *entry = b.GetInsertBlock(), *before = newBlock("while"), *body = newBlock("while.body"),
                   *after = newBlock("while.end");
  b.CreateBr(before);
  b.SetInsertPoint(before);
  auto phis = createPhis(op.getInits().getTypes(), 2);
  addIncoming(phis, initial, entry);
  bindPhis(op.getBeforeArguments(), phis);
  const bool cut = isCut(op);
  if (cut) {
    cuts.push_back(before);
    endCut();
  }
  yielded.emplace_back();
  if (failed(emitBlock(*op.getBeforeBody())))
    return failure();
  Lanes passed = yielded.pop_back_val();
  if (cut)
    beginCut("while.test");
  b.CreateCondBr(getUniform(op.getConditionOp().getCondition()), body, after);

  b.SetInsertPoint(body);
  bind(op.getAfterArguments(), passed);
  yielded.emplace_back();
  if (failed(emitBlock(*op.getAfterBody())))
    return failure();
  addIncoming(phis, yielded.pop_back_val(), b.GetInsertBlock());
  b.CreateBr(before);

  b.SetInsertPoint(after);
  bind(op.getResults(), passed);
  return success();
}

// A helper that was not inlined earlier is emitted in place: machine code has one function.
LogicalResult Emitter::emitCall(tt::CallOp call) {
  auto callee = module.lookupSymbol<tt::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal())
    return call.emitError() << "calls a function without a body: " << call.getCallee();
  if (callDepth == 64)
    return call.emitError() << "recursion: a kernel cannot call itself";
  ++callDepth;
  for (auto [argument, operand] : llvm::zip_equal(callee.getArguments(), call->getOperands()))
    set(argument, Lanes(get(operand)));
  yielded.emplace_back();
  if (failed(emitRegionWithBlocks(callee.getBody())))
    return failure();
  --callDepth;
  bind(call->getResults(), yielded.pop_back_val());
  return success();
}

LogicalResult Emitter::emitOp(mlir::Operation *op) {
  if (debug)
    b.SetCurrentDebugLocation(debug->locate(op->getLoc()));
  for (mlir::Type type : op->getResultTypes()) {
    if (!scalarType(type))
      return op->emitError() << "values of type " << type << " cannot be lowered";
    if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type); tensor && !tensor.getEncoding())
      return op->emitError() << "a tile without an encoding cannot be lowered: convert to ttgir first";
  }
  bool waits = op->getNumRegions() || op->hasTrait<mlir::OpTrait::IsTerminator>() ||
               (!mlir::isa<ttg::AsyncCopyGlobalToLocalOp>(op) && !mlir::isMemoryEffectFree(op));
  if (waits && !startedCopies.empty())
    flushCopies();
  if (scalarsAreLanes && op->getNumRegions())
    return op->emitOpError("cannot be lowered inside a combine region: lanes would part ways");
  for (auto family : {&Emitter::emitElementwise, &Emitter::emitShapeOp, &Emitter::emitSharedOp, &Emitter::emitAsyncOp,
                      &Emitter::emitMatrixOp})
    if (auto result = (this->*family)(op))
      return *result;

  return llvm::TypeSwitch<mlir::Operation *, LogicalResult>(op)
      .Case<tt::LoadOp>([&](auto o) { return emitLoad(o); })
      .Case<tt::StoreOp>([&](auto o) { return emitStore(o); })
      .Case<tt::ReduceOp>([&](auto o) { return emitReduce(o); })
      .Case<ttg::ConvertLayoutOp>([&](auto o) { return emitConvert(o); })
      .Case<tt::PrintOp>([&](auto o) { return emitPrint(o); })
      .Case<tt::AssertOp>([&](auto o) { return emitAssert(o); })
      .Case<tt::AssumeOp>([&](auto o) {
        b.CreateAssumption(get(o.getCondition()).front());
        return success();
      })
      .Case<tt::GetProgramIdOp>([&](auto o) {
        set(o.getResult(), {target.programId(b, o.getAxisAsInt())});
        return success();
      })
      .Case<tt::GetNumProgramsOp>([&](auto o) {
        set(o.getResult(), {target.numPrograms(b, o.getAxisAsInt())});
        return success();
      })
      .Case<mlir::scf::ForOp>([&](auto o) { return emitFor(o); })
      .Case<mlir::scf::IfOp>([&](auto o) { return emitIf(o); })
      .Case<mlir::scf::WhileOp>([&](auto o) { return emitWhile(o); })
      .Case<mlir::scf::ConditionOp>([&](auto o) {
        yielded.back() = flatten(o.getArgs());
        return success();
      })
      .Case<mlir::scf::YieldOp, tt::ReturnOp>([&](auto o) {
        yielded.back() = flatten(o->getOperands());
        return success();
      })
      .Case<tt::ReduceReturnOp>([&](auto o) {
        // A value from outside the region is uniform; the result is one of lanes.
        yielded.back().clear();
        for (mlir::Value v : o->getOperands())
          yielded.back().append(getAsLanes(v, 1));
        return success();
      })
      .Case<tt::CallOp>([&](auto o) { return emitCall(o); })
      .Default([](mlir::Operation *o) { return o->emitOpError("has no lowering to LLVM IR"); });
}

} // namespace tessera::codegen
