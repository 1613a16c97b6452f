// Sessions, values and variables of a trace.
#include "state.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/dsl/trace.h>
#include <tessera/ir/Diagnostics.h>
#include <tessera/ir/Module.h>
#include <tessera/ir/Register.h>

using namespace mlir;

namespace tessera::detail {

namespace {
thread_local trace_state *active = nullptr;
thread_local const location *caller = nullptr; // of a function composed of tile operations
std::atomic<std::uint32_t> next_epoch{1};

/// Erases, inside out and last to first, what nothing uses.
void erase_unused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    for (Region &r : op.getRegions())
      for (Block &inner : r)
        erase_unused(inner);
    if (isOpTriviallyDead(&op))
      op.erase();
  }
}

const char *name(region_kind k) {
  switch (k) {
  case region_kind::function: return "kernel";
  case region_kind::loop: return "loop";
  case region_kind::then_branch: return "if_ branch";
  case region_kind::else_branch: return "else_ branch";
  case region_kind::condition: return "condition of the while_";
  case region_kind::body: return "body of the while_";
  case region_kind::combine: return "combine function";
  }
  return "region";
}
} // namespace

void fail_at(std::string message, const location &w) {
  const location &l = caller ? *caller : w;
  throw error(stage::trace, std::move(message), {l.file_name(), l.line(), l.column()});
}
void fail(std::string_view message, const location &w) { fail_at(std::string(message), w); }

std::string brief(const location &w) {
  std::string_view file = w.file_name();
  return fmt::format("{}:{}", file.substr(file.find_last_of('/') + 1), w.line());
}

location_scope::location_scope(const location &w) : where_(w), outer_(caller) {
  if (!caller)
    caller = &where_; // the outermost call is the user's
}
location_scope::~location_scope() { caller = outer_; }

// ---- the session ----------------------------------------------------------------------------------------------------

trace_state::trace_state()
    : context([] {
        DialectRegistry registry;
        registerAllDialects(registry);
        auto c = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
        c->loadAllAvailableDialects();
        return c;
      }()),
      b(context.get()), epoch(next_epoch++) {
  const char *s = std::getenv("TESSERA_TRACE_STRICT");
  strict = s && *s && *s != '0';
}

trace_state::~trace_state() {
  while (!constructs.empty())
    drop(constructs.back()->id);
}

trace_state &trace_state::current(const location &w) {
  if (!active)
    fail_at("tile operation used outside a kernel trace: write it in a lambda given to tl::kernel", w);
  return *active;
}

session::session(const char *name, std::span<const param_type> types, std::span<const param_spec> specs,
                 const location &where)
    : state_(std::make_unique<trace_state>()) {
  trace_state &s = *state_;
  s.last = where;
  OpBuilder &b = s.b;
  const Location loc = s.at(where);
  s.module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(s.module->getBody());

  SmallVector<Type> inputs;
  SmallVector<DictionaryAttr> attributes;
  auto spec = [&](std::size_t i) { return i < specs.size() ? specs[i] : param_spec{}; };
  auto is_one = [&](std::size_t i) { return spec(i).equal_to_1 && !types[i].pointer && is_integer(types[i].element); };
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (is_one(i))
      continue;
    inputs.push_back(s.type_of({types[i].element, types[i].pointer}));
    NamedAttrList list;
    if (spec(i).divisible_by_16 && (types[i].pointer || is_integer(types[i].element)))
      list.append("tt.divisibility", b.getI32IntegerAttr(16));
    if (spec(i).below_2g && types[i].pointer)
      list.append("tt.pointer_range", b.getI32IntegerAttr(32));
    attributes.push_back(list.getDictionary(b.getContext()));
  }
  s.function = tt::FuncOp::create(b, loc, name, b.getFunctionType(inputs, {}), ArrayRef<NamedAttribute>{}, attributes);
  s.function.setSymVisibilityAttr(b.getStringAttr("public")); // written out, as Triton does
  if (s.function.getBody().empty()) {
    Block *entry = new Block;
    s.function.getBody().push_back(entry);
    entry->addArguments(inputs, SmallVector<Location>(inputs.size(), loc));
  }

  s.regions.push_back({region_kind::function, where});
  s.frames.emplace_back();
  s.frames.back().block = &s.function.getBody().front();
  b.setInsertionPointToEnd(s.frames.back().block);
  for (std::size_t i = 0, next = 0; i < types.size(); ++i)
    s.arguments.push_back(s.make(is_one(i) ? s.constant({types[i].element}, {.i = 1}, {}, where)
                                           : Value(s.frames.back().block->getArgument(next++))));
  s.outer = std::exchange(active, &s);
}

session::~session() { active = state_->outer; }

handle session::argument(std::size_t i) const { return state_->arguments[i]; }

ir_module session::finish() {
  trace_state &s = *state_;
  if (!s.constructs.empty())
    fail_at(fmt::format("the {} is still open at the end of the kernel", name(s.regions[s.frames.back().region].kind)),
            s.constructs.back()->where);
  tt::ReturnOp::create(s.b, s.function.getLoc());
  erase_unused(s.function.getBody().front());

  {
    Diagnostics diagnostics(s.context.get());
    if (failed(mlir::verify(*s.module)))
      diagnostics.raise(stage::verify, "the trace is no valid module");
  }
  return ir_module(std::make_unique<ir_module::impl>(std::move(s.context), std::move(s.module)));
}

// ---- values ---------------------------------------------------------------------------------------------------------

Location trace_state::at(const location &w) {
  const location &l = caller ? *caller : w.line() ? w : last;
  last = l;
  return FileLineColLoc::get(b.getContext(), l.file_name(), l.line(), l.column());
}

handle trace_state::make(Value v) {
  values.push_back({v, frames.empty() ? 0 : frames.back().region});
  return {static_cast<std::uint32_t>(values.size() - 1), epoch};
}

namespace {
// A combine function becomes code for pairs of elements: it cannot reach tiles or scalars around it.
void check_combine(const trace_state &s, std::uint32_t region, const location &w) {
  for (auto &f : llvm::reverse(s.frames)) {
    if (f.region == region)
      return;
    if (f.kind == region_kind::combine)
      fail_at(
          fmt::format("the combine function at {} uses a value from outside; it may use its arguments and numbers only",
                      brief(s.regions[f.region].opened)),
          w);
  }
}
} // namespace

Value trace_state::use(handle h, const location &w) {
  if (h.epoch != epoch)
    fail_at("value belongs to another kernel's trace; values live only while their kernel is traced", w);
  const entry &e = values[h.id];
  const region_info &r = regions[e.region];
  if (!r.open)
    fail_at(fmt::format("value made in the {} at {} is used after it; hold it in a tl::var declared before",
                        name(r.kind), brief(r.opened)),
            w);
  check_combine(*this, e.region, w);
  return e.value;
}

Type trace_state::type_of(element_type t) {
  Type e;
  switch (t.base) {
  case dtype::i1: e = b.getIntegerType(t.pointer ? 8 : 1); break; // a bool takes a byte of memory
  case dtype::i8:
  case dtype::u8: e = b.getI8Type(); break;
  case dtype::i16:
  case dtype::u16: e = b.getI16Type(); break;
  case dtype::i32:
  case dtype::u32: e = b.getI32Type(); break;
  case dtype::i64:
  case dtype::u64: e = b.getI64Type(); break;
  case dtype::f8e4m3: e = b.getType<Float8E4M3FNType>(); break;
  case dtype::f8e5m2: e = b.getType<Float8E5M2Type>(); break;
  case dtype::f8e4m3fnuz: e = b.getType<Float8E4M3FNUZType>(); break;
  case dtype::f8e5m2fnuz: e = b.getType<Float8E5M2FNUZType>(); break;
  case dtype::f16: e = b.getF16Type(); break;
  case dtype::bf16: e = b.getBF16Type(); break;
  case dtype::f32: e = b.getF32Type(); break;
  case dtype::f64: e = b.getF64Type(); break;
  }
  return t.pointer ? Type(tt::PointerType::get(e, 1)) : e;
}

// ---- variables ------------------------------------------------------------------------------------------------------

variable &trace_state::variable_of(handle h, const location &w) {
  if (h.epoch != epoch)
    fail_at("variable belongs to another kernel's trace", w);
  variable &v = variables[h.id];
  const region_info &r = regions[v.region];
  if (!r.open)
    fail_at(fmt::format("variable declared at {} in the {} at {} is used after it; declare it before",
                        brief(v.declared), name(r.kind), brief(r.opened)),
            w);
  check_combine(*this, v.region, w);
  return v;
}

/// Says it to a branch whose operation is not built yet that `v` is used behind it.
static void note_use(trace_state &s, variable_id v) {
  if (s.constructs.empty() || s.frames.back().construct == s.constructs.back()->id)
    return;
  for (construct &c = *s.constructs.back(); const frame &f : c.done)
    c.touched |= f.values.contains(v);
}

Value trace_state::read(std::size_t level, variable_id v) {
  frame &f = frames[level];
  if (auto it = f.values.find(v); it != f.values.end())
    return it->second;
  const bool repeats = f.kind == region_kind::loop || f.kind == region_kind::condition || f.kind == region_kind::body;
  if (!repeats)
    return read(level - 1, v);
  const variable &decl = variables[v];
  BlockArgument a = f.block->addArgument(decl.type, at(decl.declared));
  f.entries[v] = a;
  return f.values[v] = a;
}

handle declare_variable(handle initial, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value v = s.use(initial, w);
  s.variables.push_back({s.frames.back().region, w, v.getType()});
  const auto id = static_cast<variable_id>(s.variables.size() - 1);
  s.frames.back().values[id] = v;
  return {id, s.epoch, /*variable=*/true};
}

handle read_variable(handle h, const location &w) {
  trace_state &s = trace_state::current(w);
  s.variable_of(h, w);
  note_use(s, h.id);
  return s.make(s.read(s.frames.size() - 1, h.id));
}

void assign_variable(handle h, handle value, const location *where) {
  trace_state &s = trace_state::current(where ? *where : location{});
  const location &w = where && where->line() ? *where : s.last;
  variable &v = s.variable_of(h, w);
  note_use(s, h.id);
  Value x = s.use(value, w);
  if (s.values[value.id].number)
    x = s.to_shape(x, shape_of(v.type), s.at(w)); // a number takes the shape
  if (x.getType() != v.type)
    fail_at(fmt::format("variable declared at {} is {}; assigned {} at {}", brief(v.declared),
                        to_string(shape_of(v.type)), to_string(shape_of(x)), brief(w)),
            w);
  s.frames.back().values[h.id] = x;
}

location variable_location(handle h) {
  trace_state &s = trace_state::current({});
  return s.variable_of(h, s.last).declared;
}

} // namespace tessera::detail
