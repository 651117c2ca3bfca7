/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the JSON schema of the records: print_schema [--strict] (no keys that the table of records does not have). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "records/record_schema.h"

int main(int argc, char **argv)
{
	cJSON *schema = record_schema__make(argc > 1 && !strcmp(argv[1], "--strict"));
	char *text = schema ? cJSON_Print(schema) : NULL;
	int ret = text && puts(text) >= 0 && !fflush(stdout) ? 0 : 1;

	if (!text)
		fprintf(stderr, "print_schema: out of memory\n");
	free(text);
	cJSON_Delete(schema);
	return ret;
}
