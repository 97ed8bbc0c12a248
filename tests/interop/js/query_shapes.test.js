"use strict";
// Queries with every clause, over five partitions and over one key (S102, S104, S105 to S110).

const assert = require("node:assert/strict");
const { before, describe, test } = require("node:test");
const { OF_ONE_KEY, ONE_KEY, RANGES, READINGS, bag, groups, inOrder, readings, sum } = require("./dataset");
const { overBoth, plain, refused } = require("./support");

const named = (parameters) => Object.entries(parameters).map(([name, value]) => ({ name: `@${name}`, value }));

// filter, parameters, and the same filter in JavaScript
const FILTERS = [
  ["c.n = 17", {}, (c) => c.n === 17],
  ["c.metric > 20", {}, (c) => c.metric > 20],
  ["c.metric >= 5 AND c.metric < 10", {}, (c) => c.metric >= 5 && c.metric < 10],
  ["c.metric BETWEEN 5 AND 10", {}, (c) => c.metric >= 5 && c.metric <= 10],
  ["c.kind != 'pressure' AND NOT c.on", {}, (c) => c.kind !== "pressure" && !c.on],
  ["c.kind IN ('humidity', 'pressure') OR c.n < 9", {}, (c) => c.kind !== "temperature" || c.n < 9],
  ["c.place.city = 'city 3' AND c['place'].geo[\"x\"] > 4", {}, (c) => c.place.city === "city 3" && c.place.geo.x > 4],
  ["ARRAY_CONTAINS(c.tags, 'cold') AND ARRAY_LENGTH(c.tags) > 1", {}, (c) => c.tags.includes("cold") && c.tags.length > 1],
  ["STARTSWITH(c.id, '01')", {}, (c) => c.id.startsWith("01")],
  ["c.id LIKE '%7_'", {}, (c) => c.id[2] === "7"],
  ["NOT IS_DEFINED(c.mixed)", {}, (c) => c.mixed === undefined],
  ["IS_NULL(c.mixed) OR IS_OBJECT(c.mixed)", {}, (c) => typeof c.mixed === "object" && !Array.isArray(c.mixed)],
  ["(c.on ? c.n : -c.n) > 230", {}, (c) => c.on && c.n > 230],
  ["(c.mixed ?? 'none') = 'none'", {}, (c) => c.mixed === undefined],
  ["c.pk = @pk", { pk: ONE_KEY }, (c) => c.pk === ONE_KEY],
  ["c.n > @least AND c.kind = @kind", { least: 100, kind: "humidity" }, (c) => c.n > 100 && c.kind === "humidity"],
  ["ARRAY_CONTAINS(@wanted, c.n)", { wanted: [2, 3, 5] }, (c) => [2, 3, 5].includes(c.n)],
  ["EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.grams > @most)", { most: 100 }, (c) => c.parts.some((p) => p.grams > 100)],
  ["c.n = 1000", {}, () => false],
];

// text, and the rows that it returns for one item
const ROWS = [
  ["SELECT c.id, c.n FROM c", (c) => [{ id: c.id, n: c.n }]],
  ["SELECT c.place.city AS town FROM c", (c) => [{ town: c.place.city }]],
  ["SELECT VALUE c.metric FROM c", (c) => [c.metric]],
  ["SELECT VALUE {'double': c.n * 2, \"list\": [c.id, c.on]} FROM c", (c) => [{ double: c.n * 2, list: [c.id, c.on] }]],
  ["SELECT UPPER(c.kind) AS loud FROM c", (c) => [{ loud: c.kind.toUpperCase() }]],
  ['SELECT VALUE {"N": root["n"], "City": root["place"]["city"]} FROM root', (c) => [{ N: c.n, City: c.place.city }]],
  ["SELECT c.id, t AS tag FROM c JOIN t IN c.tags", (c) => c.tags.map((tag) => ({ id: c.id, tag }))],
  ["SELECT VALUE p.grams FROM c JOIN p IN c.parts WHERE p.grams > 50", (c) => c.parts.map((p) => p.grams).filter((g) => g > 50)],
  ["SELECT VALUE t FROM t IN c.tags", (c) => c.tags],
  ["SELECT VALUE q FROM c JOIN (SELECT VALUE p FROM p IN c.parts WHERE p.grams > 20) AS q", (c) => c.parts.filter((p) => p.grams > 20)],
  ["SELECT c.n, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS tags FROM c", (c) => [{ n: c.n, tags: c.tags.length }]],
  ["SELECT VALUE ARRAY(SELECT VALUE p.grams FROM p IN c.parts) FROM c", (c) => [c.parts.map((p) => p.grams)]],
];

const ORDERS = [
  ["c.n", [[(c) => c.n, false]]],
  ["c.n DESC", [[(c) => c.n, true]]],
  ["c.metric DESC", [[(c) => c.metric, true]]],
  ["c.on", [[(c) => c.on, false]]],
  ["c.place.city DESC", [[(c) => c.place.city, true]]],
  ["c.kind, c.metric DESC", [[(c) => c.kind, false], [(c) => c.metric, true]]],
  ["c.floor DESC, c.n DESC", [[(c) => c.floor, true], [(c) => c.n, true]]],
];

const mean = (items, value) => sum(items, value) / items.length;
const least = (items, value) => items.map(value).reduce((a, b) => (b < a ? b : a));
const most = (items, value) => items.map(value).reduce((a, b) => (b > a ? b : a));

const AGGREGATES = [
  ["SELECT VALUE COUNT(1) FROM c", (all) => all.length],
  ["SELECT VALUE COUNT(c.mixed) FROM c", (all) => all.filter((c) => c.mixed !== undefined).length],
  ["SELECT VALUE SUM(c.n) FROM c", (all) => sum(all, (c) => c.n)],
  ["SELECT VALUE AVG(c.n) FROM c", (all) => mean(all, (c) => c.n)],
  ["SELECT VALUE MIN(c.metric) FROM c", (all) => least(all, (c) => c.metric)],
  ["SELECT VALUE MAX(c.id) FROM c", (all) => most(all, (c) => c.id)],
  ["SELECT COUNT(1) FROM c", (all) => ({ $1: all.length })],
  ["SELECT COUNT(1) AS many, SUM(c.n) AS sum, MAX(c.metric) AS most FROM c", (all) => ({ many: all.length, sum: sum(all, (c) => c.n), most: most(all, (c) => c.metric) })],
  ["SELECT VALUE COUNT(1) FROM c WHERE c.n = -1", () => 0],
];

const GROUPS = [
  ["SELECT c.kind, COUNT(1) AS many, SUM(c.n) AS sum FROM c GROUP BY c.kind", (c) => c.kind, (kind, all) => ({ kind, many: all.length, sum: sum(all, (c) => c.n) })],
  ["SELECT c.floor, c.on, MIN(c.n) AS least, AVG(c.n) AS mean FROM c GROUP BY c.floor, c.on", (c) => [c.floor, c.on], ([floor, on], all) => ({ floor, on, least: least(all, (c) => c.n), mean: mean(all, (c) => c.n) })],
  ["SELECT VALUE c.place.city FROM c GROUP BY c.place.city", (c) => c.place.city, (city) => city],
  ["SELECT VALUE COUNT(1) FROM c GROUP BY c.kind", (c) => c.kind, (_, all) => all.length],
];

overBoth("queries", (world) => {
  let container;
  before(async () => {
    container = await readings(world);
  });

  test(`the readings are in ${RANGES} partitions`, async () => {
    assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, RANGES);
  });

  const scopes = { "every partition": [{}, READINGS], "one key": [{ partitionKey: ONE_KEY }, OF_ONE_KEY] };
  for (const [scope, [scopeOptions, items]] of Object.entries(scopes)) {
    describe(scope, () => {
      const run = async (query, options) => (await container.items.query(query, { ...scopeOptions, ...options }).fetchAll()).resources;

      for (const [filter, parameters, matches] of FILTERS) {
        test(`S102 S104: WHERE ${filter}`, async () => {
          const got = await run({ query: `SELECT * FROM c WHERE ${filter}`, parameters: named(parameters) });
          assert.deepEqual(bag(got.map(plain)), bag(items.filter(matches)));
        });
      }

      for (const [text, rows] of ROWS) {
        test(`S102 S110: ${text}`, async () => {
          assert.deepEqual(bag(await run(text)), bag(items.flatMap(rows)));
        });
      }

      for (const [clause, keys] of ORDERS) {
        for (const maxItemCount of [2, undefined]) {
          test(`S108: ORDER BY ${clause}, pages of ${maxItemCount}`, async () => {
            const got = await run(`SELECT * FROM c ORDER BY ${clause}`, { maxItemCount });
            const sortKeys = (list) => list.map((item) => keys.map(([value]) => value(item)));
            assert.deepEqual(bag(got.map(plain)), bag(items));
            assert.deepEqual(sortKeys(got), sortKeys(inOrder(items, keys)));
          });
        }
      }

      for (const [text, value] of AGGREGATES) {
        test(text, async () => assert.deepEqual(await run(text), [value(items)]));
      }

      for (const [text, key, row] of GROUPS) {
        for (const maxItemCount of [1, undefined]) {
          test(`${text}, pages of ${maxItemCount}`, async () => {
            assert.deepEqual(bag(await run(text, { maxItemCount })), bag(groups(items, key, row)));
          });
        }
      }

      test("S109: TOP, OFFSET and LIMIT are global", async () => {
        const numbers = items.map((item) => item.n);
        const part = { query: "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET @o LIMIT @l", parameters: named({ o: 3, l: 5 }) };
        assert.deepEqual(await run("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.n DESC"), [...numbers].reverse().slice(0, 10));
        assert.deepEqual(await run(part, { maxItemCount: 2 }), numbers.slice(3, 8));
        const unordered = await run("SELECT VALUE c.n FROM c");
        assert.deepEqual(await run("SELECT TOP 4 VALUE c.n FROM c"), unordered.slice(0, 4));
        assert.deepEqual(await run("SELECT VALUE c.n FROM c OFFSET 2 LIMIT 5"), unordered.slice(2, 7));
      });

      test("DISTINCT", async () => {
        const once = (values) => [...new Set(values)];
        assert.deepEqual(bag(await run("SELECT DISTINCT VALUE c.kind FROM c")), bag(once(items.map((c) => c.kind))));
        const pairs = once(items.map((c) => `${c.kind} ${c.on}`));
        assert.equal((await run("SELECT DISTINCT c.kind, c.on FROM c", { maxItemCount: 2 })).length, pairs.length);
        const ordered = await run("SELECT DISTINCT VALUE c.place.city FROM c ORDER BY c.place.city DESC");
        assert.deepEqual(ordered, once(items.map((c) => c.place.city)).sort().reverse());
      });
    });
  }

  const SAME = ["SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c ORDER BY c.kind", "SELECT VALUE c.id FROM c WHERE c.metric > 10 ORDER BY c.floor DESC"];
  for (const query of SAME) {
    test(`S105 S106 S107: parallel execution equals serial execution: ${query}`, async () => {
      // Without ORDER BY this SDK returns pages in the order in which it fetched them: so one page per partition.
      const pages = { maxItemCount: query.includes("ORDER BY") ? 17 : 1000, forceQueryPlan: true };
      const serial = (await container.items.query(query, { ...pages, maxDegreeOfParallelism: 1 }).fetchAll()).resources;
      assert.equal(new Set(serial).size, serial.length);
      for (const maxDegreeOfParallelism of [undefined, 0, 10, -1]) {
        for (const bufferItems of [false, true]) {
          const options = { ...pages, maxDegreeOfParallelism, bufferItems };
          assert.deepEqual((await container.items.query(query, options).fetchAll()).resources, serial);
        }
      }
    });
  }

  test("ORDER BY values of every type within one key; across partitions this SDK compares only one type", async () => {
    for (const [direction, descends] of [["ASC", false], ["DESC", true]]) {
      const { resources } = await container.items.query(`SELECT * FROM c ORDER BY c.mixed ${direction}`, { partitionKey: ONE_KEY }).fetchAll();
      const keys = [[(c) => c.mixed, descends]];
      const types = (list) => list.map((c) => [typeof c.mixed, Array.isArray(c.mixed)]);
      assert.deepEqual(types(resources), types(inOrder(OF_ONE_KEY, keys)));
    }
    await assert.rejects(container.items.query("SELECT * FROM c ORDER BY c.mixed").fetchAll(), /mixed types|unrecognizable type/);
  });

  test("two keys of ORDER BY need a composite index", async () => {
    const error = await refused(container.items.query("SELECT * FROM c ORDER BY c.kind, c.n").fetchAll(), 400);
    assert.match(JSON.stringify(error.body ?? error.message), /composite/);
  });
});
