// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints WRAP(Send) and so on: one line for each function of the table that vaprod attaches. */
#include <stdio.h>

#include "functions/functions.h"

int main(void)
{
	for (unsigned int i = 0; i < function_row_count; i++)
		if (!function_rows[i].polling)
			printf("WRAP(%s)\n", function_rows[i].symbol + 4);
	return 0;
}
