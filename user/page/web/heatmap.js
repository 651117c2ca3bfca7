// SPDX-License-Identifier: GPL-2.0-or-later
// The cells of one class of a job, in an order of rows, reduced to pixels. NONE is a cell that was not evaluated, other
// cells are percent. Reduced copies are made of blocks of cells when they are first needed.
"use strict";

const NONE = 255;
const LEVELS_MOST = 6;

class HeatMap {
	constructor(map) {
		this.map = map;
		this.rows = map.rows.map((row, index) => ({rank: row[0], thread: row[1], pid: row[2], host: page.hosts[row[3]], hostIndex: row[3], index}));
		this.columns = map.parts.reduce((sum, part) => sum + part[1], 0);
		this.begins = new Float64Array(this.columns + 1);
		this.weights = new Uint32Array(this.columns);
		let at = 0;
		for (const [begin, columns, bins] of map.parts) {
			for (let i = 0; i < columns; i++) {
				this.weights[at] = bins;
				this.begins[at++] = begin + i * bins * map.bin;
			}
		}
		this.begins[at] = map.end;
		this.hasThreads = this.rows.some(row => row.thread >= 0);
		this.coarse = map.parts.some(part => part[2] > 1);
		this.order = [];
		this.levels = new Map();
		this.ready = null;
	}

	load() {
		if (!this.ready)
			this.ready = this.unpack();
		return this.ready;
	}

	async unpack() {
		const length = this.rows.length * this.columns;
		this.worst = await unpack(this.map.worst, length);
		this.means = this.map.mean ? await unpack(this.map.mean, length) : null;
		// 0 is none, so one less is the percentage, and none the greatest
		for (let i = 0; i < length; i++)
			this.worst[i]--;
		for (let i = 0; this.means && i < length; i++)
			this.means[i] = this.means[i] ? this.means[i] - 1 : this.worst[i];
		if (!this.means)
			this.means = this.worst;
		this.sumUp();
		this.sort("host", false);
	}

	// Seconds lost of each row, and ranks lost in each column; of threads only the sum of their rank counts.
	sumUp() {
		const lost = new Float64Array(102);
		for (let v = 0; v <= 100; v++)
			lost[v] = this.map.rounded && !this.map.waiting && v >= 95 ? 0 : (100 - v) / 100;
		this.rowLoss = new Float64Array(this.rows.length);
		this.columnLoss = new Float64Array(this.columns);
		for (const row of this.rows) {
			const base = row.index * this.columns, rank = row.thread < 0;
			let sum = 0;
			for (let c = 0; c < this.columns; c++) {
				const value = this.means[base + c];
				if (value === NONE)
					continue;
				sum += lost[value] * (this.begins[c + 1] - this.begins[c]);
				if (rank)
					this.columnLoss[c] += lost[value];
			}
			this.rowLoss[row.index] = sum;
		}
	}

	sort(by, threads) {
		const rows = this.rows.filter(row => threads || row.thread < 0);
		const first = new Map();
		for (const row of this.rows)
			if (!first.has(row.hostIndex))
				first.set(row.hostIndex, first.size);
		if (by === "host")
			rows.sort((a, b) => first.get(a.hostIndex) - first.get(b.hostIndex) || a.index - b.index);
		else if (by === "loss")
			rows.sort((a, b) => this.rowLoss[b.index] - this.rowLoss[a.index] || a.index - b.index);
		this.order = rows;
		this.by = by;
		this.levels.clear();
		this.places = new Map();
		rows.forEach((row, at) => {
			if (!this.places.has(row.rank))
				this.places.set(row.rank, []);
			this.places.get(row.rank).push(at);
		});
		this.boxes = new Map();
	}

	columnAt(time) {
		let low = 0, high = this.columns - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (this.begins[middle] <= time)
				low = middle;
			else
				high = middle - 1;
		}
		return low;
	}

	// Blocks of 2^down rows and 2^right columns: the least value, or sum and weight for means.
	level(mean, down, right) {
		const key = (mean ? "m" : "w") + down + "," + right;
		let level = this.levels.get(key);
		if (level)
			return level;
		const columns = ((this.columns - 1) >> right) + 1, rows = ((this.order.length - 1) >> down) + 1;
		level = {columns, rows};
		if (mean) {
			level.sums = new Uint32Array(rows * columns);
			level.counts = new Uint32Array(rows * columns);
		} else {
			level.least = new Uint8Array(rows * columns).fill(NONE);
		}
		for (let i = 0; i < this.order.length; i++) {
			const base = this.order[i].index * this.columns, to = (i >> down) * columns;
			if (mean) {
				for (let c = 0; c < this.columns; c++) {
					const value = this.means[base + c];
					if (value !== NONE) {
						level.sums[to + (c >> right)] += value * this.weights[c];
						level.counts[to + (c >> right)] += this.weights[c];
					}
				}
			} else {
				const least = level.least, worst = this.worst;
				for (let c = 0; c < this.columns; c++) {
					const value = worst[base + c], at = to + (c >> right);
					if (value < least[at])
						least[at] = value;
				}
			}
		}
		if (this.levels.size >= LEVELS_MOST)
			this.levels.delete(this.levels.keys().next().value);
		this.levels.set(key, level);
		return level;
	}

	// The columns of width pixels between two times: [from, to) each.
	spans(count, first, last, find) {
		const from = new Int32Array(count), to = new Int32Array(count);
		const step = (last - first) / count;
		for (let i = 0; i < count; i++) {
			const begin = find(first + i * step), middle = find(first + (i + 0.5) * step), end = find(first + (i + 1) * step - step * 1e-6);
			// where cells are larger than pixels each pixel has one cell
			from[i] = end - begin <= 1 ? middle : begin;
			to[i] = (end - begin <= 1 ? middle : end) + 1;
		}
		return [from, to];
	}

	// Values of width x height pixels of the part: percent, or NONE.
	reduce(mean, part, width, height) {
		const [left, right] = this.spans(width, part.t0, part.t1, time => time < this.begins[0] || time >= this.begins[this.columns] ? -1 : this.columnAt(time));
		const [top, bottom] = this.spans(height, part.r0, part.r1, row => Math.min(this.order.length - 1, Math.max(0, Math.floor(row))));
		const rowsPer = (part.r1 - part.r0) / height, columnsPer = (right[width - 1] - left[0]) / width;
		const downShift = rowsPer >= 2 ? Math.floor(Math.log2(rowsPer)) : 0, rightShift = columnsPer >= 2 ? Math.floor(Math.log2(columnsPer)) : 0;
		const level = downShift || rightShift ? this.level(mean, downShift, rightShift) : null;
		const columns = level ? level.columns : this.columns;
		const out = new Uint8Array(width * height).fill(NONE);
		const low = Math.max(0, left.find(column => column >= 0) ?? 0) >> rightShift, high = Math.max(0, ...right.map(column => column - 1)) >> rightShift;
		const line = new Uint8Array(columns), sums = mean ? new Float64Array(columns) : null, counts = mean ? new Float64Array(columns) : null;
		let lastTop = -1, lastBottom = -1;
		for (let y = 0; y < height; y++) {
			const r0 = top[y] >> downShift, r1 = (bottom[y] - 1) >> downShift;
			if (r0 === lastTop && r1 === lastBottom) {
				out.copyWithin(y * width, (y - 1) * width, y * width);
				continue;
			}
			lastTop = r0;
			lastBottom = r1;
			if (mean)
				this.sumRows(level, r0, r1, low, high, columns, sums, counts);
			else
				this.leastRows(level, r0, r1, low, high, columns, line);
			for (let x = 0; x < width; x++) {
				if (left[x] < 0)
					continue;
				const c0 = left[x] >> rightShift, c1 = (right[x] - 1) >> rightShift;
				let value = NONE;
				if (mean) {
					let sum = 0, count = 0;
					for (let c = c0; c <= c1; c++) {
						sum += sums[c];
						count += counts[c];
					}
					value = count ? Math.round(sum / count) : NONE;
				} else {
					for (let c = c0; c <= c1; c++)
						if (line[c] < value)
							value = line[c];
				}
				out[y * width + x] = value;
			}
		}
		return out;
	}

	leastRows(level, r0, r1, low, high, columns, line) {
		for (let r = r0; r <= r1; r++) {
			const from = level ? level.least : this.worst, base = (level ? r : this.order[r].index) * columns;
			if (r === r0) {
				line.set(from.subarray(base + low, base + high + 1), low);
				continue;
			}
			for (let c = low; c <= high; c++)
				if (from[base + c] < line[c])
					line[c] = from[base + c];
		}
	}

	sumRows(level, r0, r1, low, high, columns, sums, counts) {
		sums.fill(0);
		counts.fill(0);
		for (let r = r0; r <= r1; r++) {
			const base = (level ? r : this.order[r].index) * columns;
			for (let c = low; c <= high; c++) {
				if (level) {
					sums[c] += level.sums[base + c];
					counts[c] += level.counts[base + c];
				} else if (this.means[base + c] !== NONE) {
					sums[c] += this.means[base + c] * this.weights[c];
					counts[c] += this.weights[c];
				}
			}
		}
	}

	value(row, time) {
		if (row < 0 || row >= this.order.length || time < this.begins[0] || time >= this.begins[this.columns])
			return NONE;
		return this.worst[this.order[row].index * this.columns + this.columnAt(time)];
	}

	// The rows of a region as runs [first, end) in the present order.
	boxesOf(region) {
		let boxes = this.boxes.get(region);
		if (boxes)
			return boxes;
		const places = [];
		for (const [first, last] of ranges(region.ranks)) {
			for (let rank = first; rank <= last; rank++)
				places.push(...(this.places.get(rank) || []));
		}
		places.sort((a, b) => a - b);
		boxes = [];
		for (const place of places) {
			if (boxes.length && boxes[boxes.length - 1][1] === place)
				boxes[boxes.length - 1][1]++;
			else
				boxes.push([place, place + 1]);
		}
		this.boxes.set(region, boxes);
		return boxes;
	}
}
