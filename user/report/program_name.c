// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/program_name.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base_name.h"
#include "base/shortened.h"

#define WORD_MAX 1024

static const struct {
	const char *glob;
	const char *valued; /* letters of options whose value is the next word */
	const char *text;   /* letter of the option whose value is the program's text */
	const char *module; /* letter of the option whose value is a module to run; "": none */
} interpreters[] = {
    {"python*", "WX", "c", "m"}, {"pypy*", "WX", "c", "m"}, {"perl*", "", "eE", ""}, {"ruby*", "", "e", ""},
    {"julia*", "LJ", "eE", ""},	 {"Rscript*", "", "e", ""}, {"lua*", "", "e", ""},   {"octave*", "", "", ""},
};

/* Copies the next word of a command line; false at its end. */
static bool next_word(const char **at, char *word)
{
	size_t length;

	*at += strspn(*at, " ");
	length = strcspn(*at, " ");
	snprintf(word, WORD_MAX, "%.*s", (int)length, *at);
	*at += length;
	return length;
}

/* Finds what an interpreter runs; false where that is no file. */
static bool find_script(size_t kind, const char *command, char *script)
{
	char word[WORD_MAX];

	if (!next_word(&command, word))
		return false;
	while (next_word(&command, word)) {
		if (word[0] != '-') {
			snprintf(script, WORD_MAX, "%s", base_name(word));
			return *script;
		}
		if (!word[1] || word[2]) /* standard input; or letters in one word, or a long option with its value */
			continue;
		if (strchr(interpreters[kind].text, word[1]))
			return false;
		if (!strchr(interpreters[kind].valued, word[1]) && !strchr(interpreters[kind].module, word[1]))
			continue;
		if (!next_word(&command, script))
			return false;
		if (strchr(interpreters[kind].module, word[1]))
			return true;
	}
	return false;
}

char *program_name(const char *exe, const char *command, char *buf)
{
	const char *base = base_name(exe);
	char script[WORD_MAX], whole[2 * WORD_MAX];

	for (size_t i = 0; command && i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
		if (!fnmatch(interpreters[i].glob, base, 0) && find_script(i, command, script)) {
			snprintf(whole, sizeof(whole), "%.1000s %s", base, script);
			return shortened(whole, buf, PROGRAM_NAME_MAX);
		}
	return shortened(exe, buf, PROGRAM_NAME_MAX);
}
