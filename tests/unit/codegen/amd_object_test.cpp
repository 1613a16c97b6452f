// Code objects of AMD GPUs: LLVM's own readers must agree with what the launcher is told.
#include <doctest/doctest.h>

#include "llvm/BinaryFormat/AMDGPUMetadataVerifier.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"

#include <string>
#include <thread>

#include "kernel_text.h"

#include <tessera/codegen/compile.h>
#include <tessera/error.h>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

using namespace tessera;
using namespace tessera::test;
namespace msgpack = llvm::msgpack;

namespace {

const char *const archs[] = {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"};

// Every size of argument, in an order that needs padding; masked accesses; the grid's size.
const char *const arguments = R"(
tt.func public @arguments(%a: i8, %x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %flag: i1, %h: f16, %n: i32, %by: f64, %s: i16, %wide: i64) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %p = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %p, %in : tensor<1024x!tt.ptr<f32>>
  %f = arith.truncf %by : f64 to f32
  %e = arith.extf %h : f16 to f32
  %g = arith.addf %f, %e : f32
  %i8 = arith.extsi %a : i8 to i64
  %i16 = arith.extsi %s : i16 to i64
  %t = arith.addi %i8, %i16 : i64
  %u = arith.addi %t, %wide : i64
  %w = arith.sitofp %u : i64 to f32
  %k = arith.addf %g, %w : f32
  %z = arith.constant 0.0 : f32
  %c = arith.select %flag, %k, %z : f32
  %y = tt.get_num_programs y : i32
  %yf = arith.sitofp %y : i32 to f32
  %d = arith.addf %c, %yf : f32
  %ks = tt.splat %d : f32 -> tensor<1024xf32>
  %r = arith.mulf %v, %ks : tensor<1024xf32>
  tt.store %p, %r, %in : tensor<1024x!tt.ptr<f32>>
  tt.return
})";

// Shared memory for a sum over warps.
const std::string sum = R"(
tt.func public @sum(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {)" +
                        pointers("from", "%x", "f32", 4096) + R"(
  %v = tt.load %fromp : tensor<4096x!tt.ptr<f32>>)" +
                        reduction("%s", "%v", 0, "arith.addf", "f32", "tensor<4096xf32>", "f32") + R"(
  tt.store %y, %s : !tt.ptr<f32>
  tt.return
})";

// Registers of long functions, a call of one, no shared memory.
const std::string functions = R"(
tt.func public @functions(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {)" +
                              pointers("x", "%x", "f32", 512) + R"(
  %v = tt.load %xp : tensor<512x!tt.ptr<f32>>
  %a = math.sin %v : tensor<512xf32>
  %b = math.erf %a : tensor<512xf32>
  %c = math.log %b : tensor<512xf32>
  tt.store %xp, %c : tensor<512x!tt.ptr<f32>>
  tt.return
})";

// A product through shared memory.
const std::string product = R"(
tt.func public @product(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {)" +
                            pointers("x", "%x", "f16", 64, 64, false) + pointers("y", "%y", "f32", 64, 64, false) + R"(
  %a = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tt.dot %a, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.store %yp, %d : tensor<64x64x!tt.ptr<f32>>
  tt.return
})";

compiled_kernel build(const std::string &text, const std::string &arch, compile_options options = {}) {
  ir_module module = parse_ir(text, "kernel.ttir");
  return compile(module, parse_target("hip:" + arch), options);
}

template <class T> T get(llvm::Expected<T> value) {
  if (!value)
    throw std::runtime_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

/// The metadata note, as LLVM's reader and verifier take it.
void readNote(const llvm::object::ELF64LEFile &file, msgpack::Document &document) {
  bool found = false;
  for (const auto &header : get(file.program_headers())) {
    if (header.p_type != llvm::ELF::PT_NOTE)
      continue;
    llvm::Error broken = llvm::Error::success();
    for (const auto &note : file.notes(header, broken))
      if (note.getName() == "AMDGPU" && note.getType() == llvm::ELF::NT_AMDGPU_METADATA)
        found |= document.readFromBlob(note.getDescAsStringRef(4), false);
    REQUIRE(!broken);
  }
  REQUIRE(found);
  CHECK(llvm::AMDGPU::HSAMD::V3::MetadataVerifier(/*Strict=*/true).verify(document.getRoot()));
}

/// Bytes of the kernel that are no instruction; the number of instructions in `count`.
unsigned undecoded(const llvm::object::ELF64LEFile &file, const std::string &arch, const std::string &name,
                   unsigned &count) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUDisassembler();
  llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  REQUIRE(target);
  std::unique_ptr<llvm::MCRegisterInfo> registers(target->createMCRegInfo(triple));
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCAsmInfo> assembly(target->createMCAsmInfo(*registers, triple, options));
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple, arch, arch.size() == 7 ? "+wavefrontsize32" : ""));
  llvm::MCContext context(triple, assembly.get(), registers.get(), subtarget.get());
  std::unique_ptr<llvm::MCDisassembler> decoder(target->createMCDisassembler(*subtarget, context));
  REQUIRE(decoder);
  unsigned bad = 0;
  bool seen = false;
  auto sections = get(file.sections());
  for (const auto &section : sections) {
    if (section.sh_type != llvm::ELF::SHT_SYMTAB && section.sh_type != llvm::ELF::SHT_DYNSYM)
      continue;
    llvm::StringRef names = get(file.getStringTableForSymtab(section));
    for (const auto &symbol : get(file.symbols(&section))) {
      if (seen || symbol.getType() != llvm::ELF::STT_FUNC || get(symbol.getName(names)) != name)
        continue;
      seen = true;
      const auto &text = *get(file.getSection(symbol.st_shndx));
      auto bytes = get(file.getSectionContents(text)).slice(symbol.st_value - text.sh_addr, symbol.st_size);
      for (uint64_t at = 0, size; at < bytes.size(); at += std::max<uint64_t>(size, 4)) {
        llvm::MCInst instruction;
        bad += decoder->getInstruction(instruction, size, bytes.slice(at), at, llvm::nulls()) !=
               llvm::MCDisassembler::Success;
        ++count;
      }
    }
  }
  REQUIRE(seen);
  return bad;
}

void check(const compiled_kernel &kernel, const std::string &arch) {
  CAPTURE(arch);
  CAPTURE(kernel.metadata.name);
  const std::string &bytes = *kernel.find("hsaco");
  auto file = get(llvm::object::ELF64LEFile::create(bytes));
  CHECK(file.getHeader().e_type == llvm::ELF::ET_DYN);
  CHECK(file.getHeader().e_machine == llvm::ELF::EM_AMDGPU);

  msgpack::Document document;
  readNote(file, document);
  auto &root = document.getRoot().getMap();
  CHECK(root["amdhsa.target"].getString() == "amdgcn-amd-amdhsa--" + arch);
  auto &kernels = root["amdhsa.kernels"].getArray();
  REQUIRE(kernels.size() == 1);
  auto &facts = kernels[0].getMap();
  auto number = [&](const char *key) { return facts[key].getUInt(); };
  CHECK(facts[".name"].getString() == kernel.metadata.name);
  CHECK(facts[".symbol"].getString() == kernel.metadata.name + ".kd");
  CHECK(number(".wavefront_size") == unsigned(kernel.metadata.warp_size));
  CHECK(number(".group_segment_fixed_size") == kernel.metadata.shared_bytes);
  unsigned threads = kernel.metadata.num_warps * kernel.metadata.warp_size;
  CHECK(number(".max_flat_workgroup_size") == threads);
  auto &group = facts[".reqd_workgroup_size"].getArray();
  CHECK(group[0].getUInt() == threads);
  CHECK(group[1].getUInt() == 1);
  CHECK(number(".vgpr_count") == unsigned(kernel.registers));
  CHECK(number(".private_segment_fixed_size") == unsigned(kernel.spills));

  // The launcher puts each argument at the next multiple of its size; there are no hidden ones.
  uint64_t offset = 0;
  const auto &params = kernel.metadata.params;
  auto &args = facts[".args"].getArray();
  REQUIRE(args.size() == params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    CAPTURE(i);
    auto &arg = args[i].getMap();
    offset = (offset + params[i].size - 1) / params[i].size * params[i].size;
    CHECK(arg[".offset"].getUInt() == offset);
    CHECK(arg[".size"].getUInt() == params[i].size);
    CHECK(arg[".value_kind"].getString() == (params[i].pointer ? "global_buffer" : "by_value"));
    offset += params[i].size;
  }
  CHECK(number(".kernarg_segment_size") == (offset + 3) / 4 * 4);

  unsigned instructions = 0;
  CHECK(undecoded(file, arch, kernel.metadata.name, instructions) == 0);
  CHECK(instructions > 10);
}

} // namespace

TEST_SUITE_BEGIN("gpu"); // as on any host: run once

TEST_CASE("code objects of AMD GPUs disassemble, and their notes say what the launcher does") {
  for (const char *arch : archs) {
    for (const std::string &text : {std::string(arguments), sum, functions, product})
      check(build(text, arch), arch);
    for (int warps : {1, 8})
      check(build(sum, arch, {.num_warps = warps}), arch);
  }
}

TEST_CASE("any number of arguments can be passed") {
  for (int count : {1, 7, 13, 14, 15, 16, 60}) {
    std::string parameters, stores;
    for (int i = 0; i < count; ++i) {
      parameters += (i ? ", %p" : "%p") + std::to_string(i) + ": !tt.ptr<i32>";
      stores += "  tt.store %p" + std::to_string(i) + ", %n : !tt.ptr<i32>\n";
    }
    const std::string text = "tt.func public @many(" + parameters + ") {\n  %n = tt.get_num_programs x : i32\n" +
                             stores + "  tt.return\n}\n";
    for (const char *arch : archs) {
      CAPTURE(count);
      CAPTURE(arch);
      check(build(text.c_str(), arch), arch);
    }
  }
}

TEST_CASE("a limit of registers is kept") {
  for (const char *arch : archs) {
    compiled_kernel kernel = build(functions, arch, {.maxnreg = 32});
    check(kernel, arch);
    CHECK(kernel.registers <= 32);
  }
}

TEST_CASE("lines of the source reach the code object") {
  for (bool wanted : {true, false}) {
    compiled_kernel kernel = build(sum, "gfx942", {.line_info = wanted});
    const std::string &bytes = *kernel.find("hsaco");
    auto file = get(llvm::object::ELF64LEFile::create(bytes));
    auto names = get(file.getSectionStringTable(get(file.sections())));
    CHECK(names.contains(".debug_line") == wanted);
    CHECK((kernel.find("amdgcn")->find("kernel.ttir") != std::string::npos) == wanted);
  }
}

TEST_CASE("code objects are made by several threads at once") {
  std::string expected = *build(sum, "gfx942").find("hsaco");
  std::string ptx;
  auto forCuda = [] {
    ir_module module = parse_ir(product, "kernel.ttir");
    return *compile(module, parse_target("cuda:sm_80"), {}, "ptx").find("ptx");
  };
  ptx = forCuda(); // lld must not change what LLVM's other targets do
  std::vector<std::string> results(4), others(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      results[i] = *build(sum, "gfx942").find("hsaco");
      others[i] = forCuda();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int i = 0; i < 4; ++i) {
    CHECK(results[i] == expected);
    CHECK(others[i] == ptx);
  }
}

TEST_CASE("assembly that the assembler refuses is an error with its text") {
  const char *text = R"(
tt.func public @bad(%x: !tt.ptr<i32>) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %v = tt.elementwise_inline_asm "v_no_such_thing $0, $1" {constraints = "=v,v", packed_element = 1 : i32, pure = true} %i : tensor<256xi32> -> tensor<256xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  tt.store %p, %v : tensor<256x!tt.ptr<i32>>
  tt.return
})";
  std::string message;
  try {
    build(text, "gfx942");
  } catch (const error &e) {
    message = e.message();
  }
  CHECK(message.find("v_no_such_thing") != std::string::npos);
}

TEST_SUITE_END();
