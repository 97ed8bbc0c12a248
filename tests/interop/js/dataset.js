"use strict";
// The items of all query tests, and helpers that compute the expected results in plain JavaScript.
//
// READINGS are in a container with five partitions under 23 keys. `mixed` has every JSON type in turn, and is missing
// from one item in eight. Expected results are computed from this list and never typed by hand.

const { count } = require("./support");

const RANGES = 5;
const THROUGHPUT = 6000 * RANGES;
const KINDS = ["humidity", "pressure", "temperature"];
const TAGS = ["cold", "new", "loud", "blue", "far"];
const POLICY = {
  indexingMode: "consistent",
  includedPaths: [{ path: "/*" }],
  compositeIndexes: [
    [{ path: "/kind", order: "ascending" }, { path: "/metric", order: "descending" }],
    [{ path: "/floor", order: "ascending" }, { path: "/n", order: "ascending" }],
  ],
};

function reading(n) {
  const item = {
    id: String(n).padStart(4, "0"),
    pk: `device ${n % 23}`,
    n,
    metric: ((n * 37) % 101) / 4,
    kind: KINDS[n % 3],
    floor: n % 5,
    on: n % 2 === 0,
    tags: count(n % 4).map((step) => TAGS[(n + step) % 5]),
    place: { city: `city ${n % 7}`, geo: { x: n % 10, y: -n } },
    parts: count(n % 3).map((step) => ({ name: `part ${n % 3}`, grams: n * step })),
  };
  if (n % 8) item.mixed = [null, false, true, n / 2, `text ${n % 40}`, [n], { n }][(n % 8) - 1];
  return item;
}

const READINGS = count(240).map(reading);
const ONE_KEY = "device 7";
const OF_ONE_KEY = READINGS.filter((item) => item.pk === ONE_KEY);

async function load(container, items = READINGS) {
  for (let at = 0; at < items.length; at += 40) {
    await Promise.all(items.slice(at, at + 40).map((item) => container.items.create(item)));
  }
}

/** READINGS in five partitions. */
async function readings(world) {
  const container = await world.make("/pk", { throughput: THROUGHPUT, indexingPolicy: POLICY });
  await load(container);
  return container;
}

/** The sort key of a value in ORDER BY: its type first. All arrays are equal, and so are all objects. */
function rank(value) {
  if (value === undefined) return [0, 0];
  if (value === null) return [1, 0];
  if (typeof value === "boolean") return [2, Number(value)];
  if (typeof value === "number") return [3, value];
  if (typeof value === "string") return [4, value];
  return Array.isArray(value) ? [5, 0] : [6, 0];
}

function compare(a, b) {
  const [x, y] = [rank(a), rank(b)];
  const at = x[0] === y[0] ? 1 : 0;
  return x[at] < y[at] ? -1 : x[at] > y[at] ? 1 : 0;
}

/** Sorted by these keys, each [value of an item, whether it is descending]. */
function inOrder(items, keys) {
  const order = (a, b) => {
    for (const [value, descends] of keys) {
      const result = compare(value(a), value(b));
      if (result) return descends ? -result : result;
    }
    return 0;
  };
  return [...items].sort(order);
}

/** For results whose order is not guaranteed: equal lists if each value occurs equally often. */
const bag = (values) => values.map(canonical).sort();

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "undefined";
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)}}`;
}

function groups(items, key, row) {
  const found = new Map();
  for (const item of items) {
    const name = canonical(key(item));
    found.set(name, [...(found.get(name) ?? []), item]);
  }
  return [...found.values()].map((members) => row(key(members[0]), members));
}

const sum = (items, value) => items.reduce((total, item) => total + value(item), 0);

module.exports = { KINDS, OF_ONE_KEY, ONE_KEY, POLICY, RANGES, READINGS, THROUGHPUT, bag, compare, groups, inOrder, load, readings, sum };
