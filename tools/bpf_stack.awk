# SPDX-License-Identifier: GPL-2.0-or-later
# Refuses a BPF object that takes more stack than every kernel allows: 512 bytes for a program with all
# that it calls, each in units of 32. Kernels whose JIT gives programs their own stack allow more,
# so that such an object may load on a developer's machine.
#
#   llvm-objdump -dr --no-show-raw-insn OBJECT | awk -f bpf_stack.awk
function used(number) {
	if (number + 0 > own[name])
		own[name] = number + 0
}

# Of the deepest chain of calls; sets the trail of it.
function depth(of, i, parts, below, deepest, count, trail) {
	count = split(calls[of], parts, " ")
	for (i = 1; i <= count; i++) {
		below = depth(parts[i])
		if (below > deepest) {
			deepest = below
			trail = " -> " chain[parts[i]]
		}
	}
	chain[of] = of " (" own[of] ")" trail
	return deepest + (own[of] ? int((own[of] + 31) / 32) * 32 : 32)
}

/^[0-9a-f]+ <.*>:/ {
	gsub(/[<>:]/, "", $2)
	if ($2 !~ /^LBB/) {
		name = $2
		own[name] += 0
	}
}
match($0, /\(r10 - [0-9]+\)/) { used(substr($0, RSTART + 7, RLENGTH - 8)) }
/ r[0-9] = r10$/ { frame = $2 }
frame != "" && $2 == frame && $3 == "+=" { used(-$4); frame = "" }
/R_BPF_64_32/ { calls[name] = calls[name] " " $3 }

END {
	for (of in own) {
		found++
		if (depth(of) > 512) {
			print "  " depth(of) " bytes of stack, more than 512: " chain[of] > "/dev/stderr"
			bad = 1
		}
	}
	exit bad || !found
}
