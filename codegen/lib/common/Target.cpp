// Targets by name, and the facts about them that need no LLVM.
#include "../cpu/HostCpu.h"
#include "Vendors.h"

#include <algorithm>
#include <fmt/format.h>

#include <tessera/codegen/target.h>
#include <tessera/error.h>

namespace tessera {

namespace codegen {

const Vendor *vendorOf(target_kind kind) {
  for (const Vendor *vendor : vendors())
    if (vendor->kind == kind)
      return vendor;
  return nullptr;
}

const Vendor *vendorOf(std::string_view arch, const ArchFacts **facts) {
  for (const Vendor *vendor : vendors())
    for (const ArchFacts &known : vendor->archs)
      if (known.name == arch) {
        if (facts)
          *facts = &known;
        return vendor;
      }
  return nullptr;
}

std::string modelOf(const target &t) {
  const ArchFacts *facts = nullptr;
  return vendorOf(t.arch, &facts) ? std::string(facts->model) : t.str();
}

} // namespace codegen

using codegen::ArchFacts;
using codegen::Vendor;
using codegen::vendorOf;

static const ArchFacts *find(std::string_view arch) {
  const ArchFacts *facts = nullptr;
  vendorOf(arch, &facts);
  return facts;
}

unsigned target::warp_size() const {
  if (const ArchFacts *facts = find(arch))
    return facts->warpSize;
  return kind == target_kind::cpu ? codegen::hostCpu().lanes() : 32;
}

unsigned target::max_shared_bytes() const {
  constexpr unsigned KiB = 1024;
  if (const ArchFacts *facts = find(arch))
    return facts->sharedBytes;
  return kind == target_kind::cpu ? 1024 * KiB : 48 * KiB;
}

int target::default_num_stages() const {
  const Vendor *vendor = arch.empty() ? vendorOf(kind) : vendorOf(arch);
  return vendor ? vendor->numStages : 1; // the CPU: no copies run by themselves
}

std::string target::str() const {
  const Vendor *vendor = vendorOf(kind);
  std::string head(vendor ? vendor->prefix : "cpu");
  return arch.empty() ? head : head + (vendor ? ":" : ":emulate=") + arch;
}

target parse_target(std::string_view text) {
  auto refuse = [&](std::string_view why) -> target {
    std::string forms = "cpu, cpu:emulate=ARCH", known;
    for (const Vendor *vendor : codegen::vendors()) {
      bool last = vendor == codegen::vendors().back();
      forms += fmt::format("{}{}[:ARCH]", last ? " and " : ", ", vendor->prefix);
      known += fmt::format("{}{}: ", known.empty() ? "" : "; ", known.empty() ? fmt::format("{} architectures", vendor->name)
                                                                              : std::string(vendor->name));
      for (const ArchFacts &arch : vendor->archs)
        known += fmt::format("{}{}", &arch == &vendor->archs.front() ? "" : ", ", arch.name);
    }
    throw error(stage::launch, fmt::format("target '{}' {}. Targets are {}; {}", text, why, forms, known));
  };
  std::string_view head = text.substr(0, text.find(':')), tail;
  bool hasTail = head.size() < text.size();
  if (hasTail)
    tail = text.substr(head.size() + 1);
  if (head == "cpu") {
    constexpr std::string_view emulate = "emulate=";
    if (!hasTail)
      return {target_kind::cpu, {}};
    if (!tail.starts_with(emulate))
      return refuse("is not known");
    tail.remove_prefix(emulate.size());
    if (!find(tail))
      return refuse("names an unknown architecture");
    return {target_kind::cpu, std::string(tail)};
  }
  for (const Vendor *vendor : codegen::vendors()) {
    if (head != vendor->prefix)
      continue;
    if (hasTail && vendorOf(tail) != vendor)
      return refuse("names an unknown architecture");
    return {vendor->kind, std::string(tail)};
  }
  return refuse("is not known");
}

} // namespace tessera
