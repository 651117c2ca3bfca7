// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/hops.h"

#include <errno.h>
#include <math.h>

#include "base/grow.h"
#include "base/intern.h"
#include "model/judgement.h"
#include "model/reference.h"

enum { FRAMES_MOST = 5 }; /* frames of a call-site's text: the site and its callers */

/* Time in states, by how well their durations are known. */
struct sums {
	double steady_ns, spread_ns, few_ns, n;
	double grouped_ns;   /* part of spread_ns that would be steady if callers distinguished the groups */
	double unknown_ns;   /* time in states that are not certified: too little of it is near any duration */
	double disturbed_ns; /* time of computations that the kernel interrupted */
};

struct site {
	char *text, *symbol; /* symbol: NULL where unknown */
	enum vapro_hop hop;
	uint64_t since_ns; /* begin of the trial */
	double before;	   /* steadiness before the trial */
	double doubted_ns; /* time that was judged when the trial had no success for the first time; 0: it was not */
	uint32_t below;	   /* call-site that this site calls, + 1; 0: it calls MPI, or does IO */
	unsigned depth;	   /* frames below the site */
	unsigned callers;  /* callers seen */
	uint32_t only;	   /* first caller seen, + 1 */
	/* sums of the present review */
	struct sums own;   /* states that end at the site */
	struct sums above; /* states that end at any of its callers */
};

/* Numbers of the call-sites at a state's end, innermost first. */
struct chain {
	uint32_t site[FRAMES_MOST];
	unsigned count;
};

struct hops_state {
	struct chain end[2];
	bool counts; /* it is a computation */
	bool vacant; /* its number is free, or was when the next state of that number was not read yet */
};

/* The last steadiness of a series: it is computed again once the series has grown. */
struct hops_series {
	double n, steady, near;
};

struct hops {
	struct intern *texts; /* ids of sites, from 1 */
	struct site *sites;
	size_t site_count, site_room;
	struct hops_state *states; /* by state id */
	size_t state_count, state_room;
	struct hops_series *series; /* by number in the book */
	size_t series_room;
	double all_ns;
};

#define SHARE_LEAST 0.05	/* least share of all time of a call-site that is hopped */
#define TIME_LEAST_NS 5e8	/* least time of a call-site that is hopped */
#define STEADIER 0.2		/* least improvement by a trial */
#define STEADIER_PART 0.6	/* the same, as a part of what is missing: the lesser counts */
#define GROUPED_LEAST 0.15	/* least share of a steadier call-site's time in states of several workloads */
#define LASTING_NS 2e10		/* spread time after which callers may differ in any case: by phases of the program */
#define JUDGED_LEAST 0.67	/* share of a trial's time in states seen often enough */
enum { CALLERS_MOST = 64 };	/* with more callers no state is seen often enough */
enum { HOPPED_MOST = 32 };	/* call-sites that are hopped */
enum { TRIALS_MOST = 8 };	/* trials at the same time */
#define TRIAL_NS 60000000000ULL /* longest trial without a result, since the last decision on its callers */
#define DOUBTED_MORE 8 /* a trial without success ends when so many times the time of the first doubt was judged */
enum { SERIES_A_SECOND = 4096 }; /* series reviewed in a second; with more, reviews are several seconds apart */

const char *const vapro_hop_name[VAPRO_HOPS] = {
    [VAPRO_HOP_NONE] = "none", [VAPRO_HOP_UP] = "up",		[VAPRO_HOP_STAYS] = "stays",
    [VAPRO_HOP_BACK] = "back", [VAPRO_HOP_REFUSED] = "refused",
};

struct hops *hops__new(void)
{
	struct hops *hops = calloc(1, sizeof(*hops));

	if (hops && (hops->texts = intern__new()))
		return hops;
	free(hops);
	return NULL;
}

void hops__free(struct hops *hops)
{
	if (!hops)
		return;
	for (size_t i = 0; i < hops->site_count; i++) {
		free(hops->sites[i].text);
		free(hops->sites[i].symbol);
	}
	intern__free(hops->texts);
	free(hops->sites);
	free(hops->states);
	free(hops->series);
	free(hops);
}

size_t hops__bytes(const struct hops *hops)
{
	return hops->site_room * sizeof(*hops->sites) + hops->state_room * sizeof(*hops->states) +
	       hops->series_room * sizeof(*hops->series);
}

/* ---- call-sites and the states that end at them */

static int site_of(struct hops *hops, const char *text, size_t length, uint32_t *number)
{
	char name[512];
	struct site *site;
	uint32_t id;

	if (length >= sizeof(name))
		length = sizeof(name) - 1;
	memcpy(name, text, length);
	name[length] = '\0';
	id = intern__id(hops->texts, name);
	if (id == INTERN_NONE)
		return -ENOMEM;
	*number = id - 1;
	if (*number < hops->site_count)
		return 0;
	if (grow(&hops->sites, &hops->site_room, hops->site_count + 1, sizeof(*hops->sites)))
		return -ENOMEM;
	site = &hops->sites[hops->site_count];
	*site = (struct site){.text = strdup(name)};
	if (!site->text)
		return -ENOMEM;
	hops->site_count++;
	return 0;
}

/* Finds the i-th name of a joined text: its length, or 0. */
static size_t part_of(const char *text, unsigned i, const char **part)
{
	const char *end;

	for (*part = text; i; i--) {
		*part = strstr(*part, SITE_CALLED_BY);
		if (!*part)
			return 0;
		*part += strlen(SITE_CALLED_BY);
	}
	end = strstr(*part, SITE_CALLED_BY);
	return end ? (size_t)(end - *part) : strlen(*part);
}

static int read_chain(struct hops *hops, const char *text, const char *symbols, struct chain *chain)
{
	unsigned skipped = 0;
	const char *part;
	size_t length;

	while (chain->count < FRAMES_MOST && (length = part_of(text, skipped + chain->count, &part))) {
		uint32_t number;
		struct site *site, *below;

		if (site_of(hops, part, length, &number))
			return -ENOMEM;
		site = &hops->sites[number];
		/* a runtime's call-site is always hopped: the program's own call-site is behind it */
		if (!chain->count && !skipped && site->hop == VAPRO_HOP_NONE && part_of(text, 1, &part)) {
			skipped = 1;
			continue;
		}
		if (!site->symbol && symbols && (length = part_of(symbols, skipped + chain->count, &part)))
			site->symbol = strndup(part, length);
		chain->site[chain->count] = number;
		if (chain->count && !site->below && number != chain->site[chain->count - 1]) {
			below = &hops->sites[chain->site[chain->count - 1]];
			site->below = chain->site[chain->count - 1] + 1;
			site->depth = chain->count;
			below->only = below->callers++ ? below->only : number + 1;
		}
		chain->count++;
	}
	return 0;
}

static int read_states(struct hops *hops, const struct stg *stg)
{
	if (grow(&hops->states, &hops->state_room, stg__states(stg), sizeof(*hops->states)))
		return -ENOMEM;
	for (size_t i = 0; i < stg__states(stg); i++) {
		const struct vapro_state *about = &stg__state(stg, (uint32_t)i)->about;
		struct hops_state *state = &hops->states[i];

		if (i < hops->state_count && !state->vacant)
			continue;
		if (i >= hops->state_count)
			hops->state_count = i + 1;
		*state = (struct hops_state){.counts = about->class == VAPRO_COMPUTATION, .vacant = !about->to};
		if (!state->counts || state->vacant)
			continue;
		if (read_chain(hops, about->to, about->to_symbol, &state->end[1]) ||
		    (about->from && read_chain(hops, about->from, about->from_symbol, &state->end[0])))
			return -ENOMEM;
	}
	return 0;
}

/* ---- steadiness of states */

static bool is_up(const struct site *site)
{
	return site->hop == VAPRO_HOP_UP || site->hop == VAPRO_HOP_STAYS;
}

/* Whether a state can still occur: not where an end was hopped since, or is not hopped any more. */
static bool is_current(const struct hops *hops, const struct hops_state *state)
{
	for (int end = 0; end < 2; end++) {
		const struct chain *chain = &state->end[end];

		for (unsigned i = 0; i < chain->count; i++)
			if (is_up(&hops->sites[chain->site[i]]) != (i + 1 < chain->count) && i + 1 < FRAMES_MOST)
				return false;
	}
	return true;
}

static void add(struct sums *sums, const struct sums *more)
{
	sums->steady_ns += more->steady_ns;
	sums->spread_ns += more->spread_ns;
	sums->few_ns += more->few_ns;
	sums->grouped_ns += more->grouped_ns;
	sums->unknown_ns += more->unknown_ns;
	sums->disturbed_ns += more->disturbed_ns;
	sums->n += more->n;
}

/* Adds sums once to each call-site of a state, even a repeated one. */
static void add_to_sites(struct hops *hops, const struct hops_state *state, const struct sums *sums)
{
	uint32_t met[2 * FRAMES_MOST];
	unsigned count = 0;

	for (int end = 0; end < 2; end++) {
		const struct chain *chain = &state->end[end];

		for (unsigned i = 0; i < chain->count; i++) {
			struct site *site = &hops->sites[chain->site[i]];
			bool known = false;

			for (unsigned k = 0; k < count; k++)
				known |= met[k] == chain->site[i];
			if (known)
				continue;
			met[count++] = chain->site[i];
			add(i + 1 < chain->count ? &site->above : &site->own, sums);
		}
	}
}

/* Whether durations change with time and not from call to call, as on a host that is slow for a while. */
static bool changes_with_time(const struct series *series, double steady)
{
	return successive__share(&series->successive, &series->cpu) < SHARE_MOST &&
	       (1 - steady) * series->cpu.sum_ns < LASTING_NS;
}

static struct sums sums_of(const struct series_book *book, const struct series *series, struct hops_series *last)
{
	struct sums sums = {.n = series->cpu.n};

	if (series->cpu.n < (double)book->config->certify_fragments) {
		sums.few_ns = series->cpu.sum_ns;
		return sums;
	}
	if (series->cpu.n < last->n ||
	    series->cpu.n > (1 + SHARE_MEANINGFUL) * last->n) { /* fewer: its number was reused */
		struct reference reference = reference__of(&series->cpu, book->config);

		last->n = series->cpu.n;
		last->near = reference.groups ? reference.near_share : 0;
		last->steady = reference.groups ? reference.near_share / reference.near_groups : 0;
		if (changes_with_time(series, last->steady))
			last->near = last->steady = 1;
	}
	sums.steady_ns = last->steady * series->cpu.sum_ns;
	sums.spread_ns = series->cpu.sum_ns - sums.steady_ns;
	sums.grouped_ns = (last->near - last->steady) * series->cpu.sum_ns;
	sums.unknown_ns = last->near < book->config->certify_share ? series->cpu.sum_ns : 0;
	sums.disturbed_ns = (1 - successive__entered(&series->successive) / series->cpu.n) * series->cpu.sum_ns;
	return sums;
}

static int review(struct hops *hops, const struct series_book *book)
{
	if (read_states(hops, book->stg) || grow(&hops->series, &hops->series_room, book->count, sizeof(*hops->series)))
		return -ENOMEM;
	for (size_t i = 0; i < hops->site_count; i++)
		hops->sites[i].own = hops->sites[i].above = (struct sums){0};
	hops->all_ns = 0;
	for (size_t i = 0; i < book->count; i++) {
		const struct series *series = &book->series[i];
		const struct hops_state *state;
		struct sums sums;

		if (series->job == SERIES_NONE || !series->cpu.n)
			continue;
		state = &hops->states[series->state];
		hops->all_ns += series->cpu.sum_ns;
		if (!state->counts || !is_current(hops, state))
			continue;
		sums = sums_of(book, series, &hops->series[i]);
		add_to_sites(hops, state, &sums);
	}
	return 0;
}

static double steadiness(const struct sums *sums)
{
	double judged = sums->steady_ns + sums->spread_ns;

	return judged > 0 ? sums->steady_ns / judged : 0;
}

/* ---- decisions */

/*
 * Whether most of a call-site's time spreads, or is in states of which too much does, or a part of it lies near several
 * durations: between these a slow fragment of one workload passes for a normal one of another.
 */
static bool is_unsteady(const struct sums *own)
{
	double judged = own->steady_ns + own->spread_ns;

	return steadiness(own) < SHARE_MOST || own->unknown_ns >= SHARE_MOST * judged ||
	       own->grouped_ns >= GROUPED_LEAST * judged;
}

/* Whether other tasks may be the reason, and not callers: they displace cached data, of neighbouring CPUs as well. */
static bool is_disturbed(const struct sums *own)
{
	return own->disturbed_ns >= SHARE_MEANINGFUL * (own->steady_ns + own->spread_ns) && own->spread_ns < LASTING_NS;
}

/* Whether to hop a call-site: untried, with times that spread and matter. */
static bool is_candidate(const struct hops *hops, const struct series_book *book, const struct site *site)
{
	return site->hop == VAPRO_HOP_NONE && site->depth < book->config->hop_frames &&
	       site->own.spread_ns >= TIME_LEAST_NS && site->own.spread_ns >= SHARE_LEAST * hops->all_ns &&
	       is_unsteady(&site->own) && !is_disturbed(&site->own);
}

/* Whether a call-site calls `of`, directly or indirectly. */
static bool is_above(const struct hops *hops, const struct site *site, const struct site *of)
{
	for (unsigned i = 0; i < FRAMES_MOST && site->below; i++) {
		site = &hops->sites[site->below - 1];
		if (site == of)
			return true;
	}
	return false;
}

static bool is_tried_above(const struct hops *hops, const struct site *of)
{
	for (size_t i = 0; i < hops->site_count; i++)
		if (hops->sites[i].hop == VAPRO_HOP_UP && is_above(hops, &hops->sites[i], of))
			return true;
	return false;
}

static struct site *best_candidate(const struct hops *hops, const struct series_book *book, const struct site *above)
{
	struct site *best = NULL;

	for (size_t i = 0; i < hops->site_count; i++) {
		struct site *site = &hops->sites[i];

		if ((above && !is_above(hops, site, above)) || !is_candidate(hops, book, site))
			continue;
		if (!best || site->own.spread_ns > best->own.spread_ns)
			best = site;
	}
	return best;
}

/* Returns the result of a trial, HOP_NONE where none is known yet; *next: the call-site of the result. */
static enum vapro_hop judge_trial(const struct hops *hops, const struct series_book *book, struct site *site,
				  uint64_t now_ns, struct site **next)
{
	bool over = now_ns > site->since_ns + TRIAL_NS;
	double judged = site->above.steady_ns + site->above.spread_ns;
	struct site *only = site->callers == 1 ? &hops->sites[site->only - 1] : NULL;

	*next = site;
	if (site->callers > CALLERS_MOST)
		return VAPRO_HOP_BACK;
	if (only && only->hop == VAPRO_HOP_STAYS)
		return VAPRO_HOP_STAYS;
	if (is_tried_above(hops, site))
		return VAPRO_HOP_NONE;
	if (only && site->above.n >= LEAST_FRAGMENTS) {
		if (only->hop != VAPRO_HOP_NONE || only->depth >= book->config->hop_frames)
			return VAPRO_HOP_BACK;
		*next = only;
		only->before = site->before;
		return VAPRO_HOP_UP;
	}
	if (site->callers < 2 || judged < JUDGED_LEAST * (judged + site->above.few_ns) || judged < TIME_LEAST_NS / 2)
		return over ? VAPRO_HOP_BACK : VAPRO_HOP_NONE;
	if (steadiness(&site->above) >= site->before + fmin(STEADIER, STEADIER_PART * (1 - site->before)))
		return VAPRO_HOP_STAYS;
	*next = best_candidate(hops, book, site);
	if (*next && !over) {
		(*next)->before = steadiness(&(*next)->own);
		return VAPRO_HOP_UP;
	}
	*next = site;
	/* while other tasks interrupt computations nothing is undone, and no doubt begins */
	if (is_disturbed(&site->above))
		return VAPRO_HOP_NONE;
	/* a disturbance at the begin of a trial makes the times of all callers spread, for as long as it lasts */
	if (!site->doubted_ns)
		site->doubted_ns = judged;
	return over || judged >= DOUBTED_MORE * site->doubted_ns ? VAPRO_HOP_BACK : VAPRO_HOP_NONE;
}

static void say(struct vapro_hop_event *event, const struct site *site, enum vapro_hop hop)
{
	*event = (struct vapro_hop_event){.hop = hop, .site = site->text, .symbol = site->symbol};
}

int hops__next(struct hops *hops, const struct series_book *book, uint64_t now_ns, struct vapro_hop_event *next)
{
	unsigned trials = 0, up = 0;
	struct site *site;

	*next = (struct vapro_hop_event){0};
	/* by the time of the stream alone, so that a capture and a worker decide at the same times */
	if (!book->config->hop_frames || now_ns / 1000000000ULL % (1 + book->count / SERIES_A_SECOND))
		return 0;
	if (review(hops, book))
		return -ENOMEM;
	for (size_t i = 0; i < hops->site_count; i++) {
		struct site *at = &hops->sites[i];
		enum vapro_hop hop = VAPRO_HOP_NONE;

		up += is_up(at);
		if (at->hop != VAPRO_HOP_UP)
			continue;
		trials++;
		hop = judge_trial(hops, book, at, now_ns, &site);
		if (hop != VAPRO_HOP_NONE) {
			say(next, site, hop);
			return 0;
		}
	}
	site = trials < TRIALS_MOST && up < HOPPED_MOST ? best_candidate(hops, book, NULL) : NULL;
	if (site) {
		site->before = steadiness(&site->own);
		say(next, site, VAPRO_HOP_UP);
	}
	return 0;
}

/* A decision above a call-site in a trial changes what its callers show: its trial begins again. */
static void prolong_below(struct hops *hops, const struct site *site, uint64_t now_ns)
{
	for (unsigned i = 0; i < FRAMES_MOST && site->below; i++) {
		struct site *below = &hops->sites[site->below - 1];

		if (below->hop == VAPRO_HOP_UP)
			below->since_ns = now_ns;
		site = below;
	}
}

/* How far a call-site has come: an outcome never takes it back, whichever node reports it, and when. */
static int progress_of(enum vapro_hop hop)
{
	static const int progress[VAPRO_HOPS] = {
	    [VAPRO_HOP_REFUSED] = 1, [VAPRO_HOP_UP] = 2, [VAPRO_HOP_STAYS] = 3, [VAPRO_HOP_BACK] = 4};

	return progress[hop];
}

int hops__note(struct hops *hops, const struct vapro_hop_event *event, uint64_t now_ns)
{
	struct site *site;
	uint32_t number;

	if (site_of(hops, event->site, strlen(event->site), &number))
		return -ENOMEM;
	site = &hops->sites[number];
	if (progress_of(event->hop) < progress_of(site->hop))
		return 0;
	site->hop = event->hop;
	site->since_ns = now_ns;
	prolong_below(hops, site, now_ns);
	return 0;
}

void hops__release(struct hops *hops, const struct stg *stg)
{
	if (hops->state_count > stg__states(stg))
		hops->state_count = stg__states(stg);
	for (size_t i = 0; i < hops->state_count; i++)
		hops->states[i].vacant |= !stg__state(stg, (uint32_t)i)->about.to;
}

size_t hops__states(const struct hops *hops)
{
	return hops->state_count;
}

/* Checkpoints of hops. */

static const struct archive_column site_columns[] = {
    ARCHIVE_ONE(struct site, symbol), ARCHIVE_ONE(struct site, hop),	    ARCHIVE_ONE(struct site, since_ns),
    ARCHIVE_ONE(struct site, before), ARCHIVE_ONE(struct site, doubted_ns), ARCHIVE_ONE(struct site, below),
    ARCHIVE_ONE(struct site, depth),  ARCHIVE_ONE(struct site, callers),    ARCHIVE_ONE(struct site, only),
};
static const struct archive_table site_table = ARCHIVE_TABLE("hop sites", struct site, site_columns);

static const struct archive_column chain_columns[] = {
    ARCHIVE_MANY(struct hops_state, end[0].site), ARCHIVE_ONE(struct hops_state, end[0].count),
    ARCHIVE_MANY(struct hops_state, end[1].site), ARCHIVE_ONE(struct hops_state, end[1].count),
    ARCHIVE_ONE(struct hops_state, counts),	  ARCHIVE_ONE(struct hops_state, vacant),
};
static const struct archive_table chain_table = ARCHIVE_TABLE("hop states", struct hops_state, chain_columns);

static const struct archive_column steady_columns[] = {
    ARCHIVE_ONE(struct hops_series, n),
    ARCHIVE_ONE(struct hops_series, steady),
    ARCHIVE_ONE(struct hops_series, near),
};
static const struct archive_table steady_table = ARCHIVE_TABLE("hop series", struct hops_series, steady_columns);

static bool possible(const struct hops *hops, const struct hops_state *state)
{
	bool possible = true;

	for (int end = 0; end < 2; end++) {
		possible &= state->end[end].count <= FRAMES_MOST;
		for (unsigned i = 0; possible && i < state->end[end].count; i++)
			possible = state->end[end].site[i] < hops->site_count;
	}
	return possible;
}

void hops__archive(struct archive *archive, struct hops *hops)
{
	size_t series = hops->series_room, count = hops->site_count;
	struct intern *symbols = intern__new();

	if (!symbols) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < hops->site_count; i++)
		intern__id(symbols, hops->sites[i].symbol);
	archive__texts(archive, symbols);
	archive__rows(archive, &site_table, &hops->sites, &hops->site_count, &hops->site_room);
	archive__texts(archive, hops->texts);
	archive__rows(archive, &chain_table, &hops->states, &hops->state_count, &hops->state_room);
	archive__rows(archive, &steady_table, &hops->series, &series, &hops->series_room);
	count = archive__reads(archive) ? hops->site_count : 0;
	archive__check(archive, !archive__reads(archive) || count + 1 == intern__count(hops->texts),
		       "a call-site has no name");
	for (size_t i = 0; i < count; i++) {
		struct site *site = &hops->sites[i];

		site->text = archive__copy(archive, intern__text(hops->texts, (uint32_t)i + 1));
		site->symbol = archive__copy(archive, site->symbol);
		archive__check(archive,
			       site->hop < VAPRO_HOPS && site->below <= count && site->only <= count &&
				   (!site->callers || site->only),
			       "a call-site contradicts others");
	}
	for (size_t i = 0; archive__reads(archive) && i < hops->state_count; i++)
		archive__check(archive, possible(hops, &hops->states[i]), "a call-site is missing");
	intern__free(symbols);
}
