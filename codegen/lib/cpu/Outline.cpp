// Helpers that make internal functions and loops over the lanes of a vector.
#include "Outline.h"

#include "HostCpu.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tessera::codegen {

void setVectorAttributes(Function &f) {
  std::string bits = std::to_string(hostCpu().vectorBytes * 8);
  f.addFnAttr("prefer-vector-width", bits);
  f.addFnAttr("min-legal-vector-width", bits);
  f.addFnAttr("probe-stack", "inline-asm");
  f.addFnAttr(Attribute::NoUnwind);
}

std::string typeName(const Type *type) {
  std::string text;
  raw_string_ostream(text) << *type;
  erase_if(text, [](char c) { return c == '<' || c == '>' || c == ' '; });
  return text;
}

Value *callOutlined(Builder &b, const Twine &name, Type *result, ArrayRef<Value *> args,
                    function_ref<Value *(Builder &, ArrayRef<Value *>)> body) {
  Module &m = *b.GetInsertBlock()->getModule();
  std::string symbol = ("tessera." + name).str();
  Function *f = m.getFunction(symbol);
  if (!f) {
    SmallVector<Type *> types = map_to_vector(args, [](Value *v) { return v->getType(); });
    f = Function::Create(FunctionType::get(result, types, false), GlobalValue::InternalLinkage, symbol, m);
    f->addFnAttr(Attribute::NoInline);
    setVectorAttributes(*f);
    IRBuilder<> inner(BasicBlock::Create(m.getContext(), "entry", f));
    SmallVector<Value *> params = map_to_vector(f->args(), [](Argument &a) -> Value * { return &a; });
    Value *value = body(inner, params);
    if (result->isVoidTy())
      inner.CreateRetVoid();
    else
      inner.CreateRet(value);
  }
  return b.CreateCall(f, args);
}

void laneLoop(Builder &b, unsigned n, function_ref<void(Builder &, Value *)> body) {
  BasicBlock *before = b.GetInsertBlock();
  Function *f = before->getParent();
  LLVMContext &c = b.getContext();
  BasicBlock *loop = BasicBlock::Create(c, "lane", f), *after = BasicBlock::Create(c, "lanes.done", f);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  PHINode *lane = b.CreatePHI(b.getInt32Ty(), 2, "lane");
  lane->addIncoming(b.getInt32(0), before);
  body(b, lane);
  Value *next = b.CreateAdd(lane, b.getInt32(1));
  lane->addIncoming(next, b.GetInsertBlock());
  // Unrolling would undo the point of an outlined loop.
  Instruction *branch = b.CreateCondBr(b.CreateICmpULT(next, b.getInt32(n)), loop, after);
  MDNode *noUnroll = MDNode::get(c, MDString::get(c, "llvm.loop.unroll.disable"));
  MDNode *id = MDNode::getDistinct(c, {nullptr, noUnroll});
  id->replaceOperandWith(0, id);
  branch->setMetadata(LLVMContext::MD_loop, id);
  b.SetInsertPoint(after);
}

void emitIf(Builder &b, Value *condition, function_ref<void(Builder &)> body) {
  Function *f = b.GetInsertBlock()->getParent();
  BasicBlock *then = BasicBlock::Create(b.getContext(), "then", f),
             *after = BasicBlock::Create(b.getContext(), "after", f);
  b.CreateCondBr(condition, then, after);
  b.SetInsertPoint(then);
  body(b);
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

static Value *alloca_(Builder &b, Type *type) {
  BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  IRBuilder<> at(&entry, entry.begin());
  AllocaInst *memory = at.CreateAlloca(type);
  memory->setAlignment(Align(64));
  return memory;
}

static Type *memoryType(Builder &b, Type *vector) {
  auto *type = cast<FixedVectorType>(vector);
  Type *elem = type->getElementType();
  return FixedVectorType::get(elem->isIntegerTy(1) ? b.getInt8Ty() : elem, type->getNumElements());
}

Value *spill(Builder &b, Value *vector) {
  Type *type = memoryType(b, vector->getType());
  Value *memory = alloca_(b, type);
  b.CreateAlignedStore(type == vector->getType() ? vector : b.CreateZExt(vector, type), memory, Align(64));
  return memory;
}

Value *loadLane(Builder &b, Type *vector, Value *memory, Value *lane) {
  Type *elem = cast<FixedVectorType>(memoryType(b, vector))->getElementType();
  Value *value = b.CreateLoad(elem, b.CreateGEP(elem, memory, lane));
  return vector->getScalarType()->isIntegerTy(1) ? b.CreateIsNotNull(value) : value;
}

void storeLane(Builder &b, Value *memory, Value *lane, Value *value) {
  if (value->getType()->isIntegerTy(1))
    value = b.CreateZExt(value, b.getInt8Ty());
  b.CreateStore(value, b.CreateGEP(value->getType(), memory, lane));
}

Value *mapLanes(Builder &b, Type *result, ArrayRef<Value *> args,
                function_ref<Value *(Builder &, ArrayRef<Value *>)> fn) {
  SmallVector<Value *> memory = map_to_vector(args, [&](Value *v) { return spill(b, v); });
  Value *out = spill(b, Constant::getNullValue(result));
  laneLoop(b, cast<FixedVectorType>(result)->getNumElements(), [&](Builder &b, Value *lane) {
    SmallVector<Value *> scalars;
    for (auto [arg, m] : zip(args, memory))
      scalars.push_back(loadLane(b, arg->getType(), m, lane));
    storeLane(b, out, lane, fn(b, scalars));
  });
  Value *loaded = b.CreateAlignedLoad(memoryType(b, result), out, Align(64));
  return result == loaded->getType() ? loaded : b.CreateTrunc(loaded, result);
}

} // namespace tessera::codegen
