// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "top/model.h"

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static SCREEN *screen;
static struct termios saved;
static char restore[128]; /* what makes the terminal's screen the earlier one */
static volatile sig_atomic_t ended;
static attr_t styles[GRID_STYLES];
static bool utf8;

static void on_end(int signal)
{
	(void)signal;
	ended = 1;
}

/* Restores the terminal as far as a handler may, and lets the fault take its course. */
static void on_fault(int signal)
{
	struct sigaction initial = {.sa_handler = SIG_DFL};
	ssize_t written = write(STDOUT_FILENO, restore, strlen(restore));

	(void)written;
	tcsetattr(STDIN_FILENO, TCSANOW, &saved);
	sigaction(signal, &initial, NULL);
	raise(signal);
}

static void handle(const int *signals, size_t count, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	for (size_t i = 0; i < count; i++)
		sigaction(signals[i], &action, NULL);
}

/* Chooses what styles look like: by colours, or without them by bold, dim and reverse. */
static void choose_styles(void)
{
	const char *no_color = getenv("NO_COLOR");
	bool color = has_colors() && (!no_color || !*no_color) && start_color() == OK;

	if (color && use_default_colors() == ERR)
		color = false;
	if (color) {
		init_pair(1, COLOR_GREEN, -1);
		init_pair(2, COLOR_YELLOW, -1);
		init_pair(3, COLOR_RED, -1);
	}
	styles[GRID_PLAIN] = A_NORMAL;
	styles[GRID_DIM] = A_DIM;
	styles[GRID_BOLD] = A_BOLD;
	styles[GRID_TITLE] = A_REVERSE;
	styles[GRID_CURSOR] = A_REVERSE | A_BOLD;
	styles[GRID_GOOD] = color ? COLOR_PAIR(1) : A_NORMAL;
	styles[GRID_FAIR] = color ? COLOR_PAIR(2) : A_NORMAL;
	styles[GRID_BAD] = color ? COLOR_PAIR(3) | A_BOLD : A_BOLD;
}

static void note_restore(void)
{
	const char *names[] = {"rmcup", "cnorm", "sgr0"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *text = tigetstr(names[i]);

		if (text && text != (char *)-1 && strlen(restore) + strlen(text) + 1 < sizeof(restore))
			strcat(restore, text);
	}
}

int screen__open(char *err, size_t err_size)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &saved)) {
		snprintf(err, err_size, "standard input and output are not a terminal: use --once or --batch");
		return -EINVAL;
	}
	setlocale(LC_CTYPE, "");
	utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		snprintf(err, err_size, "a terminal of type '%s' (TERM) cannot show it: use --once or --batch",
			 term ? term : "");
		return -EINVAL;
	}
	note_restore();
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	set_escdelay(50);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	choose_styles();
	handle(ends, sizeof(ends) / sizeof(*ends), on_end);
	handle(faults, sizeof(faults) / sizeof(*faults), on_fault);
	return 0;
}

void screen__close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
	handle(ends, sizeof(ends) / sizeof(*ends), SIG_DFL);
	handle(faults, sizeof(faults) / sizeof(*faults), SIG_DFL);
}

void screen__size(unsigned *width, unsigned *height)
{
	int rows, columns;

	getmaxyx(stdscr, rows, columns);
	*width = columns > 0 ? (unsigned)columns : 1;
	*height = rows > 0 ? (unsigned)rows : 1;
}

void screen__draw(const struct grid *grid)
{
	unsigned width, height;

	screen__size(&width, &height);
	erase();
	for (unsigned row = 0; row < height && row < grid->height; row++) {
		for (unsigned column = 0; column < width && column < grid->width; column++) {
			const struct grid_cell *cell = &grid->cells[(size_t)row * grid->width + column];
			uint32_t character = cell->character > 0x7e && !utf8 ? '?' : cell->character;
			attr_t style = styles[cell->style];
			wchar_t text[2] = {(wchar_t)character, 0};
			cchar_t glyph;

			if (character == ' ' && style == A_NORMAL)
				continue;
			setcchar(&glyph, text, style & ~A_COLOR, (short)PAIR_NUMBER(style), NULL);
			mvadd_wch((int)row, (int)column, &glyph);
		}
	}
	refresh();
}

uint32_t screen__key(void)
{
	wint_t key = 0;
	int status = get_wch(&key);

	if (status == ERR)
		return 0;
	if (status == OK) {
		switch (key) {
		case '\r':
		case '\n':
			return TOP_KEY_ENTER;
		case '\t':
			return TOP_KEY_TAB;
		case 27:
			return TOP_KEY_BACK;
		case 8:
		case 127:
			return TOP_KEY_ERASE;
		case 12: /* ^L: draw all of it */
			clearok(curscr, TRUE);
			return SCREEN_RESIZED;
		default:
			return key < ' ' ? 1 : (uint32_t)key;
		}
	}
	switch (key) {
	case KEY_RESIZE:
		return SCREEN_RESIZED;
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_ENTER:
	case KEY_RIGHT:
		return TOP_KEY_ENTER;
	case KEY_LEFT:
		return TOP_KEY_BACK;
	case KEY_BACKSPACE:
		return TOP_KEY_ERASE;
	case KEY_F(1):
		return TOP_KEY_HELP;
	case KEY_F(10):
		return TOP_KEY_QUIT;
	default:
		return 1; /* a key without meaning */
	}
}

bool screen__ended(void)
{
	return ended;
}
