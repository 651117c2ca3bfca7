#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Probe sites by the rules of ARCHITECTURE section 2.2, written without a look at user/probe/site.c:
decoded by objdump, frames by readelf, nothing shared with vapro. A judge for tests/sites/compare.py.

  independent.py LIB REGEX [--mask all|none|FILE]     FILE: lines "SYMBOL MASK"

Prints per function "name vaddr shift class mnemonic # rule for which it stays at the entry"."""

import argparse
import bisect
import re
import subprocess

WALK = 64
REFUSED_ONE = set()
for part in ("06 07 0e 16 17 1e 1f 27 2f 37 3f 60-62 6c-6f 82 9a cc-cf d4-d6 e4-e7 ea ec-ef f1 f4 fa-fb").split():
    low, _, high = part.partition("-")
    REFUSED_ONE.update(range(int(low, 16), int(high or low, 16) + 1))
REFUSED_TWO = {0, 1, 5, 6, 7, 8, 9, 0xB, 0x30, 0x34, 0x35, 0x37, 0x78, 0x79}

ARGUMENTS = [
    {"rdi", "edi", "di", "dil"},
    {"rsi", "esi", "si", "sil"},
    {"rdx", "edx", "dx", "dl", "dh"},
    {"rcx", "ecx", "cx", "cl", "ch"},
    {"r8", "r8d", "r8w", "r8b"},
    {"r9", "r9d", "r9w", "r9b"},
]
STACK = {"rsp", "esp", "sp", "spl"}
PREFIX_WORDS = {"lock", "rep", "repz", "repnz", "data16", "bnd", "notrack", "cs", "ds", "es", "ss", "fs", "gs",
                "addr32", "xacquire", "xrelease"}
# Mnemonics whose last operand is only read.
READERS = re.compile(r"(cmp|test|push|j|call|ret|nop|endbr|bt[lqw]?$|u?comis|v?u?comis|v?ptest|prefetch|clflush|leave)")
IMPLICIT = [
    (re.compile(r"(mul|div|idiv)[bwlq]?$"), {"rax", "rdx"}),
    (re.compile(r"(cqto|cltd|cwtd|rdtscp?|xgetbv|rdpmc)$"), {"rax", "rdx", "rcx"}),
    (re.compile(r"cpuid$"), {"rax", "rbx", "rcx", "rdx"}),
    (re.compile(r"(movs|cmps)[bwlq]$"), {"rsi", "rdi"}),
    (re.compile(r"(stos|scas|ins)[bwlq]$"), {"rdi"}),
    (re.compile(r"(lods|outs)[bwlq]$"), {"rsi"}),
    (re.compile(r"cmpxchg(8b|16b)$"), {"rax", "rdx"}),
    (re.compile(r"(push|pop|leave|enter|call|ret)"), {"rsp"}),
]


def run(*command):
    # No check: readelf says 1 where it only warned.
    return subprocess.run(command, capture_output=True, text=True).stdout


class Instruction:
    __slots__ = ("address", "code", "text", "mnemonic", "operands", "prefixes")

    def __init__(self, address, code, text):
        text = re.sub(r"\s*(#|<).*", "", text).strip()
        self.address, self.code, self.text = address, code, text
        words = text.split(None, 1)
        self.prefixes = []
        while len(words) == 2 and (words[0] in PREFIX_WORDS or words[0].startswith("rex")):
            self.prefixes.append(words[0])
            words = words[1].split(None, 1)
        self.mnemonic = words[0] if words else "(bad)"
        self.operands = self.split(words[1]) if len(words) == 2 else []

    @staticmethod
    def split(text):
        out, depth = [""], 0
        for c in text:
            depth += (c == "(") - (c == ")")
            if c == "," and not depth:
                out.append("")
            else:
                out[-1] += c
        return [o.strip() for o in out]

    def written(self):
        """Registers written, as objdump spells them and 64-bit names for implicit ones."""
        out = set()
        m = self.mnemonic
        if self.operands and not READERS.match(m):
            last = self.operands[-1]
            if last.startswith("%"):
                out.add(last[1:])
            if m.startswith(("xchg", "xadd")):
                out.update(o[1:] for o in self.operands if o.startswith("%"))
            if m.startswith("mulx"):
                out.add(self.operands[-2].lstrip("%"))
        if m.startswith("imul") and len(self.operands) == 1:
            out.update({"rax", "rdx"})
        for pattern, registers in IMPLICIT:
            if pattern.match(m):
                out |= registers
        if {"rep", "repz", "repnz"} & set(self.prefixes) and re.match(r"(movs|stos|lods|cmps|scas)", m):
            out.add("rcx")
        if m == "pop" and self.operands[-1].startswith("%"):
            out.add(self.operands[-1][1:])
        return out

    def branch_target(self):
        if (self.mnemonic[0] == "j" or self.mnemonic.startswith(("call", "loop", "xbegin"))) and self.operands:
            if re.fullmatch(r"[0-9a-f]+", self.operands[0]):
                return int(self.operands[0], 16)
        return None

    def indirect_jump(self):
        return self.mnemonic in ("jmp", "jmpq", "ljmp") and bool(self.operands) and self.operands[0].startswith("*")

    def transfers(self):
        return self.mnemonic[0] == "j" or bool(
            re.match(r"(call|lcall|ljmp|ret|lret|iret|loop|syscall|sysret|sysenter|sysexit|hlt|int|ud[012]|xbegin|xabort"
                     r"|\(bad\))", self.mnemonic))

    def klass(self):
        """What arch/x86/kernel/uprobes.c does with it."""
        b = self.code
        if b == bytes.fromhex("0f1f440000"):
            return "nop5"
        if b in (b"\x90", b"\x66\x90", bytes.fromhex("0f1f4000")):
            return "emulated"
        if len(b) == 1 and b[0] >> 3 == 10 or len(b) == 2 and b[0] == 0x41 and b[1] >> 3 == 10:
            return "emulated"
        i = 0
        while i < len(b) and b[i] in b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3":
            if b[i] in b"\x26\x2e\x36\x3e\xf0":
                return "refused"
            i += 1
        prefixes = b[:i]
        rex = b[i] if i < len(b) and b[i] >> 4 == 4 else None
        rest = b[i + (rex is not None):]
        if not rest or self.mnemonic == "(bad)":
            return "refused"
        if rest[0] == 0x90 and rex is not None and rex & 1:
            return "refused"  # xchg %r8,%rax, which the kernel skips like a nop
        if rest[0] in (0x62, 0xC4, 0xC5):
            return "refused" if rest[{0xC5: 2, 0xC4: 3, 0x62: 4}[rest[0]]] in REFUSED_ONE else "stepped"
        if (rest[1] in REFUSED_TWO) if rest[0] == 0x0F else (rest[0] in REFUSED_ONE):
            return "refused"
        if rest[0] == 0x8E and rest[1] >> 3 & 7 == 2:
            return "refused"
        if rest[0] in (0xE8, 0xE9, 0xEB) or rest[0] >> 4 == 7 or rest[0] == 0x0F and rest[1] >> 4 == 8:
            if 0x66 in prefixes:
                return "refused"
            if rex is None and prefixes in (b"", b"\xf2"):
                return "emulated"
        return "stepped"


class Library:
    def __init__(self, path):
        self.path = path
        self.read_symbols()
        self.read_frames()
        self.read_code()

    def read_symbols(self):
        self.functions, self.starts = {}, set()
        for line in run("readelf", "-W", "-s", "--dyn-syms", self.path).splitlines():
            f = line.split()
            if len(f) < 8 or not f[0].endswith(":") or not f[0][:-1].isdigit() or f[6] in ("UND", "ABS", "COM"):
                continue
            if f[3] not in ("FUNC", "IFUNC", "NOTYPE"):
                continue
            address = int(f[1], 16)
            self.starts.add(address)
            if f[3] != "NOTYPE":
                name = f[7].split("@")[0]
                self.functions.setdefault((name, address), (int(f[2], 0), f[3] == "IFUNC"))
        self.starts = sorted(self.starts)

    def read_frames(self):
        """self.rows: sorted (address, CFA text); an FDE's end has a row with None."""
        cies, rows, current, initial, end = {}, [], None, None, 0
        text = run("readelf", "-W", "--debug-dump=frames-interp", self.path)
        fde = []

        def close():
            if fde:
                start, stop, cie, own = fde.pop()
                if not own:
                    own = [(start, cies.get(cie))]
                rows.extend(own)
                rows.append((stop, None))

        for line in text.splitlines():
            if m := re.match(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE", line):
                close()
                current = m[1]
            elif m := re.match(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)", line):
                close()
                current = None
                fde.append((int(m[2], 16), int(m[3], 16), m[1], []))
            elif m := re.match(r"([0-9a-f]{8,16}) (\S+)\s", line):
                if current is not None:
                    cies[current] = m[2]
                elif fde:
                    fde[-1][3].append((int(m[1], 16), m[2]))
        close()
        # At one address the end of one FDE comes before the first row of the next.
        rows.sort(key=lambda r: (r[0], r[1] is not None))
        self.row_addresses = [r[0] for r in rows]
        self.row_cfa = [r[1] for r in rows]

    def cfa(self, address):
        """Distance of the CFA from rsp; None where there is none or it is based on something else."""
        i = bisect.bisect_right(self.row_addresses, address) - 1
        m = re.fullmatch(r"rsp\+(\d+)", self.row_cfa[i] or "") if i >= 0 else None
        return int(m[1]) if m else None

    def read_code(self):
        self.code, self.order, self.targets = {}, [], []
        for line in run("objdump", "-d", "-w", self.path).splitlines():
            if m := re.match(r"\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)", line):
                i = Instruction(int(m[1], 16), bytes.fromhex(m[2].replace(" ", "")), m[3])
                self.code[i.address] = i
                self.order.append(i.address)
                if (target := i.branch_target()) is not None:
                    self.targets.append((target, i.address))
        self.order.sort()
        self.targets.sort()

    def body(self, address, size):
        i = bisect.bisect_left(self.order, address)
        out = []
        while i < len(self.order) and self.order[i] < address + size:
            out.append(self.code[self.order[i]])
            i += 1
        return out

    def landing(self, low, high, origin_low, origin_high):
        """Whether a direct branch from [origin_low, origin_high) lands in (low, high]."""
        i = bisect.bisect_right(self.targets, (low, 1 << 64))
        while i < len(self.targets) and self.targets[i][0] <= high:
            if origin_low <= self.targets[i][1] < origin_high:
                return True
            i += 1
        return False

    def site(self, name, address, mask):
        size, ifunc = self.functions[(name, address)]
        if ifunc:
            return 0, "refused", "-", "ifunc"
        entry = self.code.get(address)
        if entry is None:
            return 0, "refused", "-", "no code"
        first = entry.klass()
        if first in ("emulated", "nop5"):
            return 0, first, entry.mnemonic, ""
        body = self.body(address, size)
        # (c), what jump tables could reach: only from where the stack is as at the entry.
        hidden = any(i.indirect_jump() and "(%rip)" not in i.operands[0] and
                     (self.cfa(i.address) is None or self.cfa(i.address) == self.cfa(address)) for i in body)
        broken = not size or size > 1 << 20 or any(i.mnemonic == "(bad)" for i in body) or \
            sum(len(i.code) for i in body) != size
        why = ""
        clobbered = set()
        for n, i in enumerate(body[:WALK]):
            k = i.address - address
            if n and i.klass() == "emulated":
                if hidden or broken:
                    why = why or ("(c) indirect jump" if hidden else "(c) not decodable")
                elif self.landing(address, i.address, address, address + size):
                    why = why or "(c) branch"
                elif (j := bisect.bisect_right(self.starts, address)) < len(self.starts) and self.starts[j] <= i.address:
                    why = why or "(c) symbol"
                elif self.cfa(address) is None or self.cfa(i.address) != self.cfa(address):
                    why = why or "(b) CFA"
                else:
                    return k, "emulated", i.mnemonic, ""
            if i.transfers():
                why = why or "(a) " + i.mnemonic
                break
            clobbered |= i.written()
            if clobbered & STACK:
                why = why or "(b) rsp"
                break
            if any(mask >> a & 1 and clobbered & ARGUMENTS[a] for a in range(6)):
                why = why or "(d)"
                break
        return 0, first, entry.mnemonic, why or "(e)"

    def audit(self, address, shift, size):
        """Direct branches from other functions (a cold part, say) into (entry, k], which the rules do not exclude."""
        return shift and (self.landing(address, address + shift, 0, address) or
                          self.landing(address, address + shift, address + size, 1 << 64))


def sites(path, regex, mask):
    """{(name, vaddr): (shift, class, mnemonic, reason)} and the list of sites entered from elsewhere."""
    library = Library(path)
    pattern = re.compile(regex)
    out, entered = {}, []
    for (name, address), (size, _) in library.functions.items():
        if pattern.fullmatch(name):
            out[name, address] = site = library.site(name, address, mask(name))
            if library.audit(address, site[0], size):
                entered.append(name)
    return out, entered


def mask_of(text):
    if text in ("all", "none"):
        return lambda name: 0x3F if text == "all" else 0
    with open(text) as f:
        table = {n: int(m, 0) for n, m in (line.split() for line in f)}
    return lambda name: table.get(name[1:] if name.startswith("PMPI_") else name, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("regex")
    parser.add_argument("--mask", default="all")
    arguments = parser.parse_args()
    found, entered = sites(arguments.library, arguments.regex, mask_of(arguments.mask))
    for (name, address), (shift, klass, mnemonic, why) in sorted(found.items(), key=lambda x: (x[0][1], x[0][0])):
        print(f"{name} {address:#x} {shift} {klass} {mnemonic} # {why}")
    for name in entered:
        print(f"# entered from elsewhere: {name}")


if __name__ == "__main__":
    main()
