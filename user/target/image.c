// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ELF images through libelf and libdw. Every file comes from a user and may be damaged on purpose:
 * files are read whole into memory (a file that is truncated while mapped raises SIGBUS), only regular
 * files are opened, and each range is clamped to the bytes that were read.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/user_file.h"
#include "target/image_private.h"

#define IMAGE_BYTES_MAX (512ULL << 20)
#define LINKED_NAME_MAX 4096 /* longer names of libraries are skipped */

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#define DWARF_SP 7
#define DWARF_FRAME 6
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#define DWARF_SP 31
#define DWARF_FRAME 29
#else
#error "no machine of this kind is supported"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOST_DATA ELFDATA2LSB
#else
#define HOST_DATA ELFDATA2MSB
#endif

static int read_file(struct image *image, const char *path, char *err, size_t err_size)
{
	int fd = user_file__open(path);
	struct stat st;
	size_t done = 0;
	int ret = 0;

	if (fd < 0) {
		ret = -errno;
		snprintf(err, err_size, "cannot open: %s", strerror(-ret));
		return ret;
	}
	if (fstat(fd, &st)) {
		ret = -errno;
		snprintf(err, err_size, "cannot stat: %s", strerror(-ret));
		goto cleanup;
	}
	if (!S_ISREG(st.st_mode)) {
		ret = -EINVAL;
		snprintf(err, err_size, "not a regular file");
		goto cleanup;
	}
	if (st.st_size < (off_t)sizeof(Elf64_Ehdr) || (uint64_t)st.st_size > IMAGE_BYTES_MAX) {
		ret = -EFBIG;
		snprintf(err, err_size, "a size of %lld bytes is out of range", (long long)st.st_size);
		goto cleanup;
	}
	image->data = malloc((size_t)st.st_size);
	if (!image->data) {
		ret = -ENOMEM;
		snprintf(err, err_size, "out of memory for %lld bytes", (long long)st.st_size);
		goto cleanup;
	}
	while (done < (size_t)st.st_size) {
		ssize_t got = pread(fd, image->data + done, (size_t)st.st_size - done, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			ret = -errno;
			snprintf(err, err_size, "cannot read: %s", strerror(-ret));
			goto cleanup;
		}
		if (got == 0)
			break; /* truncated meanwhile: the rest must do */
		done += (size_t)got;
	}
	image->size = done;
cleanup:
	close(fd);
	return ret;
}

static int check_header(struct image *image, char *err, size_t err_size)
{
	GElf_Ehdr header;

	if (elf_version(EV_CURRENT) == EV_NONE || image->size < sizeof(Elf64_Ehdr)) {
		snprintf(err, err_size, "too short for ELF");
		return -EINVAL;
	}
	image->elf = elf_memory(image->data, image->size);
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF || !gelf_getehdr(image->elf, &header)) {
		snprintf(err, err_size, "not an ELF file");
		return -EINVAL;
	}
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != HOST_DATA ||
	    header.e_machine != HOST_MACHINE) {
		snprintf(err, err_size, "built for another machine (ELF machine %u)", header.e_machine);
		return -EINVAL;
	}
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
		snprintf(err, err_size, "neither an executable nor a shared library (ELF type %u)", header.e_type);
		return -EINVAL;
	}
	image->is_executable = header.e_type == ET_EXEC;
	return 0;
}

/* The entries of .dynamic; NULL where there are none. */
static Elf_Data *dynamic_entries(struct image *image, const GElf_Phdr *phdr)
{
	return elf_getdata_rawchunk(image->elf, (int64_t)phdr->p_offset, phdr->p_filesz, ELF_T_DYN);
}

/* ld.so and libc may have an interpreter or not; a name for the linker makes a library. */
static void read_dynamic(struct image *image, const GElf_Phdr *phdr, bool *soname, bool *pie)
{
	Elf_Data *data = dynamic_entries(image, phdr);
	GElf_Dyn dyn;

	for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
		if (dyn.d_tag == DT_SONAME)
			*soname = true;
		else if (dyn.d_tag == DT_FLAGS_1 && (dyn.d_un.d_val & DF_1_PIE))
			*pie = true;
	}
}

/* Finds the texts that .dynamic refers to; false where the file has none. */
static bool find_linked_texts(struct image *image, Elf_Data *data, const char **texts, size_t *size)
{
	GElf_Dyn dyn;

	for (int i = 0; gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++)
		if (dyn.d_tag == DT_STRTAB) {
			*texts = (const char *)image__bytes(image, dyn.d_un.d_ptr, size);
			return *texts;
		}
	return false;
}

/* Whether a text that ends soon enough begins there. */
static bool is_text(const char *texts, size_t size, uint64_t at)
{
	size_t most = at < size && size - at < LINKED_NAME_MAX ? size - at : LINKED_NAME_MAX;

	return at < size && strnlen(texts + at, most) < most;
}

int image__linked_names(struct image *image, int64_t tag, int (*visit)(const char *name, void *ctx), void *ctx)
{
	Elf_Data *data = NULL;
	const char *texts;
	size_t size, count;
	GElf_Phdr phdr;
	GElf_Dyn dyn;
	int status = 0;

	if (!image->elf || elf_getphdrnum(image->elf, &count))
		return 0;
	for (size_t i = 0; i < count && !data && gelf_getphdr(image->elf, (int)i, &phdr); i++)
		if (phdr.p_type == PT_DYNAMIC)
			data = dynamic_entries(image, &phdr);
	if (!data || !find_linked_texts(image, data, &texts, &size))
		return 0;
	for (int i = 0; !status && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++)
		if (dyn.d_tag == tag && is_text(texts, size, dyn.d_un.d_val))
			status = visit(texts + dyn.d_un.d_val, ctx);
	return status;
}

static void read_build_id(struct image *image, const GElf_Phdr *phdr)
{
	Elf_Data *data = elf_getdata_rawchunk(image->elf, (int64_t)phdr->p_offset, phdr->p_filesz,
					      phdr->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	size_t at = 0, next, name, description;
	GElf_Nhdr note;

	while (data && (next = gelf_getnote(data, at, &note, &name, &description)) > at) {
		at = next;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp((const char *)data->d_buf + name, "GNU", 4) != 0)
			continue;
		for (size_t i = 0; i < note.n_descsz && 2 * i + 3 <= sizeof(image->build_id); i++)
			snprintf(image->build_id + 2 * i, 3, "%02x",
				 ((const unsigned char *)data->d_buf)[description + i]);
		return;
	}
}

static int read_segments(struct image *image, char *err, size_t err_size)
{
	bool soname = false, pie = false, interpreter = false, code = false;
	size_t count;

	if (elf_getphdrnum(image->elf, &count) || !count) {
		snprintf(err, err_size, "no program headers");
		return -EINVAL;
	}
	image->loads = calloc(count < IMAGE_LOADS_MAX ? count : IMAGE_LOADS_MAX, sizeof(*image->loads));
	if (!image->loads) {
		snprintf(err, err_size, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;
		uint64_t bytes;

		if (!gelf_getphdr(image->elf, (int)i, &phdr)) {
			snprintf(err, err_size, "damaged program headers");
			return -EINVAL;
		}
		if (phdr.p_type == PT_INTERP)
			interpreter = true;
		if (phdr.p_offset >= image->size)
			continue;
		bytes = image->size - phdr.p_offset;
		if (bytes > phdr.p_filesz)
			bytes = phdr.p_filesz;
		phdr.p_filesz = bytes;
		if (phdr.p_type == PT_DYNAMIC)
			read_dynamic(image, &phdr, &soname, &pie);
		else if (phdr.p_type == PT_NOTE && !image->build_id[0])
			read_build_id(image, &phdr);
		else if (phdr.p_type == PT_LOAD && bytes && phdr.p_vaddr <= UINT64_MAX - bytes) {
			if (image->load_count == IMAGE_LOADS_MAX) { /* each symbol is looked for in each of them */
				snprintf(err, err_size, "more than %d segments", IMAGE_LOADS_MAX);
				return -EINVAL;
			}
			image->loads[image->load_count++] = (struct load){
			    .vaddr = phdr.p_vaddr,
			    .offset = phdr.p_offset,
			    .bytes = bytes,
			    .executable = phdr.p_flags & PF_X,
			};
			code |= phdr.p_flags & PF_X;
		}
	}
	if (!code) {
		snprintf(err, err_size, "no code in the file");
		return -EINVAL;
	}
	image->is_executable |= pie || (interpreter && !soname);
	return 0;
}

const struct load *image__load(const struct image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->load_count; i++)
		if (vaddr >= image->loads[i].vaddr && vaddr - image->loads[i].vaddr < image->loads[i].bytes)
			return &image->loads[i];
	return NULL;
}

static struct image *begin(char *err, size_t err_size)
{
	struct image *image = calloc(1, sizeof(*image));

	if (err_size)
		err[0] = '\0';
	if (!image)
		snprintf(err, err_size, "out of memory");
	return image;
}

/* Parses an image's bytes. */
static struct image *digest(struct image *image, bool symbols, char *err, size_t err_size)
{
	if (check_header(image, err, err_size) || read_segments(image, err, err_size))
		goto cleanup;
	if (symbols && image__read_symbols(image)) {
		snprintf(err, err_size, "out of memory for symbols");
		goto cleanup;
	}
	return image;
cleanup:
	image__free(image);
	return NULL;
}

struct image *image__open(const char *path, char *err, size_t err_size)
{
	struct image *image = begin(err, err_size);

	if (!image)
		return NULL;
	if (read_file(image, path, err, err_size)) {
		image__free(image);
		return NULL;
	}
	return digest(image, true, err, err_size);
}

struct image *image__from_bytes(char *bytes, size_t size, bool symbols, char *err, size_t err_size)
{
	struct image *image = begin(err, err_size);

	if (!image)
		return NULL;
	image->data = bytes;
	image->borrowed = true;
	image->size = size;
	return digest(image, symbols, err, err_size);
}

void image__free(struct image *image)
{
	if (!image)
		return;
	if (image->cfi)
		dwarf_cfi_end(image->cfi);
	if (image->dwarf)
		dwarf_end(image->dwarf);
	if (image->elf)
		elf_end(image->elf);
	for (size_t i = 0; i < image->name_count; i++)
		free(image->names[i]);
	free(image->names);
	free(image->entries);
	free(image->objects);
	free(image->loads);
	if (!image->borrowed)
		free(image->data);
	free(image);
}

const char *image__build_id(const struct image *image)
{
	return image->build_id;
}

int image__offset_of(const struct image *image, uint64_t vaddr, uint64_t *offset)
{
	const struct load *load = image__load(image, vaddr);

	if (!load)
		return -ENOENT;
	*offset = load->offset + (vaddr - load->vaddr);
	return 0;
}

int image__vaddr_of(const struct image *image, uint64_t offset, uint64_t *vaddr)
{
	const struct load *best = NULL;

	/* Offsets come from mappings of code: where segments share bytes of the file, code wins. */
	for (size_t i = 0; i < image->load_count; i++) {
		const struct load *load = &image->loads[i];

		if (offset < load->offset || offset - load->offset >= load->bytes)
			continue;
		if (!best || (load->executable && !best->executable))
			best = load;
	}
	if (!best)
		return -ENOENT;
	*vaddr = best->vaddr + (offset - best->offset);
	return 0;
}

const uint8_t *image__bytes(const struct image *image, uint64_t vaddr, size_t *size)
{
	const struct load *load = image->elf ? image__load(image, vaddr) : NULL;

	if (!load)
		return NULL;
	*size = load->bytes - (vaddr - load->vaddr);
	return (const uint8_t *)image->data + load->offset + (vaddr - load->vaddr);
}

/* libdw inflates every debug section of a file that it opens: possible bombs are hidden from it. */
static bool has_compressed(const struct image *image)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(image->elf, &names))
		return true;
	while ((section = elf_nextscn(image->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &header) || (header.sh_flags & SHF_COMPRESSED))
			return true;
		name = elf_strptr(image->elf, names, header.sh_name);
		if (!name || !strncmp(name, ".zdebug", 7))
			return true;
	}
	return false;
}

static void open_cfi(struct image *image)
{
	if (image->cfi_tried || !image->elf)
		return;
	image->cfi_tried = true;
	image->cfi = dwarf_getcfi_elf(image->elf);
	if (image->cfi || has_compressed(image))
		return;
	image->dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (image->dwarf)
		image->debug_cfi = dwarf_getcfi(image->dwarf);
}

/*
 * Finds the rules at a linked address, and the CFA as a distance from a register (DWARF number). The
 * caller frees *frame.
 */
static int frame_at(struct image *image, uint64_t vaddr, Dwarf_Frame **frame, uint64_t *base, int64_t *cfa)
{
	Dwarf_CFI *cfi;
	Dwarf_Op *ops;
	size_t count;

	*frame = NULL;
	open_cfi(image);
	cfi = image->cfi ? image->cfi : image->debug_cfi;
	if (!cfi || dwarf_cfi_addrframe(cfi, vaddr, frame) || !*frame)
		return -ENOENT;
	if (dwarf_frame_cfa(*frame, &ops, &count) || count != 1)
		return -EINVAL;
	if (ops[0].atom == DW_OP_bregx) {
		*base = ops[0].number;
		*cfa = (int64_t)ops[0].number2;
	} else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		*base = (uint64_t)(ops[0].atom - DW_OP_breg0);
		*cfa = (int64_t)ops[0].number;
	} else {
		return -EINVAL;
	}
	return 0;
}

int image__cfa(struct image *image, uint64_t vaddr, int64_t *displacement)
{
	Dwarf_Frame *frame;
	uint64_t base;
	int ret = frame_at(image, vaddr, &frame, &base, displacement);

	free(frame);
	return ret ? ret : base == DWARF_SP ? 0 : -EINVAL;
}

/* Finds a saved register, as a distance from the CFA. -ENOENT where it is not saved. */
static int saved_at(Dwarf_Frame *frame, int reg, int64_t *at)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	if (dwarf_frame_register(frame, reg, memory, &ops, &count))
		return -EINVAL;
	if (!count)
		return -ENOENT;
	if (ops[0].atom != DW_OP_call_frame_cfa || count > 2 || (count == 2 && ops[1].atom != DW_OP_plus_uconst))
		return -EINVAL;
	*at = count == 2 ? (int64_t)ops[1].number : 0;
	return 0;
}

int image__frame(struct image *image, uint64_t vaddr, struct image_frame *out)
{
	Dwarf_Frame *frame;
	uint64_t base;
	int ret = frame_at(image, vaddr, &frame, &base, &out->cfa), reg;

	if (!ret && base != DWARF_SP && base != DWARF_FRAME)
		ret = -EINVAL;
	if (ret)
		goto cleanup;
	out->by_frame = base == DWARF_FRAME;
	reg = dwarf_frame_info(frame, NULL, NULL, NULL);
	ret = reg < 0 || saved_at(frame, reg, &out->return_at) ? -EINVAL : 0;
	if (ret)
		goto cleanup;
	out->return_at += out->cfa;
	ret = saved_at(frame, DWARF_FRAME, &out->frame_at);
	out->frame_unchanged = ret == -ENOENT;
	out->frame_at += out->cfa;
	ret = ret == -ENOENT ? 0 : ret;
cleanup:
	free(frame);
	return ret;
}

bool image__text(const struct image *image, size_t i, uint64_t *vaddr, uint64_t *size)
{
	for (size_t j = 0; j < image->load_count; j++) {
		if (!image->loads[j].executable || i--)
			continue;
		*vaddr = image->loads[j].vaddr;
		*size = image->loads[j].bytes;
		return true;
	}
	return false;
}

/*
 * Extents of code by .eh_frame_hdr's sorted table and the frame descriptions behind it, in the one encoding that
 * linkers write (Linux Standard Base, "Exception Frames").
 */
#define TABLE_ENCODING 0x3b /* relative to the table's section, 4 bytes, signed */
#define HEADER_BYTES 12

static int32_t read_s32(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static int find_header(const struct image *image, uint64_t *vaddr)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(image->elf, &count))
		return -ENOENT;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(image->elf, (int)i, &header) && header.p_type == PT_GNU_EH_FRAME) {
			*vaddr = header.p_vaddr;
			return 0;
		}
	return -ENOENT;
}

/* Reads the size in the description at vaddr (4-byte fields); -ENOENT unless it is that of start. */
static int read_description(const struct image *image, uint64_t vaddr, uint64_t start, uint64_t *size)
{
	size_t left;
	const uint8_t *bytes = image__bytes(image, vaddr, &left);

	/* length, distance of the common part, start, size */
	if (!bytes || left < 16 || read_s32(bytes) < 12 || !read_s32(bytes + 4))
		return -ENOENT;
	if (vaddr + 8 + (uint64_t)(int64_t)read_s32(bytes + 8) != start)
		return -ENOENT;
	*size = (uint32_t)read_s32(bytes + 12);
	return *size ? 0 : -ENOENT;
}

int image__extent(const struct image *image, uint64_t vaddr, uint64_t *start, uint64_t *size)
{
	uint64_t header, low = 0, high, at;
	const uint8_t *bytes;
	size_t left;

	if (find_header(image, &header))
		return -ENOENT;
	bytes = image__bytes(image, header, &left);
	if (!bytes || left < HEADER_BYTES || bytes[0] != 1 || bytes[2] != 0x03 || bytes[3] != TABLE_ENCODING)
		return -ENOENT;
	high = (uint32_t)read_s32(bytes + 8);
	if (high > (left - HEADER_BYTES) / 8)
		return -ENOENT;
	bytes += HEADER_BYTES;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (header + (uint64_t)(int64_t)read_s32(bytes + 8 * middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -ENOENT;
	bytes += 8 * (low - 1);
	*start = header + (uint64_t)(int64_t)read_s32(bytes);
	at = header + (uint64_t)(int64_t)read_s32(bytes + 4);
	if (read_description(image, at, *start, size))
		return -ENOENT;
	return vaddr - *start < *size ? 0 : -ENOENT;
}
