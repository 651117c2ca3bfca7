// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/translator.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "base/base_name.h"

/* A file name, whole or as a glob; files of a translator that is a whole system map no library of this one. */
static const struct {
	const char *glob, *name;
} files[] = {
    {"valgrind", "Valgrind"},
    {"valgrind.bin", "Valgrind"},
    {"vgpreload_*", "Valgrind"},
    {"*-amd64-linux", "Valgrind"},
    {"*-x86-linux", "Valgrind"},
    {"*-arm64-linux", "Valgrind"},
    {"*-ppc64*-linux", "Valgrind"},
    {"*-s390x-linux", "Valgrind"},
    {"qemu-x86_64*", "qemu-user"},
    {"qemu-i386*", "qemu-user"},
    {"qemu-aarch64*", "qemu-user"},
    {"qemu-arm*", "qemu-user"},
    {"qemu-ppc64*", "qemu-user"},
    {"qemu-riscv64*", "qemu-user"},
    {"qemu-s390x*", "qemu-user"},
    {"qemu-user*", "qemu-user"},
    {"drrun", "DynamoRIO"},
    {"libdynamorio.so*", "DynamoRIO"},
    {"pinbin", "Pin"},
    {"libpinplay*.so", "Pin"},
    {"librrpreload*.so", "rr"},
    {"FEXInterpreter", "FEX"},
    {"FEXLoader", "FEX"},
    {"box64", "box64"},
    {"box86", "box86"},
    {"gem5*.opt", "gem5"},
    {"gem5*.fast", "gem5"},
};

const char *translator__of_path(const char *path)
{
	const char *base = base_name(path), *deleted = strstr(base, " (deleted)");
	char name[64];
	size_t length = deleted ? (size_t)(deleted - base) : strlen(base);

	if (length >= sizeof(name))
		return NULL;
	memcpy(name, base, length);
	name[length] = '\0';
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!fnmatch(files[i].glob, name, 0))
			return files[i].name;
	return NULL;
}
