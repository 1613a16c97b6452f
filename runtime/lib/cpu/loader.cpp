// Links objects with LLVM's JIT linker: one dynamic library a kernel in one session, removed with the kernel.
#include "loader.h"

#include "llvm/DebugInfo/DIContext.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <atomic>
#include <dlfcn.h>
#include <iterator>
#include <utility>

#include <tessera/codegen/cpu_abi.h>
#include <tessera/error.h>

#if defined(__x86_64__)
// Conversions the code generator calls on processors without F16C; only their addresses are used.
extern "C" void __extendhfsf2();
extern "C" void __truncsfhf2();
#endif

namespace tessera::cpu {

namespace orc = llvm::orc;

/// What the session reported on this thread: the linker says there why a lookup failed, the lookup only that it did.
static thread_local std::string reported;

[[noreturn]] static void refuse(llvm::Error why) {
  std::string reason = llvm::toString(std::move(why));
  if (!reported.empty())
    reason += ": " + std::exchange(reported, {});
  throw error(stage::launch, "cannot load the kernel's machine code: " + reason);
}

/// The address of what generated code may refer to: our helpers, the C, math and vector math libraries.
static void *find_symbol(llvm::StringRef name) {
  static const struct {
    const char *name;
    void *address;
  } helpers[] = {
#define TESSERA_HELPER(f) {#f, reinterpret_cast<void *>(&f)}
    TESSERA_HELPER(tessera_cpu_barrier),
    TESSERA_HELPER(tessera_cpu_assert),
    TESSERA_HELPER(tessera_cpu_print),
    TESSERA_HELPER(tessera_cpu_shared_load),
    TESSERA_HELPER(tessera_cpu_shared_store),
    TESSERA_HELPER(tessera_cpu_global_load),
    TESSERA_HELPER(tessera_cpu_global_store),
    TESSERA_HELPER(tessera_cpu_mma),
    TESSERA_HELPER(tessera_cpu_load_matrix),
    TESSERA_HELPER(tessera_cpu_load_transposed),
    TESSERA_HELPER(tessera_cpu_store_matrix),
    TESSERA_HELPER(tessera_cpu_wgmma_start),
    TESSERA_HELPER(tessera_cpu_wgmma_fence),
    TESSERA_HELPER(tessera_cpu_wgmma_commit),
    TESSERA_HELPER(tessera_cpu_wgmma_wait),
    TESSERA_HELPER(tessera_cpu_register_written),
    TESSERA_HELPER(tessera_cpu_register_read),
    TESSERA_HELPER(tessera_cpu_fence_async),
    TESSERA_HELPER(tessera_cpu_copy_start),
    TESSERA_HELPER(tessera_cpu_copy_commit),
    TESSERA_HELPER(tessera_cpu_copy_wait),
#if defined(__x86_64__)
    TESSERA_HELPER(__extendhfsf2),
    TESSERA_HELPER(__truncsfhf2),
#endif
#undef TESSERA_HELPER
  };
  for (auto &helper : helpers)
    if (name == helper.name)
      return helper.address;
  static void *const libraries[] = {dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL),
                                    dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL)};
  for (void *library : libraries)
    if (void *address = library ? dlsym(library, name.str().c_str()) : nullptr)
      return address;
  return nullptr;
}

namespace {
class known_symbols : public orc::DefinitionGenerator {
public:
  llvm::Error tryToGenerate(orc::LookupState &, orc::LookupKind, orc::JITDylib &library, orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet &wanted) override {
    orc::SymbolMap found;
    for (auto &[name, flags] : wanted)
      if (void *address = find_symbol(*name))
        found[name] = {orc::ExecutorAddr::fromPtr(address),
                       llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    return found.empty() ? llvm::Error::success() : library.define(orc::absoluteSymbols(std::move(found)));
  }
};
} // namespace

/// One session for the process, never taken down: kernels may outlive static destructors.
static orc::LLJIT &session() {
  static orc::LLJIT *jit = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto made =
        orc::LLJITBuilder().setPlatformSetUp(orc::setUpInactivePlatform).setLinkProcessSymbolsByDefault(false).create();
    if (!made)
      refuse(made.takeError());
    (*made)->getExecutionSession().setErrorReporter([](llvm::Error e) { reported = llvm::toString(std::move(e)); });
    return made->release();
  }();
  return *jit;
}

struct loaded_object::library {
  orc::JITDylib *dylib;
  ~library() { llvm::consumeError(session().getExecutionSession().removeJITDylib(*dylib)); }
};

loaded_object::loaded_object(std::string_view object, const std::string &symbol) : symbol_(symbol), bytes_(object) {
  llvm::MemoryBufferRef bytes(bytes_, symbol);
  auto file = llvm::object::ObjectFile::createObjectFile(bytes);
  if (!file)
    refuse(file.takeError());
  for (const llvm::object::SymbolRef &ref : (*file)->symbols()) {
    auto name = ref.getName();
    if (!name)
      refuse(name.takeError());
    has_barriers_ |= *name == "tessera_cpu_barrier";
  }

  static std::atomic<unsigned> count = 0;
  orc::LLJIT &jit = session();
  auto dylib = jit.createJITDylib(symbol + "." + std::to_string(count++));
  if (!dylib)
    refuse(dylib.takeError());
  library_ = std::make_unique<library>(&*dylib);
  dylib->addGenerator(std::make_unique<known_symbols>());
  if (auto failed = jit.addObjectFile(*dylib, llvm::MemoryBuffer::getMemBufferCopy(bytes.getBuffer(), symbol)))
    refuse(std::move(failed));
  auto address = jit.lookup(*dylib, symbol + tessera_cpu_entry_suffix);
  if (!address)
    refuse(address.takeError());
  entry_ = address->toPtr<entry_point>();
}

loaded_object::~loaded_object() = default;

source_position loaded_object::position(std::uint64_t instruction) const {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes_, symbol_));
  if (!file) {
    llvm::consumeError(file.takeError());
    return {};
  }
  for (const llvm::object::SymbolRef &ref : (*file)->symbols()) {
    auto name = ref.getName();
    auto offset = ref.getAddress();
    auto section = ref.getSection();
    bool known = name && offset && section;
    bool ours = known && *name == symbol_ + tessera_cpu_entry_suffix && *section != (*file)->section_end();
    llvm::consumeError(name.takeError());
    llvm::consumeError(offset.takeError());
    llvm::consumeError(section.takeError());
    if (!ours)
      continue;
    // The section lies in memory as it does in the file.
    std::uint64_t at = instruction - reinterpret_cast<std::uint64_t>(entry_) + *offset;
    if (at >= (*section)->getSize())
      return {};
    auto lines = llvm::DWARFContext::create(**file);
    auto found = lines->getLineInfoForAddress({at, (*section)->getIndex()});
    if (!found || !*found || found->FileName == llvm::DILineInfo::BadString)
      return {};
    return {found->FileName, found->Line, found->Column};
  }
  return {};
}

} // namespace tessera::cpu
