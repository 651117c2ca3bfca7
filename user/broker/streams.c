// SPDX-License-Identifier: GPL-2.0-or-later
#include "broker/streams.h"

#include <stdio.h>

static const char *const stream_names[WIRE_ROLES] = {
    [WIRE_IN] = "vapro_in", [WIRE_OUT] = "vapro_out", [WIRE_STATE] = "vapro_state"};

const char *broker__stream(enum wire_role role)
{
	return stream_names[role];
}

natsStatus broker__find_stream(jsCtx *context, enum wire_role role, char *name, size_t size)
{
	jsStreamNamesList *names = NULL;
	char filter[WIRE_SUBJECT_MAX];
	jsErrCode code = 0;
	jsOptions options;
	natsStatus status;

	jsOptions_Init(&options);
	wire__filter(filter, sizeof(filter), role, NULL, NULL, NULL);
	options.Stream.Info.SubjectsFilter = filter;
	status = js_StreamNames(&names, context, &options, &code);
	if (status == NATS_OK && names->Count < 1)
		status = NATS_NOT_FOUND;
	if (status == NATS_OK)
		snprintf(name, size, "%s", names->List[0]);
	jsStreamNamesList_Destroy(names);
	return status;
}

natsStatus broker__create_stream(jsCtx *context, enum wire_role role, int replicas)
{
	static const char *const words[WIRE_ROLES] = {[WIRE_IN] = "in", [WIRE_OUT] = "out", [WIRE_STATE] = "state"};
	char subjects[64];
	const char *list[] = {subjects};
	jsStreamInfo *info = NULL;
	jsStreamConfig config;
	jsErrCode code = 0;
	natsStatus status;

	if (!stream_names[role])
		return NATS_INVALID_ARG;
	status = js_GetStreamInfo(&info, context, stream_names[role], NULL, &code);
	jsStreamInfo_Destroy(info);
	if (status != NATS_NOT_FOUND)
		return status;
	jsStreamConfig_Init(&config);
	snprintf(subjects, sizeof(subjects), WIRE_PREFIX ".%s.>", words[role]);
	config.Name = stream_names[role];
	config.Subjects = list;
	config.SubjectsLen = 1;
	config.Retention = js_LimitsPolicy;
	config.Storage = js_FileStorage;
	config.Discard = js_DiscardOld;
	config.MaxAge = STREAM_AGE_NS;
	config.MaxMsgSize = STREAM_MESSAGE_BYTES;
	config.Duplicates = STREAM_DUPLICATES_NS;
	config.Replicas = replicas;
	/* a broker whose store is smaller refuses more than that */
	for (config.MaxBytes = STREAM_BYTES; config.MaxBytes >= STREAM_LEAST_BYTES; config.MaxBytes /= 4) {
		status = js_AddStream(NULL, context, &config, NULL, &code);
		if (code != JSInsufficientResourcesErr && code != JSStorageResourcesExceededErr)
			break;
	}
	/* another was first, or the site has one of another name */
	return code == JSStreamNameExistErr || code == JSStreamSubjectOverlapErr ? NATS_OK : status;
}
