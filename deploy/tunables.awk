# SPDX-License-Identifier: GPL-2.0-or-later
# The tunables of `vaprod --help` as man page paragraphs.
/^Tunables/ { on = 1; next }
on && /^$/ { exit }
on && /^  --/ {
	name = $1
	from = 2
	if ($2 ~ /^[A-Z]+$/ || $2 ~ /[|]/) {
		name = name " " $2
		from = 3
	}
	text = ""
	for (i = from; i <= NF; i++)
		text = text (i > from ? " " : "") $i
	gsub(/-/, "\\-", name)
	print ".TP\n.B " name "\n" text
}
