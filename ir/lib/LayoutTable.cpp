// Layouts as text: where each element is, or what each place holds.
#include "tessera/ir/LinearLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <vector>

using namespace llvm;

namespace tessera {

static constexpr int64_t perRow = 16; ///< cells of a row where the layout has no rows of its own

/// Columns padded to the same width, each row after its label.
static std::string table(ArrayRef<std::string> labels, ArrayRef<std::string> cells) {
  auto width = [](ArrayRef<std::string> texts) {
    size_t w = 0;
    for (const std::string &text : texts)
      w = std::max(w, text.size());
    return w;
  };
  size_t labelWidth = width(labels), cellWidth = width(cells),
         columns = labels.empty() ? 0 : cells.size() / labels.size();
  std::string out;
  for (auto [row, label] : enumerate(labels)) {
    out += label + std::string(labelWidth - label.size(), ' ') + ":";
    for (size_t c = 0; c < columns; ++c) {
      const std::string &cell = cells[row * columns + c];
      out += "  " + cell;
      if (c + 1 < columns)
        out.append(cellWidth - cell.size(), ' ');
    }
    out += '\n';
  }
  return out;
}

static std::string coordinates(ArrayRef<int64_t> coords) {
  return "(" + join(map_range(coords, [](int64_t c) { return std::to_string(c); }), ",") + ")";
}

/// Calls visit(register, lane, warp, block, flat index) for every place.
template <class F> static void forEachPlace(const LinearLayout &layout, F visit) {
  for (int64_t b = 0; b < layout.size(HwDim::Block); ++b)
    for (int64_t w = 0; w < layout.size(HwDim::Warp); ++w)
      for (int64_t l = 0; l < layout.size(HwDim::Lane); ++l)
        for (int64_t r = 0; r < layout.size(HwDim::Register); ++r)
          visit(r, l, w, b,
                layout.apply({{HwDim::Register, r}, {HwDim::Lane, l}, {HwDim::Warp, w}, {HwDim::Block, b}}));
}

/// " W1 B0", as far as there are several warps or blocks.
static std::string warpAndBlock(const LinearLayout &layout, int64_t warp, int64_t block) {
  return (layout.numBits(HwDim::Warp) ? " W" + std::to_string(warp) : "") +
         (layout.numBits(HwDim::Block) ? " B" + std::to_string(block) : "");
}

std::string renderTable(const LinearLayout &layout, function_ref<uint64_t(uint64_t)> storedAt) {
  std::vector<std::string> cells(layout.numElements()), labels;
  auto put = [&](LinearLayout::Basis element, std::string place) {
    cells[element] += (cells[element].empty() ? "" : "|") + place;
  };
  if (layout.has(HwDim::Offset))
    for (int64_t b = 0; b < layout.size(HwDim::Block); ++b)
      for (int64_t offset = 0; offset < layout.size(HwDim::Offset); ++offset)
        put(layout.apply({{HwDim::Offset, offset}, {HwDim::Block, b}}),
            std::to_string(storedAt ? storedAt(offset) : offset) + warpAndBlock(layout, 0, b));
  else
    forEachPlace(layout, [&](int64_t r, int64_t l, int64_t w, int64_t b, LinearLayout::Basis element) {
      put(element, "T" + std::to_string(l) + ":" + std::to_string(r) + warpAndBlock(layout, w, b));
    });

  int64_t columns = layout.rank() == 0 ? 1 : layout.shape().back();
  if (layout.rank() == 1)
    columns = std::min(columns, perRow);
  for (int64_t start = 0; start < layout.numElements(); start += columns)
    labels.push_back(coordinates(layout.coords(start)));
  return table(labels, cells);
}

std::string renderHardware(const LinearLayout &layout) {
  std::vector<std::string> cells, labels;
  if (layout.has(HwDim::Offset)) {
    for (int64_t b = 0; b < layout.size(HwDim::Block); ++b)
      for (int64_t offset = 0; offset < layout.size(HwDim::Offset); ++offset) {
        cells.push_back(coordinates(layout.coords(layout.apply({{HwDim::Offset, offset}, {HwDim::Block, b}}))));
        if (offset % perRow == 0)
          labels.push_back(std::to_string(offset) + warpAndBlock(layout, 0, b));
      }
    return table(labels, cells);
  }
  forEachPlace(layout, [&](int64_t r, int64_t l, int64_t w, int64_t b, LinearLayout::Basis element) {
    if (r == 0)
      labels.push_back("T" + std::to_string(l) + warpAndBlock(layout, w, b));
    cells.push_back(coordinates(layout.coords(element)));
  });
  return table(labels, cells);
}

} // namespace tessera
