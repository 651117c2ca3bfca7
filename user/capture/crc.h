/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRC-32 as in zlib, for records of some fifty bytes: zlib processes less than 47 bytes one by one, which
 * took a quarter of an analysis. Slicing by 16 and by 8 (Kounavis and Berry, "A Systematic Approach to Building
 * High Performance Software-based CRC Generators", ISCC 2005); on x86 all whole blocks are first made one.
 */
#ifndef VAPRO_CRC_H
#define VAPRO_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc__of(const uint8_t *data, size_t size);

#endif
