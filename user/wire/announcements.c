// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"
#include "wire/announcements.h"

#define NAMES_MOST 64 /* inlined functions at one place */

struct known_thread {
	struct vapro_thread about;
	struct vapro_place place;
	struct stream_seen seen;
	bool placed, watched;
};

/* What is known of a place in code. */
struct known_site {
	struct stream_name *names; /* by depth */
	size_t count, capacity;
};

struct announcements {
	char *tunables, *hello;
	struct stream_clock clock;
	struct vapro_host_clock host_clock; /* host NULL: none yet */
	struct intern *texts, *site_ids;
	struct known_thread *threads;
	struct vapro_state *states;
	struct known_site *sites; /* by number of site_ids */
	size_t thread_count, thread_capacity, state_count, state_capacity, site_capacity;
};

struct announcements *announcements__new(const char *tunables)
{
	struct announcements *announced = calloc(1, sizeof(*announced));

	if (!announced)
		return NULL;
	announced->tunables = strdup(tunables);
	announced->hello = strdup("");
	announced->texts = intern__new();
	announced->site_ids = intern__new();
	if (announced->tunables && announced->hello && announced->texts && announced->site_ids)
		return announced;
	announcements__free(announced);
	return NULL;
}

void announcements__free(struct announcements *announced)
{
	if (!announced)
		return;
	for (size_t i = 0; i < announced->site_capacity; i++)
		free(announced->sites[i].names);
	free(announced->sites);
	free(announced->states);
	free(announced->threads);
	intern__free(announced->site_ids);
	intern__free(announced->texts);
	free(announced->hello);
	free(announced->tunables);
	free(announced);
}

/* Replaces a text by a copy. Returns false when out of memory. */
static bool own(struct announcements *announced, const char **text)
{
	uint32_t id = intern__id(announced->texts, *text);

	*text = id == INTERN_NONE ? NULL : intern__text(announced->texts, id);
	return id != INTERN_NONE;
}

static int note_thread(struct announcements *announced, const struct vapro_thread *thread)
{
	struct known_thread *known;

	if (thread->id != announced->thread_count)
		return -EINVAL;
	if (grow(&announced->threads, &announced->thread_capacity, announced->thread_count + 1, sizeof(*known)))
		return -ENOMEM;
	known = &announced->threads[announced->thread_count];
	*known = (struct known_thread){.about = *thread};
	if (!own(announced, &known->about.job) || !own(announced, &known->about.host))
		return -ENOMEM;
	announced->thread_count++;
	return 0;
}

static int note_state(struct announcements *announced, const struct vapro_state *state)
{
	struct vapro_state *known;

	if (state->id != announced->state_count)
		return -EINVAL;
	if (grow(&announced->states, &announced->state_capacity, announced->state_count + 1, sizeof(*known)))
		return -ENOMEM;
	known = &announced->states[announced->state_count];
	*known = *state;
	if (!own(announced, &known->from) || !own(announced, &known->to) || !own(announced, &known->labels) ||
	    !own(announced, &known->common) || !own(announced, &known->from_symbol) ||
	    !own(announced, &known->to_symbol) || !own(announced, &known->from_path) ||
	    !own(announced, &known->to_path))
		return -ENOMEM;
	announced->state_count++;
	return 0;
}

static int note_place(struct announcements *announced, const struct vapro_place *place)
{
	struct vapro_place copy = *place;

	if (place->thread >= announced->thread_count)
		return -EINVAL;
	if (!own(announced, &copy.core_type) || !own(announced, &copy.cpu_model) || !own(announced, &copy.cgroup) ||
	    !own(announced, &copy.limit) || !own(announced, &copy.limit_cgroup) || !own(announced, &copy.cpus))
		return -ENOMEM;
	announced->threads[place->thread].place = copy;
	announced->threads[place->thread].placed = true;
	return 0;
}

static int note_seen(struct announcements *announced, const struct stream_seen *seen)
{
	struct known_thread *known;

	if (seen->thread >= announced->thread_count)
		return -EINVAL;
	known = &announced->threads[seen->thread];
	known->watched = true;
	known->seen.thread = seen->thread;
	if (seen->from_ns)
		known->seen.from_ns = seen->from_ns;
	known->seen.to_ns = seen->to_ns;
	return 0;
}

static int note_name(struct announcements *announced, const struct stream_name *name)
{
	uint32_t id = intern__id(announced->site_ids, name->site);
	struct known_site *site;
	struct stream_name *copy;

	if (id == INTERN_NONE || grow(&announced->sites, &announced->site_capacity, id + 1, sizeof(*site)))
		return -ENOMEM;
	site = &announced->sites[id];
	if (!name->depth)
		site->count = 0;
	if (name->depth != site->count || name->depth >= NAMES_MOST)
		return 0;
	if (grow(&site->names, &site->capacity, site->count + 1, sizeof(*copy)))
		return -ENOMEM;
	copy = &site->names[site->count];
	*copy = *name;
	copy->site = intern__text(announced->site_ids, id);
	if (!own(announced, &copy->function) || !own(announced, &copy->file))
		return -ENOMEM;
	site->count++;
	return 0;
}

static int note_line(struct announcements *announced, const struct stream_line *line)
{
	char *copy;

	if (line->type != RECORD_OBJECT_hello)
		return 0;
	copy = strdup(line->text);
	if (!copy)
		return -ENOMEM;
	free(announced->hello);
	announced->hello = copy;
	return 0;
}

int announcements__note(struct announcements *announced, const struct stream_event *event)
{
	switch (event->type) {
	case STREAM_LINE:
		return note_line(announced, &event->line);
	case STREAM_CLOCK:
		announced->clock = event->clock;
		return 0;
	case STREAM_THREAD:
		return note_thread(announced, &event->thread);
	case STREAM_STATE:
		return note_state(announced, &event->state);
	case STREAM_PLACE:
		return note_place(announced, &event->place);
	case STREAM_SEEN:
		return note_seen(announced, &event->seen);
	case STREAM_NAME:
		return note_name(announced, &event->name);
	case STREAM_HOST_CLOCK:
		announced->host_clock = event->host_clock;
		return own(announced, &announced->host_clock.host) ? 0 : -ENOMEM;
	case STREAM_BUNDLE:
	case STREAM_INTERFERENCE:
	case STREAM_FACTS:
	case STREAM_WINDOW:
	case STREAM_END:
	case STREAM_STAGE:
	case STREAM_HOP:
	case STREAM_ACCOUNT:
	case STREAM_INSIDE:
	case STREAM_GONE:
		break;
	}
	return 0;
}

const char *announcements__tunables(const struct announcements *announced)
{
	return announced->tunables;
}

const char *announcements__hello(const struct announcements *announced)
{
	return announced->hello;
}

struct stream_clock announcements__clock(const struct announcements *announced)
{
	return announced->clock;
}

const struct vapro_host_clock *announcements__host_clock(const struct announcements *announced)
{
	return announced->host_clock.host ? &announced->host_clock : NULL;
}

size_t announcements__threads(const struct announcements *announced)
{
	return announced->thread_count;
}

const struct vapro_thread *announcements__thread(const struct announcements *announced, uint32_t id)
{
	return id < announced->thread_count ? &announced->threads[id].about : NULL;
}

const struct vapro_place *announcements__place(const struct announcements *announced, uint32_t thread)
{
	return thread < announced->thread_count && announced->threads[thread].placed ? &announced->threads[thread].place
										     : NULL;
}

const struct stream_seen *announcements__seen(const struct announcements *announced, uint32_t thread)
{
	return thread < announced->thread_count && announced->threads[thread].watched ? &announced->threads[thread].seen
										      : NULL;
}

const struct vapro_state *announcements__state(const struct announcements *announced, uint32_t id)
{
	return id < announced->state_count ? &announced->states[id] : NULL;
}

const struct stream_name *announcements__names(const struct announcements *announced, const char *site, size_t *count)
{
	uint32_t id = intern__id(announced->site_ids, site);

	*count = id < announced->site_capacity ? announced->sites[id].count : 0;
	return *count ? announced->sites[id].names : NULL;
}
