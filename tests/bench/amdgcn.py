"""What an AMDGCN text says of itself: matrix instructions, widths of memory accesses, registers, LDS, scratch, occupancy.

Works on any compiler's text for gfx9 with matrix cores and gfx11/gfx12, as LLVM prints it. Needs Python only.
"""
import re
from collections import Counter
from dataclasses import dataclass, field

CLASSES = ("load", "store", "lds_read", "lds_write")

# Bytes a lane moves, by the end of the mnemonic: gfx9 names, then those of gfx11 and later.
BYTES = {"dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "short": 2, "ushort": 2, "sshort": 2, "byte": 1, "ubyte": 1,
         "sbyte": 1, "b128": 16, "b96": 12, "b64": 8, "b32": 4, "b16": 2, "u16": 2, "i16": 2, "b8": 1, "u8": 1, "i8": 1}


def access(mnemonic):
    """(class, bytes of a lane) of a memory instruction, or None. `ds_read2`, `ds_load_2addr`: two places, one instruction."""
    m = re.match(r"(buffer|global|flat|ds|scratch)_(load|store|read|write)(.*)", mnemonic)
    if not m:
        return None
    space, verb, rest = m.groups()
    width = [w for w in rest.split("_") if w in BYTES]
    if not width or space == "scratch":
        return None
    reads = verb in ("load", "read")
    kind = ("lds_read" if reads else "lds_write") if space == "ds" else ("load" if reads else "store")
    if "lds" in rest.split("_"):
        kind = "load"  # global to LDS
    twice = space == "ds" and (rest.startswith("2") or "_2addr" in rest)
    return kind, BYTES[width[0]] * (2 if twice else 1)


def multiplies(mnemonic):
    """Multiply-adds of a matrix instruction, or 0: m x n x k of its name, times its blocks."""
    if not re.match(r"v_s?w?mfmac?_|v_s?wmmac?_", mnemonic):
        return 0
    m, n, k = map(int, re.search(r"_(\d+)x(\d+)x(\d+)", mnemonic).groups())
    blocks = re.search(r"_(\d+)b_", mnemonic)
    return m * n * k * (int(blocks.group(1)) if blocks else 1)


# Per SIMD: registers of a lane, what they are handed out in, waves. Per compute unit (gfx1x: work-group processor of two):
# LDS bytes and what they are handed out in, SIMDs. CDNA3 ISA, "Kernel resource" and occupancy tables of the vendor's guide;
# RDNA3/4 ISA, "VGPR allocation"; LLVM's AMDGPUBaseInfo agrees.
@dataclass
class Machine:
    registers: int
    register_granule: int
    waves: int
    lds: int
    lds_granule: int
    simds: int


MACHINES = {
    "gfx90a": Machine(512, 8, 8, 64 << 10, 512, 4),
    "gfx942": Machine(512, 8, 8, 64 << 10, 512, 4),
    "gfx950": Machine(512, 8, 8, 160 << 10, 1280, 4),
    "gfx1100": Machine(1536, 24, 16, 128 << 10, 1024, 4),
    "gfx1201": Machine(1536, 24, 16, 128 << 10, 1024, 4),
}


def occupancy(arch, registers, lds, warps):
    """Waves of a SIMD at the same time, as registers and LDS allow; a program's waves come and go together."""
    m = MACHINES[arch]
    up = lambda value, granule: -(-value // granule) * granule
    by_registers = min(m.waves, m.registers // up(max(registers, 1), m.register_granule))
    groups = min(by_registers * m.simds // warps, m.lds // up(lds, m.lds_granule) if lds else 1 << 30)
    return groups * warps / m.simds


@dataclass
class Kernel:
    arch: str = ""
    name: str = ""
    wave: int = 0
    warps: int = 0
    registers: int = 0  # VGPR and AGPR of a lane
    agprs: int = 0
    sgprs: int = 0
    lds: int = 0
    scratch: int = 0
    spills: int = 0
    looped: bool = False
    matrix: Counter = field(default_factory=Counter)       # in the loop that multiplies, or in all of it
    accesses: dict = field(default_factory=dict)           # class -> Counter of bytes; as above
    all_matrix: Counter = field(default_factory=Counter)   # in the whole kernel
    all_accesses: dict = field(default_factory=dict)
    lane_moves: int = 0                                    # ds_bpermute and the like
    instructions: int = 0
    all_instructions: int = 0

    def facts(self):
        """What JSON can hold; of_facts() makes it a Kernel again."""
        return dict(vars(self))

    @staticmethod
    def of_facts(facts):
        k = Kernel(**facts)
        k.matrix, k.all_matrix = Counter(k.matrix), Counter(k.all_matrix)
        for table in (k.accesses, k.all_accesses):
            for kind in CLASSES:
                table[kind] = Counter({int(b): n for b, n in table[kind].items()})
        return k

    @property
    def occupancy(self):
        return occupancy(self.arch, self.registers, self.lds, self.warps)

    def width(self, *kinds, whole=False):
        """Mean bytes of a lane's access, 0 where there is none."""
        counts = sum(((self.all_accesses if whole else self.accesses)[kind] for kind in kinds), Counter())
        return sum(b * n for b, n in counts.items()) / counts.total() if counts else 0.0

    def widths(self, kind, whole=False):
        counts = (self.all_accesses if whole else self.accesses)[kind]
        return " ".join(f"{n}x{b}" for b, n in sorted(counts.items(), reverse=True)) or "-"


def count(lines):
    matrix, accesses, moves = Counter(), {kind: Counter() for kind in CLASSES}, 0
    for line in lines:
        if multiplies(line):
            matrix[re.sub(r"_e\d+$", "", line)] += 1
        elif found := access(line):
            accesses[found[0]][found[1]] += 1
        elif re.match(r"ds_(b?permute|swizzle)", line):
            moves += 1
    return matrix, accesses, moves


def blocks(body):
    """Basic blocks: [(instructions, successors)], from (label, None) and (None, instruction)."""
    parts, names = [[]], {}
    for label, text in body:
        if label:
            if parts[-1]:
                parts.append([])
            names[label] = len(parts) - 1
        else:
            parts[-1].append(text)
            if re.match(r"s_(c?branch|endpgm|setpc)", text):
                parts.append([])
    edges = []
    for i, part in enumerate(parts):
        last = part[-1].split() if part else [""]
        to = [names[last[1]]] if re.match(r"s_c?branch", last[0]) and last[1] in names else []
        if not re.match(r"s_(branch|endpgm|setpc)", last[0]) and i + 1 < len(parts):
            to.append(i + 1)
        edges.append(to)
    return parts, edges


def components(nodes, edges):
    """Strongly connected sets of `nodes` that hold a cycle (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in edges[v]:
            if w in nodes and w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in nodes and w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = set(stack[stack.index(v):])
            del stack[stack.index(v):]
            if len(part) > 1 or v in edges[v]:
                found.append(part)

    for v in sorted(nodes):
        if v not in index:
            visit(v)
    return found


def loops(edges, nodes=None):
    """Blocks of every loop in which there is no other."""
    innermost = []
    for part in components(set(range(len(edges))) if nodes is None else nodes, edges):
        entries = {w for v, to in enumerate(edges) if v not in part for w in to if w in part} or {min(part)}
        without = [[w for w in to if w not in entries] for to in edges]  # a trip ends where it would enter again
        innermost += loops(without, part) or [part]
    return innermost


def parse(text):
    k = Kernel()
    k.arch = re.search(r'\.amdgcn_target\s+"amdgcn-amd-amdhsa-\S*?(gfx\w+)', text).group(1)
    k.name = re.search(r"\.amdhsa_kernel\s+(\S+)", text).group(1)

    def meta(key, default=None):
        found = re.search(rf"^\s+(?:- )?\.{key}:\s+(\d+)", text, re.M)
        if not found and default is None:
            raise ValueError(f"{k.name}: no .{key} in the metadata")
        return int(found.group(1)) if found else default

    k.wave = meta("wavefront_size")
    k.warps = meta("max_flat_workgroup_size") // k.wave
    k.registers, k.agprs, k.sgprs = meta("vgpr_count"), meta("agpr_count", 0), meta("sgpr_count")
    at_launch = re.search(r"^; launched with LDS bytes: (\d+)", text, re.M)
    k.lds = int(at_launch.group(1)) if at_launch else meta("group_segment_fixed_size")
    k.scratch = meta("private_segment_fixed_size")
    k.spills = meta("vgpr_spill_count", 0) + meta("sgpr_spill_count", 0)

    code = text[re.search(rf"^{re.escape(k.name)}:", text, re.M).end():]
    code = code[:re.search(r"^\.Lfunc_end\d+:", code, re.M).start()]
    body = []  # (label, None) or (None, instruction)
    for line in code.splitlines():
        line = re.sub(r";.*|//.*", "", line).strip()
        label = re.match(r"([.\w$]+):", line)
        if label:
            body.append((label.group(1), None))
        elif re.match(r"[a-z]+_", line):
            body.append((None, line))
    mnemonics = [text.split()[0] for _, text in body if text]
    k.all_matrix, k.all_accesses, k.lane_moves = count(mnemonics)
    k.all_instructions = len(mnemonics)
    best = None
    parts, edges = blocks(body)
    for loop in loops(edges):
        inside = [text.split()[0] for block in loop for text in parts[block]]
        matrix, accesses, _ = count(inside)
        score = matrix.total(), sum(c.total() for c in accesses.values()), len(inside)
        if (score[0] or score[1]) and (best is None or score > best[0]):
            best = score, matrix, accesses
    k.looped = best is not None
    k.matrix, k.accesses = best[1:] if best else (k.all_matrix, k.all_accesses)
    k.instructions = best[0][2] if best else k.all_instructions
    return k
