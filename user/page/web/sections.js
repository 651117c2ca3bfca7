// SPDX-License-Identifier: GPL-2.0-or-later
// What the page says in words and tables.
"use strict";

const ROWS_FIRST = 20; // of a table, before "show all"

function plural(count, word) {
	return count + " " + word + (count === 1 ? "" : "s");
}

function badge(severity) {
	return make("span", "badge " + (/^[a-z]+$/.test(severity || "") ? severity : ""), severity || "");
}

function several() {
	return page.jobs.length > 1;
}

function fillHead() {
	const job = page.jobs[0];
	const mapped = page.maps.length ? "job " + page.maps[0].job : "no job"; // records without a window have no more
	byId("title").replaceChildren(user(several() ? plural(page.jobs.length, "job") : job ? job.title : mapped));
	const where = job && !several() ? plural(job.ranks, "rank") + (job.host ? " on host " + clean(job.host) : job.hosts ? " on " + plural(job.hosts, "host") : "") + ", " : "";
	document.title = "vapro report: " + byId("title").textContent;
	byId("subtitle").textContent = where + "watched for " + duration(page.seconds) + " from " + utc(0).slice(0, 19).replace("T", " ") + " UTC" +
		(page.source.runs > 1 ? " (run " + page.source.run + " of " + page.source.runs + ")" : "");
	const verdict = byId("verdict"), words = {quiet: "", "no result": ""};
	verdict.classList.add(page.level.replace(/[^a-z]/g, "-"));
	if (!(page.level in words))
		verdict.append(badge(page.level), ": ");
	verdict.append(user(page.verdict));
	byId("notes").append(...page.notes.map(note => make("p", "", user(note))));
	for (const one of page.jobs)
		addFacts(one);
	if (page.totals.sure || page.totals.unsure)
		addFact(duration(page.totals.sure_seconds), "lost in " + plural(page.totals.sure, "slow region") +
			(page.totals.unsure ? "; " + duration(page.totals.unsure_seconds) + " in " + page.totals.unsure + " suspected" : ""));
}

function addFact(number, text, className = "") {
	byId("facts").append(make("li", className, make("b", "", number), " " + text));
}

function addFacts(job) {
	if (several()) {
		addFact(plural(job.ranks, "rank"), "in " + clean(job.title) + ": " + percent(job.covered) + " of their time was evaluated" +
			(job.overhead_pct === null ? "" : ", overhead " + percent(job.overhead_pct / 100)), job.covered < 0.5 ? "low" : "");
		return;
	}
	addFact(percent(job.covered), "of the ranks' time was evaluated", job.covered < 0.5 ? "low" : "");
	if (job.overhead_pct !== null)
		addFact(percent(job.overhead_pct / 100), "overhead of the measurement");
	if (job.partial)
		addFact("only " + job.ranks + " of " + job.world, "ranks were seen: others may be slower or be waited for", "low");
}

function cell(row, content, className = "") {
	const data = make("td", className);
	if (content instanceof Node)
		data.append(content);
	else
		data.append(clean(content ?? ""));
	row.append(data);
	return data;
}

function clipped(text) {
	const element = make("div", "clip text", text ?? "");
	element.title = clean(text ?? "");
	return element;
}

function fillCauses() {
	const body = byId("causes-table").tBodies[0];
	for (const hang of page.hangs) {
		const row = make("tr", "");
		cell(row, badge(hang.severity));
		cell(row, clipped(hang.text + (several() && hang.job ? " [job " + hang.job + "]" : ""))).colSpan = 5;
		body.append(row);
	}
	for (const cause of page.causes) {
		const row = make("tr", "");
		cell(row, badge(cause.severity));
		cell(row, clipped(cause.text + (several() && cause.job ? " [job " + cause.job + "]" : "")));
		cell(row, duration(cause.lost), "number");
		cell(row, cause.caused ? duration(cause.caused) : "", "number");
		cell(row, percent(cause.share), "number");
		const links = make("td", "screen");
		for (const number of cause.numbers.slice(0, 6)) {
			const button = make("button", "", number);
			button.type = "button";
			button.setAttribute("aria-label", "region " + clean(number));
			button.addEventListener("click", () => choose(page.regions.find(region => region.number === number), true));
			links.append(button, " ");
		}
		if (cause.regions > 6)
			links.append("of " + cause.regions);
		row.append(links);
		body.append(row);
	}
	const none = byId("causes-none");
	if (!page.causes.length) {
		byId("causes-table").parentElement.hidden = !page.hangs.length;
		none.hidden = page.hangs.length > 0;
		none.textContent = !page.jobs.length ? "None is in the records." : page.level === "no result" ? "None can be named, because nothing could be evaluated." : "None: no slow region was found in what could be evaluated.";
	} else if (page.causes_more) {
		none.hidden = false;
		none.textContent = "and " + page.causes_more + (page.causes_more === 1 ? " smaller cause" : " smaller causes");
	}
}

// Whether a region is waiting for others.
function waited(region) {
	return region.waiting || (region.effect && region.class === "communication");
}

// Why a region is slow, in few words.
function causeText(region) {
	if (region.number.includes("."))
		return "waits for region " + region.number.split(".")[0];
	return (region.cause || "not known") + (region.culprit ? ": " + region.culprit : "");
}

let regionsShown = ROWS_FIRST;
let regionsBy = "loss";

function regionRow(region) {
	const row = make("tr", ""), button = make("button", "", region.number);
	button.type = "button";
	button.setAttribute("aria-label", "region " + clean(region.number) + ", details");
	row.dataset.number = region.number;
	cell(row, button, "short");
	cell(row, region.alarm ? badge(region.severity) : region.effect ? "effect" : region.sure ? "confirmed" : "suspected", "short");
	cell(row, waited(region) ? "waiting" : region.class, "short");
	cell(row, clock(region.begin), "short");
	cell(row, duration(region.end - region.begin) + (region.ended ? "" : " or more"), "number");
	cell(row, clipped(region.who));
	cell(row, clipped(region.sites.length ? region.sites[0].text : ""));
	cell(row, clipped(causeText(region)));
	cell(row, duration(region.lost), "number");
	cell(row, region.caused ? duration(region.caused) : "", "number");
	row.addEventListener("click", () => choose(region, true));
	return row;
}

function fillRegions() {
	const list = page.regions.slice(), totals = page.totals, body = byId("regions-table").tBodies[0];
	if (regionsBy === "time")
		list.sort((a, b) => a.begin - b.begin);
	body.replaceChildren(...list.slice(0, regionsShown).map(regionRow));
	byId("by-loss").parentElement.ariaSort = regionsBy === "loss" ? "descending" : "none";
	byId("by-time").parentElement.ariaSort = regionsBy === "time" ? "ascending" : "none";
	const more = byId("more");
	more.hidden = list.length <= regionsShown;
	more.textContent = "show all " + list.length;
	byId("regions-sum").textContent = !list.length ? "None." : plural(list.length, "region") + ", worst first; what waited for a region follows it. Lost: " +
		duration(totals.sure_seconds) + " in " + plural(totals.sure, "slow region") + (totals.unsure ? ", " + duration(totals.unsure_seconds) + " in " + totals.unsure + " suspected" : "") + "." +
		(page.regions_more ? " The page has the worst " + list.length + "; " + page.regions_more + " more are in the input." : "");
	byId("regions-table").parentElement.hidden = !list.length;
	markChosen();
}

function markChosen() {
	for (const row of byId("regions-table").tBodies[0].rows) {
		const is = Boolean(chosen) && row.dataset.number === chosen.number;
		row.classList.toggle("chosen", is);
		if (is)
			row.setAttribute("aria-current", "true");
		else
			row.removeAttribute("aria-current");
	}
}

// The factors below a parent as a tree of bars; shares are of the loss of their level.
function factorTree(region, parent) {
	const list = make("ul", parent ? "" : "tree");
	for (const factor of region.factors) {
		if ((factor.parent || null) !== parent || (Math.abs(factor.share || 0) < 0.005 && !factor.major))
			continue;
		const item = make("li", factor.major ? "" : "minor"), bar = make("span", "bar");
		bar.style.width = Math.round(160 * Math.min(1, Math.max(0, factor.share || 0))) + "px";
		bar.setAttribute("aria-hidden", "true");
		item.append(bar, make("b", "", ((factor.share || 0) * 100).toFixed(0) + " % " + factor.name), ": ",
			user((factor.meaning || "") + (factor.seconds ? ", " + duration(factor.seconds) : "") + (factor.approx ? " (approximate)" : "")));
		const below = factorTree(region, factor.name);
		if (below)
			item.append(below);
		list.append(item);
	}
	return list.children.length ? list : null;
}

function listOf(items, write) {
	const list = make("ul", "");
	for (const item of items)
		list.append(make("li", "", user(write(item))));
	return list;
}

function addDetail(list, name, content) {
	if (!content || (Array.isArray(content) && !content.length))
		return;
	list.append(make("dt", "", name), make("dd", "", content instanceof Node ? content : user(content)));
}

// `inside`: the functions where a slow computation spent its time, as far as the records have them.
function insideText(item) {
	return (item.pct_of_samples === undefined ? "" : percent(item.pct_of_samples / 100) + " ") + "in " + (item.source || item.function || "?") + (item.samples ? ", " + plural(item.samples, "sample") : "");
}

// The waiting for a region by those who waited: together no more than what is attributed to it.
function impacts(region, effects) {
	const sums = [], total = effects.reduce((all, effect) => all + effect.lost, 0);
	for (const effect of effects) {
		let sum = sums.find(one => one.waiters === effect.waiters && one.class === effect.class);
		if (!sum)
			sums.push(sum = { waiters: effect.waiters, class: effect.class, numbers: [], seconds: 0 });
		sum.numbers.push(effect.number);
		sum.seconds += effect.lost * Math.min(1, region.caused / total);
	}
	return sums;
}

function fillDetail() {
	const section = byId("detail"), list = byId("detail-list"), region = chosen;
	section.hidden = !region;
	if (!region)
		return;
	byId("detail-head").replaceChildren("Region " + clean(region.number) + ": ", user((waited(region) ? "waiting" : region.class) + " of " + region.who));
	list.replaceChildren();
	addDetail(list, "verdict", region.verdict);
	addDetail(list, "loss", duration(region.lost) + (waited(region) ? " waited" : " lost" + (region.speed === null ? "" : ", " +
		(region.speed < 0.005 ? "without progress" : region.work_unknown ? "able to run for " + percent(region.speed) + " of the time" : "at " + percent(region.speed) + " of the best observed speed"))) +
		(region.alarm ? "; severity " + region.severity : ""));
	addDetail(list, "when", utc(region.begin).slice(0, 21).replace("T", " ") + " to " + clock(region.end) + " UTC: " + (region.begin > 0 ? duration(region.begin) + " after the start" : "from the start") + ", for " + duration(region.end - region.begin) +
		(region.ended ? "" : ", and not over when last seen"));
	addDetail(list, "not seen", region.unseen);
	addDetail(list, "ranks", region.ranks === "?" ? "not known" : region.ranks + (region.hosts && region.hosts.length ? " on " + region.hosts.slice(0, 8).join(", ") + (region.hosts.length > 8 ? " and " + (region.hosts.length - 8) + " more hosts" : "") : ""));
	addDetail(list, "shared by them", (region.shared || []).map(one => one.fact + " " + one.value).join(", "));
	if (region.sites.length)
		addDetail(list, "where", listOf(region.sites, site => site.text + (site.lost === null ? "" : ": " + duration(site.lost) + " lost") +
			(site.ratio ? ", " + site.ratio.toFixed(2) + " times as long" : "")));
	if (Array.isArray(region.inside) && region.inside.length)
		addDetail(list, "inside", listOf(region.inside, insideText));
	addDetail(list, "why", waited(region) ? "waiting; the reason is elsewhere" : factorTree(region, null) || "unknown: too few fragments for a diagnosis");
	if (region.interferers.length)
		addDetail(list, "interference", listOf(region.interferers, task => task.comm + (task.pid ? " (pid " + task.pid + (task.relation ? ", " + task.relation : "") + ")" : "") +
			" took " + duration(task.seconds) + " of CPU time"));
	if (region.class === "communication" && (region.culprits || []).length)
		addDetail(list, "late ranks", listOf(region.culprits, one => "rank " + one.rank + ": " + duration(one.lost_seconds) + " lost, " + duration(one.wait_seconds) + " waited"));
	const effects = page.regions.filter(one => one.number.startsWith(region.number + ".") && one.waiters);
	if (effects.length && region.caused)
		addDetail(list, "impact on others", listOf(impacts(region, effects), one => one.numbers.join(", ") + ": " + one.waiters + " waited " + duration(one.seconds) + " for it (" + one.class + ")"));
	else if (region.caused)
		addDetail(list, "impact on others", "others waited " + duration(region.caused) + " for it");
	addDetail(list, "confidence", region.confidence + (region.evidence ? ": " + region.evidence : ""));
	addDetail(list, "suggestion", region.advice);
	if (region.exemplars.length)
		addDetail(list, "slowest examples", listOf(region.exemplars, one => (one.rank === null ? "" : "rank " + one.rank + ", ") + clock(one.start) + " for " + duration(one.seconds) +
			(one.state ? ": " + one.state : "")));
}

// A column whose cells are all empty is hidden.
function hideEmptyColumns(table) {
	const rows = [...table.tBodies[0].rows];
	[...table.tHead.rows[0].cells].forEach((head, at) => {
		head.hidden = rows.every(row => !row.cells[at].textContent);
		for (const row of rows)
			row.cells[at].hidden = head.hidden;
	});
}

let statesShown = ROWS_FIRST;

function fillStates() {
	const body = byId("states-table").tBodies[0], list = page.states.slice(0, statesShown);
	body.replaceChildren();
	for (const state of list) {
		const row = make("tr", "");
		cell(row, clipped(state.text));
		cell(row, state.class, "short");
		cell(row, state.fragments ? grouped(state.fragments) : "", "number");
		for (const seconds of [state.seconds, state.seconds / state.fragments, state.least, state.most])
			cell(row, state.fragments ? duration(seconds) : "", "number");
		cell(row, state.lost ? duration(state.lost) : "", "number");
		cell(row, state.ratio ? state.ratio.toFixed(2) : "", "number");
		cell(row, state.regions || "", "number");
		cell(row, state.unknown ? duration(state.unknown) : "", "number");
		cell(row, state.reason);
		cell(row, state.finding, "short");
		body.append(row);
	}
	byId("more-states").hidden = page.states.length <= list.length;
	byId("more-states").textContent = "show all " + page.states.length;
	hideEmptyColumns(byId("states-table"));
	byId("states-what").hidden = !page.states.length;
	byId("states-what").textContent = (page.states_all ? "All calls, and the computation between two calls; those in which most time was lost first." :
		"Calls, and the computation between two calls, of which the records say that time was lost in them, that their time could not be evaluated, or that something else was found. A page of a capture has all states, with their time.") +
		(page.states_more ? " " + page.states_more + " more are not listed: less was lost in them." : "");
	byId("states-table").parentElement.hidden = !page.states.length;
	byId("states-none").hidden = page.states.length > 0;
	byId("states-none").textContent = page.states_all ? "None was observed: no call, and no computation between two calls." : "The records say nothing of any state.";
}

const PICTURES_MOST = 6; // workloads whose durations are drawn: those with most time

function drawn(name, attributes, text) {
	const element = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes))
		element.setAttribute(key, value);
	if (text !== undefined)
		element.textContent = text;
	return element;
}

// The durations of a workload: a line from the 5th to the 95th percentile of each rank, and its median.
function durationsPicture(ranks) {
	const left = 70, right = 10, top = 8, bottom = 24, width = 760, height = 150;
	const most = Math.max(...ranks.map(rank => rank[3])) * 1.05 || 1;
	const x = at => left + (width - left - right) * (at + 0.5) / ranks.length, y = seconds => top + (height - top - bottom) * (1 - seconds / most);
	const picture = drawn("svg", {viewBox: "0 0 " + width + " " + height, class: "durations", role: "img"});
	for (let i = 0; i <= 2; i++) {
		picture.append(drawn("path", {d: "M" + left + " " + y(most * i / 2) + "H" + (width - right), class: "grid"}));
		picture.append(drawn("text", {x: left - 6, y: y(most * i / 2) + 4, "text-anchor": "end"}, i ? duration(most * i / 2) : "0"));
	}
	const labels = Math.max(1, Math.ceil(ranks.length / 16));
	ranks.forEach(([rank, low, middle, high], at) => {
		const mark = drawn("g", {});
		mark.append(drawn("title", {}, "rank " + (rank < 0 ? "?" : rank) + ": " + duration(low) + ", " + duration(middle) + ", " + duration(high)));
		mark.append(drawn("path", {d: "M" + x(at) + " " + y(low) + "V" + y(high), class: "range", "stroke-width": Math.max(1, Math.min(6, 500 / ranks.length))}));
		mark.append(drawn("circle", {cx: x(at), cy: y(middle), r: ranks.length > 100 ? 1.5 : 3}));
		picture.append(mark);
		if (at % labels === 0)
			picture.append(drawn("text", {x: x(at), y: height - 8, "text-anchor": "middle"}, rank < 0 ? "?" : rank));
	});
	return picture;
}

function drawDurations() {
	for (const one of page.variability.filter(workload => workload.ranks.length).slice(0, PICTURES_MOST)) {
		const figure = make("figure", "");
		figure.append(make("figcaption", "", user(one.text), ": time of one execution by rank, 5th to 95th percentile and median"), durationsPicture(one.ranks));
		byId("durations").append(figure);
	}
}

function fillVariability() {
	const body = byId("variability-table").tBodies[0];
	for (const one of page.variability) {
		const row = make("tr", "");
		cell(row, clipped(one.text + (several() && one.job ? " [job " + one.job + "]" : "")));
		cell(row, one.class, "short");
		cell(row, one.kind, "short");
		cell(row, one.origin, "short");
		cell(row, duration(one.seconds), "number");
		for (const share of [one.temporal, one.worst, one.slowest, one.between])
			cell(row, share === null ? "" : percent(share), "number");
		cell(row, one.rv === null ? "" : one.rv.toFixed(1) + " \u00b1 " + one.rv_error.toFixed(1), "number");
		cell(row, clipped(one.note));
		body.append(row);
	}
	hideEmptyColumns(byId("variability-table"));
	byId("variability").hidden = !page.variability.length;
	drawDurations();
}

function fillProfile(all) {
	const table = byId("profile-table"), body = table.tBodies[0], profile = page.profile;
	if (!body.rows.length)
		for (const name of profile.functions)
			table.tHead.rows[0].append(make("th", "number", user(name)));
	body.replaceChildren();
	for (const rank of profile.ranks.slice(0, all ? profile.ranks.length : ROWS_FIRST)) {
		const row = make("tr", "");
		cell(row, (several() && rank.job ? clean(rank.job) + ": " : "") + (rank.rank < 0 ? "pid " + rank.pid : rank.rank), "number");
		cell(row, user(rank.host || ""), "short");
		for (const seconds of [rank.seconds, rank.computation, rank.communication, rank.waiting, rank.io, rank.not_seen, ...rank.functions])
			cell(row, seconds ? duration(seconds) : "", "number");
		body.append(row);
	}
	byId("more-profile").hidden = all || profile.ranks.length <= ROWS_FIRST;
	byId("more-profile").textContent = "show all " + profile.ranks.length + (profile.more ? " (and " + profile.more + " more are in the records)" : "");
	byId("profile").hidden = !profile.ranks.length;
}

function fillFindings() {
	for (const finding of page.findings)
		byId("findings").append(make("li", "", make("b", "", finding.kind + ": "), user(finding.text)));
	for (const text of page.chosen)
		byId("findings").append(make("li", "", make("b", "", "chosen by hand: "), user(text)));
}

function fillCoverage() {
	const place = byId("coverage-list"), observer = page.observer;
	for (const job of page.jobs) {
		if (several())
			place.append(make("h3", "", user(job.title)));
		const classes = job.classes.filter(one => one.covered > 0).map(one => one.class + " " + percent(one.covered)).join(", ");
		const speeds = job.classes.filter(one => one.class !== "communication" && one.speed !== null && one.covered >= 0.01);
		const waiting = job.classes.find(one => one.class === "communication" && one.speed !== null && one.covered >= 0.01);
		const list = make("ul", "");
		list.append(make("li", "", make("b", "", percent(job.covered)), " of the ranks' time was evaluated" + (classes ? ": " + classes : "") + ". " + grouped(job.fragments) + " fragments." +
			(speeds.length ? " Average speed: " + speeds.map(one => one.class + " " + percent(one.speed)).join(", ") + " of the best observed." : "") +
			(waiting ? " Waiting: " + percent(1 - waiting.speed) + " of the evaluated time in communication." : "") +
			(job.unseen_seconds === null ? "" : " No rank was unseen for longer than " + duration(job.unseen_seconds) + (job.unseen_rank < 0 ? "." : " (rank " + job.unseen_rank + ")."))));
		for (const gap of job.gaps.slice().sort((a, b) => b.share - a.share)) {
			const item = make("li", "", make("b", "", percent(gap.share)), " not evaluated: ", user(gap.text));
			if (gap.state && gap.state_share >= 0.02)
				item.append("; most: ", user(gap.state), ", " + percent(gap.state_share));
			item.append(". What would help: ", user(gap.help), ".");
			list.append(item);
		}
		for (const loss of job.losses)
			list.append(make("li", loss.lost ? "" : "soft", loss.lost ? plural(loss.count, "fragment") + " lost: " : loss.count + " ", user(loss.text)));
		if (job.small_regions)
			list.append(make("li", "", plural(job.small_regions, "slow region") + " of too little weight to be listed, " + duration(job.small_seconds) + " lost"));
		if (job.partial)
			list.append(make("li", "", "Only " + job.ranks + " of " + job.world + " ranks were seen: others may be slower or be waited for."));
		list.append(make("li", "", job.overhead_pct === null ? "The overhead is not known: the input does not have it." :
			make("span", "", make("b", "", percent(job.overhead_pct / 100)), " of the job's time was overhead of the measurement, of the worst process " + percent(job.overhead_most_pct / 100) +
			(observer.cpu_pct === null ? "" : "; the daemon used " + observer.cpu_pct.toFixed(2) + " % of one CPU"))));
		place.append(list);
	}
	const facts = make("ul", "");
	if (observer.shows) {
		facts.append(make("li", "", "A running vaprod was read: the page shows what it retained at " + clean(page.created).slice(0, 19).replace("T", " ") + " UTC, the last " +
			duration(page.seconds) + (observer.shows === "own" ? ", of the jobs of one user" : "") + ". What was slow before and has ended is not in it; the output of vaprod (--output) has the whole run."));
		if (observer.left_out)
			facts.append(make("li", "", plural(observer.left_out, "slow region") + " that vaprod does not retain " + (observer.left_out === 1 ? "is" : "are") + " not in it."));
	}
	if (observer.no_counters)
		facts.append(make("li", "", "No hardware counters: ", user(observer.no_counters)));
	if (observer.workload_source)
		facts.append(make("li", "", "Equal work is identified by ", user(observer.workload_source), "."));
	if (observer.lost_lines)
		facts.append(make("li", "", plural(observer.lost_lines, "record") + " lost because the output could not be written."));
	if (page.source.bad_lines)
		facts.append(make("li", "", plural(page.source.bad_lines, "bad line") + " of the input " + (page.source.bad_lines === 1 ? "was" : "were") + " refused."));
	if (page.source.cut)
		facts.append(make("li", "", "A capture was cut short: what came after the cut is missing."));
	if (!page.jobs.length)
		facts.append(make("li", "", page.maps.length ? "The input has no window records: how much was evaluated, and why not, is not known." : "No job was watched long enough for a window."));
	if (facts.children.length)
		place.append(facts);
	for (const warning of page.warnings)
		byId("warnings").append(make("li", "", make("b", "", "warning " + warning.code), (warning.count > 1 ? " (" + warning.count + " times)" : "") + ": ", user(warning.text)));
	if (page.warnings_more)
		byId("warnings").append(make("li", "", "and " + plural(page.warnings_more, "more warning or record", "")));
	byId("foot").replaceChildren("vapro " + clean(page.version) + ", page of " + clean(page.created).slice(0, 19).replace("T", " ") + " UTC, from " + clean(page.source.kind) + ": ",
		user(page.source.files.join(", ")), observer.kernel ? "; kernel " + clean(observer.kernel) : "", observer.exit_reason ? "; the run ended: " + clean(observer.exit_reason) : "; the end of the run is not in it");
}
