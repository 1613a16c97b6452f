// Loops and branches: regions are traced into blocks of their own and become operations when they close.
#include "state.h"

#include "mlir/IR/IRMapping.h"

#include <fmt/format.h>

using namespace mlir;

namespace tessera::detail {

// ---- regions --------------------------------------------------------------------------------------------------------

construct &trace_state::open_construct(const location &w) {
  regions.push_back({region_kind::loop, w}); // the number serves the construct; its frames have their own
  const Location loc = at(w);
  constructs.push_back(std::make_unique<construct>(static_cast<std::uint32_t>(regions.size() - 1), w, loc));
  return *constructs.back();
}

construct &trace_state::top(std::uint32_t id) {
  if (constructs.empty() || constructs.back()->id != id)
    fail_at("a loop or branch inside is still open: regions close in the order they were opened", last);
  return *constructs.back();
}

frame &trace_state::push(construct &c, region_kind kind) {
  regions.push_back({kind, c.where});
  frame &f = frames.emplace_back();
  f.region = static_cast<std::uint32_t>(regions.size() - 1);
  f.construct = c.id;
  f.kind = kind;
  f.holder = std::make_unique<Region>();
  f.block = new Block;
  f.holder->push_back(f.block);
  b.setInsertionPointToEnd(f.block);
  return f;
}

frame trace_state::pop() {
  frame f = std::move(frames.back());
  frames.pop_back();
  regions[f.region].open = false;
  b.setInsertionPointToEnd(frames.back().block);
  return f;
}

void trace_state::drop(std::uint32_t id) noexcept {
  while (!constructs.empty() && constructs.back()->id >= id) {
    while (frames.back().construct == constructs.back()->id)
      pop();
    constructs.pop_back();
  }
}

void abandon(std::uint32_t region) noexcept {
  try {
    trace_state::current({}).drop(region);
  } catch (const error &) { // the session is gone, and the region with it
  }
}

namespace {

Operation *last_operation(const frame &f) { return f.block->empty() ? nullptr : &f.block->back(); }

/// Variables of enclosing regions that `frames` gave a new value, in order of declaration.
std::vector<variable_id> assigned(const trace_state &s, std::initializer_list<const frame *> list) {
  std::map<variable_id, bool> found;
  for (const frame *f : list)
    for (auto &[v, value] : f->values) {
      auto e = f->entries.find(v);
      const bool unchanged = e != f->entries.end() && Value(e->second) == value;
      if (!unchanged && s.regions[s.variables[v].region].open)
        found[v] = true;
    }
  std::vector<variable_id> out;
  for (auto &[v, _] : found)
    out.push_back(v);
  return out;
}

Value value_or(const frame &f, variable_id v, Value otherwise) {
  auto it = f.values.find(v);
  return it == f.values.end() ? otherwise : it->second;
}

/// The argument that stands for `v` at the start of `f`.
Value entry_of(trace_state &s, frame &f, variable_id v) {
  auto [it, is_new] = f.entries.try_emplace(v);
  if (is_new)
    it->second = f.block->addArgument(s.variables[v].type, s.at(s.variables[v].declared));
  return it->second;
}

/// Promises about the arguments of a region that closes: those of outer variables that it only reads are about the
/// outer value. What a carried variable holds is made by the assignments.
void settle_promises(trace_state &s, const frame &f, const std::vector<variable_id> &carried) {
  for (promise p : f.promises)
    for (auto &[v, a] : f.entries) {
      if (Value(a) != p.of)
        continue;
      if (llvm::is_contained(carried, v))
        fail_at(fmt::format("the hint is on the variable declared at {}, which the loop at {} assigns: give it to the "
                            "values that are assigned, as in x = tl::multiple_of(x + 16, {{16}})",
                            brief(s.variables[v].declared), brief(s.regions[f.region].opened)),
                p.where);
      p.of = s.read(s.frames.size() - 1, v);
      s.keep(p);
      break;
    }
}

/// Moves the operations of `f` to the end of `block`, with `carried` standing for block's arguments from `first` on and
/// all other variables that were read for their values outside.
void move_body(trace_state &s, frame &f, Block *block, const std::vector<variable_id> &carried, unsigned first) {
  for (std::size_t i = 0; i < carried.size(); ++i)
    entry_of(s, f, carried[i]).replaceAllUsesWith(block->getArgument(first + static_cast<unsigned>(i)));
  for (auto &[v, a] : f.entries)
    if (!llvm::is_contained(carried, v))
      a.replaceAllUsesWith(s.read(s.frames.size() - 1, v));
  block->getOperations().splice(block->end(), f.block->getOperations());
}

void clear(Block &b) {
  while (!b.empty())
    b.back().erase();
}

/// The operations of a block as text that does not depend on where they are in memory.
void fingerprint(Block &block, llvm::DenseMap<Value, unsigned> &numbers, llvm::raw_ostream &os) {
  auto number = [&](Value v) { return numbers.try_emplace(v, numbers.size()).first->second; };
  for (Operation &op : block) {
    os << op.getName() << op.getAttrDictionary();
    for (Value v : op.getOperands())
      os << " %" << number(v);
    for (Value v : op.getResults())
      os << " -> %" << number(v) << ":" << v.getType();
    os << "\n";
    for (Region &r : op.getRegions())
      for (Block &inner : r) {
        for (Value a : inner.getArguments())
          os << "^" << number(a);
        fingerprint(inner, numbers, os);
      }
  }
}

/// Strict mode: true after the first trace, whose result is kept; after the second both must be alike.
bool trace_again(trace_state &s, construct &c, std::initializer_list<Block *> blocks) {
  if (!s.strict)
    return false;
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DenseMap<Value, unsigned> numbers;
  for (Block *b : blocks) {
    for (Value a : b->getArguments())
      numbers.try_emplace(a, numbers.size());
    fingerprint(*b, numbers, os);
  }
  if (!c.again) {
    c.first_trace = std::move(text);
    return c.again = true;
  }
  if (text != c.first_trace)
    fail_at(fmt::format(
                "body of the loop at {} traced differently the second time: host state changes inside a traced loop; "
                "use tl::var, or tl::static_range for a loop of the host",
                brief(c.where)),
            c.where);
  return false;
}

Value scalar_condition(trace_state &s, handle h, const char *what, const location &w) {
  Value c = s.use(h, w);
  if (!shape_of(c).empty())
    fail_at(
        fmt::format("the condition of {} is a tile of shape {}; branch on a scalar, or choose elements with tl::where",
                    what, to_string(shape_of(c))),
        w);
  return c;
}

} // namespace

// ---- for ------------------------------------------------------------------------------------------------------------

open_loop open_for(dtype t, handle lo, handle hi, handle step, const tl::loop_options &o, const location &w) {
  trace_state &s = trace_state::current(w);
  std::vector<Value> bounds{s.use(lo, w), s.use(hi, w), s.use(step, w)};
  for (Value v : bounds)
    if (!shape_of(v).empty())
      fail_at(fmt::format("a bound of tl::range is a tile of shape {}; bounds are scalars", to_string(shape_of(v))), w);
  if (auto constant = bounds[2].getDefiningOp<arith::ConstantOp>())
    if (const APInt n = cast<IntegerAttr>(constant.getValue()).getValue();
        is_signed(t) ? n.isNonPositive() : n.isZero())
      fail_at("the step of tl::range must be positive", w);
  if (o.stages < 0 || o.unroll < 0)
    fail_at("loop options are positive, or 0 for the compiler's choice", w);
  if (o.stages > 64)
    fail_at(fmt::format("stages = {}: at most 64 trips of a loop can be in flight", o.stages), w);
  construct &c = s.open_construct(w);
  c.operands = std::move(bounds);
  c.options = o;
  c.is_unsigned = !is_signed(t);
  frame &f = s.push(c, region_kind::loop);
  return {c.id, s.make(f.block->addArgument(c.operands[0].getType(), c.loc))};
}

bool close_for(std::uint32_t region, handle &induction) {
  trace_state &s = trace_state::current({});
  construct &c = s.top(region);
  if (trace_again(s, c, {s.frames.back().block})) {
    s.pop();
    frame &f = s.push(c, region_kind::loop);
    induction = s.make(f.block->addArgument(c.operands[0].getType(), c.loc));
    return true;
  }
  frame f = s.pop();
  const auto carried = assigned(s, {&f});
  settle_promises(s, f, carried);
  SmallVector<Value> initial, yielded;
  for (variable_id v : carried) {
    initial.push_back(s.read(s.frames.size() - 1, v));
    entry_of(s, f, v);
    yielded.push_back(f.values.at(v));
  }
  OpBuilder inner(s.b.getContext());
  inner.setInsertionPointToEnd(f.block);
  scf::YieldOp::create(inner, c.loc, yielded);

  auto loop = scf::ForOp::create(s.b, c.loc, c.operands[0], c.operands[1], c.operands[2], initial);
  clear(*loop.getBody());
  f.block->getArgument(0).replaceAllUsesWith(loop.getInductionVar());
  move_body(s, f, loop.getBody(), carried, 1);
  if (c.is_unsigned)
    loop.setUnsignedCmp(true);
  for (const promise &p : f.promises)
    if (p.of == f.block->getArgument(0)) // the induction variable
      loop->setAttr(p.name + std::string("_arg0"), p.numbers);
  if (c.options.stages)
    loop->setAttr("tt.num_stages", s.b.getI32IntegerAttr(c.options.stages));
  if (c.options.unroll)
    loop->setAttr("tt.loop_unroll_factor", s.b.getI32IntegerAttr(c.options.unroll));
  for (std::size_t i = 0; i < carried.size(); ++i)
    s.frames.back().values[carried[i]] = loop.getResult(static_cast<unsigned>(i));
  s.constructs.pop_back();
  return false;
}

void loop_left_early(std::uint32_t region, const location &w) {
  abandon(region);
  fail_at(fmt::format("loop at {} was left by break or return; a traced loop runs to its end: fold the condition into "
                      "the bounds or "
                      "use tl::while_",
                      brief(w)),
          w);
}

// ---- if -------------------------------------------------------------------------------------------------------------

std::uint32_t open_if(handle condition, const location &w) {
  trace_state &s = trace_state::current(w);
  const Value cond = scalar_condition(s, condition, "tl::if_", w);
  construct &c = s.open_construct(w);
  c.operands = {cond};
  c.before = last_operation(s.frames.back());
  s.push(c, region_kind::then_branch);
  return c.id;
}

void open_else(std::uint32_t region) {
  trace_state &s = trace_state::current({});
  construct &c = s.top(region);
  c.before = last_operation(s.frames.back());
  c.touched = false; // by what else_'s argument captured
  s.push(c, region_kind::else_branch);
}

void close_branch(std::uint32_t region, std::span<const handle> yielded, const location &w) {
  trace_state &s = trace_state::current(w);
  construct &c = s.top(region);
  auto &values = c.yields.emplace_back();
  for (handle h : yielded)
    values.push_back(s.use(h, w));
  c.done.push_back(s.pop());
}

void finish_if(std::uint32_t region, std::span<handle> results) {
  trace_state &s = trace_state::current({});
  construct &c = s.top(region);
  if (c.touched || last_operation(s.frames.back()) != c.before) // kept by a name: its values would come after what uses them
    fail_at(fmt::format("the branch at {} ends with its statement: write tl::if_(…).else_(…); without a name for it",
                        brief(c.where)),
            s.last);
  frame none;
  frame &then = c.done[0], &otherwise = c.done.size() > 1 ? c.done[1] : none;
  const auto carried = assigned(s, {&then, &otherwise});

  std::vector<Value> yields[2] = {c.yields[0], c.done.size() > 1 ? c.yields[1] : std::vector<Value>{}};
  for (std::size_t i = 0; i < results.size(); ++i)
    if (yields[0][i].getType() != yields[1][i].getType())
      fail_at(fmt::format("value {} of tl::cond is {} in one branch and {} in the other", i + 1,
                          to_string(shape_of(yields[0][i])), to_string(shape_of(yields[1][i]))),
              c.where);
  for (variable_id v : carried) {
    const Value outer = s.read(s.frames.size() - 1, v);
    yields[0].push_back(value_or(then, v, outer));
    yields[1].push_back(value_or(otherwise, v, outer));
  }
  const bool with_else = c.done.size() > 1 || !yields[0].empty();
  auto op =
      scf::IfOp::create(s.b, c.loc, ValueRange(yields[0]).getTypes(), c.operands[0], /*addThenBlock=*/true, with_else);
  auto fill = [&](Block *block, frame &f, const std::vector<Value> &values) {
    clear(*block);
    if (f.block)
      block->getOperations().splice(block->end(), f.block->getOperations());
    OpBuilder inner(s.b.getContext());
    inner.setInsertionPointToEnd(block);
    scf::YieldOp::create(inner, c.loc, values);
  };
  fill(op.thenBlock(), then, yields[0]);
  if (with_else)
    fill(op.elseBlock(), otherwise, yields[1]);

  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = s.make(op.getResult(static_cast<unsigned>(i)));
  for (std::size_t i = 0; i < carried.size(); ++i)
    s.frames.back().values[carried[i]] = op.getResult(static_cast<unsigned>(results.size() + i));
  s.constructs.pop_back();
}

// ---- while ----------------------------------------------------------------------------------------------------------

std::uint32_t open_while(const location &w) {
  trace_state &s = trace_state::current(w);
  construct &c = s.open_construct(w);
  s.push(c, region_kind::condition);
  return c.id;
}

void while_condition(std::uint32_t region, handle condition) {
  trace_state &s = trace_state::current({});
  construct &c = s.top(region);
  c.operands = {scalar_condition(s, condition, "tl::while_", c.where)};
  c.done.push_back(s.pop());
  s.push(c, region_kind::body);
}

bool close_while(std::uint32_t region) {
  trace_state &s = trace_state::current({});
  construct &c = s.top(region);
  if (trace_again(s, c, {c.done[0].block, s.frames.back().block})) {
    s.pop();
    c.done.clear();
    s.push(c, region_kind::condition);
    return true;
  }
  frame body = s.pop();
  frame &test = c.done[0];
  const auto carried = assigned(s, {&test, &body});
  settle_promises(s, test, carried);
  settle_promises(s, body, carried);
  SmallVector<Value> initial, forwarded, yielded;
  for (variable_id v : carried) {
    initial.push_back(s.read(s.frames.size() - 1, v));
    forwarded.push_back(value_or(test, v, entry_of(s, test, v)));
    yielded.push_back(value_or(body, v, entry_of(s, body, v)));
  }
  OpBuilder inner(s.b.getContext());
  inner.setInsertionPointToEnd(test.block);
  scf::ConditionOp::create(inner, c.loc, c.operands[0], forwarded);
  inner.setInsertionPointToEnd(body.block);
  scf::YieldOp::create(inner, c.loc, yielded);

  const SmallVector<Type> types(ValueRange(initial).getTypes());
  const SmallVector<Location> locs(types.size(), c.loc);
  auto op = scf::WhileOp::create(s.b, c.loc, types, initial);
  {
    OpBuilder::InsertionGuard guard(s.b);
    move_body(s, test, s.b.createBlock(&op.getBefore(), {}, types, locs), carried, 0);
    move_body(s, body, s.b.createBlock(&op.getAfter(), {}, types, locs), carried, 0);
  }
  for (std::size_t i = 0; i < carried.size(); ++i)
    s.frames.back().values[carried[i]] = op.getResult(static_cast<unsigned>(i));
  s.constructs.pop_back();
  return false;
}

} // namespace tessera::detail
