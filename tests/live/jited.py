# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine code of loaded BPF programs, by bpf(2)."""
import ctypes
import os
import platform

NUMBER = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
NEXT_ID, FD_BY_ID, INFO_BY_FD = 11, 13, 15
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    return libc.syscall(NUMBER, command, attributes, len(attributes))


def word(value):
    return int(value).to_bytes(4, "little")


def programs():
    """Yields (name, machine code) of each program that is loaded."""
    program = 0
    while True:
        attributes = ctypes.create_string_buffer(word(program) + word(0), 64)
        if bpf(NEXT_ID, attributes) < 0:
            return
        program = int.from_bytes(attributes.raw[4:8], "little")
        fd = bpf(FD_BY_ID, ctypes.create_string_buffer(word(program), 64))
        if fd < 0:
            continue  # it is gone
        code = ctypes.create_string_buffer(1 << 18)
        info = ctypes.create_string_buffer(232)
        info[16:20] = word(len(code))  # jited_prog_len; before it type, id and tag
        info[24:32] = ctypes.addressof(code).to_bytes(8, "little")
        attributes = ctypes.create_string_buffer(word(fd) + word(len(info)) + ctypes.addressof(info).to_bytes(8, "little"), 64)
        status = bpf(INFO_BY_FD, attributes)
        os.close(fd)
        if status == 0:
            size = int.from_bytes(info.raw[16:20], "little")
            yield info.raw[64:80].split(b"\0")[0].decode(), code.raw[:min(size, len(code))]
