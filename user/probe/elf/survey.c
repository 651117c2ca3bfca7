// SPDX-License-Identifier: GPL-2.0-or-later
/* The requesting side of a survey: each field of the response is checked before use. */
#include "probe/elf/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "probe/elf/survey_private.h"
#include "target/image_tables.h"
#include "sandbox/user_file.h"

struct survey {
	uint8_t *data; /* response; holds the texts */
	struct image *image;
	struct survey_function *functions;
	size_t function_count;
	struct io_site *io;
	size_t io_count;
	bool passes_on;
	struct transparent_call *calls;
	size_t call_count;
};

void survey__free(struct survey *survey)
{
	if (!survey)
		return;
	image__free(survey->image);
	free(survey->functions);
	free(survey->io);
	free(survey->calls);
	free(survey->data);
	free(survey);
}

static void get_function(struct survey *survey, struct flat_reader *reader, const struct survey_wanted *wanted,
			 size_t wanted_count, struct survey_function *function)
{
	struct image_symbol *symbol = &function->symbol;
	struct site *site = &function->site;

	function->wanted = wanted_count ? flat__get_upto(reader, wanted_count - 1) : 0;
	if (!wanted_count)
		reader->bad = true;
	if (reader->bad)
		return;
	symbol->name = wanted[function->wanted].symbol;
	function->large = flat__get_upto(reader, 1);
	symbol->vaddr = flat__get(reader);
	symbol->size = flat__get(reader);
	symbol->dynamic = flat__get_upto(reader, 1);
	site->shift = (uint32_t)flat__get_upto(reader, SURVEY_SHIFT_MAX);
	site->class = (enum site_class)flat__get_upto(reader, SITE_REFUSED);
	site->instruction = flat__get_text(reader, SURVEY_TEXT_MAX);
	site->reason = flat__get_text(reader, SURVEY_TEXT_MAX);
	site->vaddr = symbol->vaddr + site->shift;
	/* a site outside the file's code would be a probe on something else */
	if (image__offset_of(survey->image, symbol->vaddr, &symbol->offset) ||
	    image__offset_of(survey->image, site->vaddr, &site->offset) ||
	    site->offset - symbol->offset != site->shift || (symbol->size && site->shift >= symbol->size))
		reader->bad = true;
}

static void get_io(struct survey *survey, struct flat_reader *reader, struct io_site *site)
{
	site->vaddr = flat__get(reader);
	site->displacement = (int32_t)flat__get_upto(reader, INT32_MAX);
	site->name = iosites__wrapper((size_t)flat__get(reader));
	if (!site->name || image__offset_of(survey->image, site->vaddr, &site->offset))
		reader->bad = true;
}

/* The kernel side checks each access through these distances: any value that fits will do. */
static void get_call(struct flat_reader *reader, struct transparent_call *call)
{
	call->vaddr = (uint32_t)flat__get_upto(reader, UINT32_MAX);
	call->hop.return_at = (int32_t)(uint32_t)flat__get_upto(reader, UINT32_MAX);
	call->hop.sp = (int32_t)(uint32_t)flat__get_upto(reader, UINT32_MAX);
	call->hop.frame_at = (int32_t)(uint32_t)flat__get_upto(reader, UINT32_MAX);
	call->hop.by_frame = (uint32_t)flat__get_upto(reader, 1);
}

static int get(struct survey *survey, size_t size, uint64_t file_bytes, const struct survey_wanted *wanted,
	       size_t wanted_count)
{
	struct flat_reader reader = {.at = survey->data, .end = survey->data + size};
	bool memory;

	survey->image = image_tables__get(&reader, file_bytes, &memory);
	if (!survey->image)
		return memory ? -ENOMEM : -EBADMSG;
	survey->function_count = flat__get_count(&reader, SURVEY_FUNCTION_BYTES);
	survey->functions = calloc(survey->function_count + 1, sizeof(*survey->functions));
	if (!survey->functions)
		return -ENOMEM;
	for (size_t i = 0; i < survey->function_count && !reader.bad; i++)
		get_function(survey, &reader, wanted, wanted_count, &survey->functions[i]);
	survey->io_count = flat__get_count(&reader, SURVEY_IO_BYTES);
	survey->io = calloc(survey->io_count + 1, sizeof(*survey->io));
	if (!survey->io)
		return -ENOMEM;
	for (size_t i = 0; i < survey->io_count && !reader.bad; i++)
		get_io(survey, &reader, &survey->io[i]);
	survey->passes_on = flat__get_upto(&reader, 1);
	survey->call_count = flat__get_count(&reader, SURVEY_CALL_BYTES);
	survey->calls = calloc(survey->call_count + 1, sizeof(*survey->calls));
	if (!survey->calls)
		return -ENOMEM;
	for (size_t i = 0; i < survey->call_count && !reader.bad; i++)
		get_call(&reader, &survey->calls[i]);
	return flat__done(&reader) ? 0 : -EBADMSG;
}

struct survey *survey__query(int fd, uid_t owner, const char *label, unsigned int parts,
			     const struct survey_wanted *wanted, size_t wanted_count, char *err, size_t err_size)
{
	struct flat about = {0};
	struct confine_query query = {
	    .service = SURVEY_SERVICE, .about = &about, .files = {fd}, .file_count = 1, .owner = owner};
	struct survey *survey = calloc(1, sizeof(*survey));
	struct confine_response response = {0};
	int status = -ENOMEM;
	char sentence[256] = "out of memory";
	struct stat st;

	flat__put(&about, parts);
	flat__put(&about, wanted_count);
	for (size_t i = 0; i < wanted_count; i++) {
		flat__put_text(&about, wanted[i].symbol);
		flat__put(&about, wanted[i].arguments);
	}
	if (!survey || about.failed)
		goto out;
	status = confine__query(&query, &response, sentence, sizeof(sentence));
	if (status)
		goto out;
	survey->data = response.data;
	/* the reader may have seen less of the file than is there now, never more than it was given */
	status =
	    user_file__stat(fd, &st) ? -EIO : get(survey, response.size, (uint64_t)st.st_size, wanted, wanted_count);
	if (status == -EBADMSG)
		snprintf(sentence, sizeof(sentence), "its confined reader gave a response that makes no sense");
	else if (status)
		snprintf(sentence, sizeof(sentence), "out of memory");
out:
	free(about.data);
	if (!status)
		return survey;
	snprintf(err, err_size, "%s: %s", label, sentence);
	survey__free(survey);
	errno = -status;
	return NULL;
}

struct image *survey__image(const struct survey *survey)
{
	return survey->image;
}

const struct survey_function *survey__functions(const struct survey *survey, size_t *count)
{
	*count = survey->function_count;
	return survey->functions;
}

bool survey__passes_on(const struct survey *survey)
{
	return survey->passes_on;
}

const struct transparent_call *survey__calls(const struct survey *survey, size_t *count)
{
	*count = survey->call_count;
	return survey->calls;
}

const struct io_site *survey__io_sites(const struct survey *survey, size_t *count)
{
	*count = survey->io_count;
	return survey->io;
}
