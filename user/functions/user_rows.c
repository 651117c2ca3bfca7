// SPDX-License-Identifier: GPL-2.0-or-later
#include "functions/user_rows.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 16

static const struct {
	const char *name;
	size_t offset;
} roles[] = {
    {"count", offsetof(struct vapro_roles, count)}, {"type", offsetof(struct vapro_roles, type)},
    {"peer", offsetof(struct vapro_roles, peer)},   {"root", offsetof(struct vapro_roles, root)},
    {"op", offsetof(struct vapro_roles, op)},	    {"comm", offsetof(struct vapro_roles, comm)},
};

static int set_class(struct function_row *row, const char *class)
{
	row->kind = KERNEL_ROW_CALL;
	if (!strcmp(class, "user")) {
		row->class = VAPRO_COMPUTATION;
		row->kind = KERNEL_ROW_BOUNDARY;
	} else if (!strcmp(class, "communication")) {
		row->class = VAPRO_COMMUNICATION;
	} else if (!strcmp(class, "io")) {
		row->class = VAPRO_IO;
	} else if (!strcmp(class, "thread")) {
		row->class = VAPRO_COMMUNICATION;
		row->threads = true;
	} else {
		return -EINVAL;
	}
	return 0;
}

static int set_role(struct function_row *row, const char *name, const char *value)
{
	char *end;
	long number = strtol(value, &end, 10);

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (strcmp(roles[i].name, name) != 0)
			continue;
		if (end == value || *end || number < 1 || number > ARGUMENTS_MAX)
			return -EINVAL;
		*((u8 *)&row->roles + roles[i].offset) = (u8)number;
		return 0;
	}
	return -ENOENT;
}

int user_rows__parse(const char *text, struct function_row *row, char *copy, size_t copy_size, char *err,
		     size_t err_size)
{
	char *rest = NULL, *word, *colon;
	bool roles_given = false;

	*row = (struct function_row){.class = VAPRO_COMPUTATION, .kind = KERNEL_ROW_BOUNDARY, .own_sites = true};
	if ((size_t)snprintf(copy, copy_size, "%s", text) >= copy_size) {
		snprintf(err, err_size, "a function row is too long");
		return -EINVAL;
	}
	word = strtok_r(copy, " \t", &rest);
	colon = word ? strchr(word, ':') : NULL;
	if (!colon || colon == word || !colon[1] || colon[1] == ':' || strchr(word, '=')) {
		snprintf(err, err_size, "invalid IMAGE:FUNCTION '%s'; expected such as exe:solve_step", text);
		return -EINVAL;
	}
	*colon = '\0';
	row->image = word;
	row->symbol = colon + 1;
	while ((word = strtok_r(NULL, " \t", &rest))) {
		char *value = strchr(word, '=');
		int status = -ENOENT;

		if (value) {
			*value++ = '\0';
			if (!strcmp(word, "class")) {
				status = set_class(row, value);
			} else {
				status = set_role(row, word, value);
				roles_given |= !status;
			}
		}
		if (!status)
			continue;
		snprintf(err, err_size,
			 status == -ENOENT ? "'%s' is unknown; expected class, count, type, peer, root, op or comm"
					   : "%s: expected class=user|communication|io|thread, or an argument's number "
					     "from 1 to 16",
			 word);
		return -EINVAL;
	}
	if (roles_given && row->kind == KERNEL_ROW_BOUNDARY) {
		snprintf(err, err_size, "arguments have a meaning with class=communication, io or thread only");
		return -EINVAL;
	}
	row->blocking = row->kind == KERNEL_ROW_CALL;
	return 0;
}

int user_rows__add(const char *texts, unsigned int *numbers, char *err, size_t err_size)
{
	char *copy = strdup(texts), *rest = NULL, *text, scratch[1024];
	int count = 0, status = copy ? 0 : -ENOMEM;

	snprintf(err, err_size, "out of memory");
	for (text = copy ? strtok_r(copy, ";", &rest) : NULL; text && !status; text = strtok_r(NULL, ";", &rest)) {
		struct function_row row;
		int number;

		if (!text[strspn(text, " \t")])
			continue;
		if (count == USER_ROWS_MAX) {
			snprintf(err, err_size, "more than %d functions", USER_ROWS_MAX);
			status = -E2BIG;
			break;
		}
		status = user_rows__parse(text, &row, scratch, sizeof(scratch), err, err_size);
		number = status ? status : functions__add(&row);
		if (number < 0)
			status = number;
		else
			numbers[count++] = (unsigned int)number;
	}
	free(copy);
	return status ? status : count;
}
