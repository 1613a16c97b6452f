#pragma once
// What the passes ask of a vendor's matrix instructions. One class per vendor, in this folder; nothing else in passes/
// knows what they have.
#include "tessera/ir/LayoutPlans.h"
#include "tessera/ir/ttgir/Ttgir.h"
#include "tessera/passes/TargetModel.h"

#include <array>
#include <memory>
#include <optional>

namespace tessera {

/// A dot and what surrounds it.
struct Product {
  tt::DotOp dot;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  unsigned rank = 2;
  unsigned numWarps = 4, lanes = 32;
  bool feedsA = false;   ///< its result is, element by element, another dot's A
  bool fedByDot = false; ///< its A is another dot's result

  static Product of(tt::DotOp dot);
  mlir::Type a() const { return mlir::getElementTypeOrSelf(dot->getOperand(0).getType()); }
  mlir::Type b() const { return mlir::getElementTypeOrSelf(dot->getOperand(1).getType()); }
  mlir::Type c() const { return mlir::getElementTypeOrSelf(dot->getOperand(2).getType()); }
};

/// An operand on its way to registers, through shared memory.
struct StoredOperand {
  mlir::RankedTensorType type;          ///< in its dot_op layout
  llvm::ArrayRef<unsigned> memoryOrder; ///< of the tile that is stored: its dimensions in device memory, fastest first
  llvm::ArrayRef<int32_t> order;        ///< dimension i of the operand is dimension order[i] of that tile
  mlir::Attribute source;               ///< layout in which the tile is loaded; null where unknown
};

class MatrixModel {
public:
  virtual ~MatrixModel() = default;

  /// The instruction for the product's types, as deep as its k allows; tiles smaller than the instruction are for the
  /// caller to pad. Nothing: multiply-add.
  virtual std::optional<MatrixInstruction> instruction(const Product &product) const = 0;
  /// Rows, columns and depth that a tile needs to have at least.
  virtual std::array<int64_t, 3> smallest(const MatrixInstruction &i) const { return {i.m, i.n, i.k}; }
  /// What operands of these types are converted to before the product; null: nothing. The conversion is exact.
  virtual mlir::Type operandType(mlir::Type a, mlir::Type b) const = 0;
  /// How f32 operands are taken when the program asks for `asked`: as asked, or more exactly.
  virtual tt::InputPrecision precision(tt::InputPrecision asked) const = 0;
  /// Whether the target executes the instruction with operands of types `a` and `b`.
  virtual bool executes(const MatrixInstruction &i, mlir::Type a, mlir::Type b) const = 0;

  /// The instruction that tiles of so many rows and so deep are multiplied with where the layout names `i`.
  virtual MatrixInstruction widest(const MatrixInstruction &i, int64_t rows, int64_t depth) const { return i; }
  virtual ttg::MatrixEncoding accumulators(const Product &product, const MatrixInstruction &i) const = 0;
  /// Consecutive elements along k of a lane.
  virtual unsigned kWidth(const Product &product, const MatrixInstruction &i) const = 0;
  /// Does the product by an instruction of several warps instead, if there is one that fits.
  virtual bool byWarpGroup(const Product &) const { return false; }
  /// Gives the load of an operand another layout, so that it can be stored well. `index`: 0 for A, 1 for B.
  virtual void prepareLoad(const Product &, const MatrixInstruction &, ttg::DotOperandEncodingAttr, unsigned) const {}
  /// The layout in which a tile of accumulators, or what is computed of it, is stored to device memory; null: that of
  /// wide stores, through shared memory. The product's operands take `operandBytes` of that.
  virtual mlir::Attribute storeEncoding(ttg::MatrixEncoding, mlir::RankedTensorType tile, uint64_t operandBytes) const {
    return {};
  }
  /// The encoding of an operand in shared memory.
  virtual mlir::Attribute sharedEncoding(const StoredOperand &operand) const = 0;
};

/// "80", "90", … ; null where the generation has no matrix instructions we know.
std::unique_ptr<MatrixModel> nvidiaMatrixModel(unsigned capability);
/// "gfx942", …
std::unique_ptr<MatrixModel> amdMatrixModel(llvm::StringRef arch);
SharedMemoryModel amdSharedMemory(llvm::StringRef arch);

/// A buffer filled with `v`, in whatever layout that is.
mlir::Value allocateOperand(mlir::OpBuilder &b, mlir::Value v, mlir::Attribute encoding);
/// Replaces the dot by an op with the same kind of result.
void replaceDot(mlir::OpBuilder &b, tt::DotOp dot, mlir::Operation *by);
/// The load that `v` comes from, by conversions and transpositions of values used once; null if there is none.
tt::LoadOp loadOf(mlir::Value v);
/// Whether the element type is one of OCP's 8-bit floats.
inline bool isFp8(mlir::Type t) { return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(t); }
/// Whether it is one of those without infinities and -0.
inline bool isFnuz(mlir::Type t) { return mlir::isa<mlir::Float8E4M3FNUZType, mlir::Float8E5M2FNUZType>(t); }
} // namespace tessera
