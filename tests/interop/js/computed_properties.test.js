"use strict";
// Computed properties: queries return them, items do not contain them.

const assert = require("node:assert/strict");
const { before, test } = require("node:test");
const { merge, split } = require("./management");
const { count, overBoth, refused } = require("./support");

const computedProperties = [{ name: "low", query: "SELECT VALUE LOWER(c.name) FROM c" }];
const indexingPolicy = { includedPaths: [{ path: "/*" }, { path: "/low/?" }], excludedPaths: [] };

overBoth("computed properties", (world) => {
  let container;
  before(async () => {
    container = await world.make("/pk", { computedProperties, indexingPolicy, throughput: 30000 });
    for (const n of count(20)) await container.items.create({ id: `${n}`, pk: `${n % 5}`, name: `N${n % 4}` });
  });
  const run = async (text) => (await container.items.query(text).fetchAll()).resources;

  async function everyClause() {
    assert.equal((await run("SELECT VALUE c.id FROM c WHERE c.low = 'n3'")).length, 5);
    const ordered = await run("SELECT VALUE c.low FROM c ORDER BY c.low");
    assert.deepEqual(ordered, ["n0", "n1", "n2", "n3"].flatMap((low) => Array(5).fill(low)));
    const groups = await run("SELECT c.low, COUNT(1) AS n FROM c GROUP BY c.low");
    assert.deepEqual(groups.map(({ low, n }) => [low, n]).sort(), [0, 1, 2, 3].map((n) => [`n${n}`, 5]));
  }

  test("in SELECT, WHERE, ORDER BY and GROUP BY", everyClause);

  test("after a split and a merge", async () => {
    await split(container);
    await everyClause();
    await merge(container);
    await everyClause();
  });

  test("not in SELECT * and not in a point read", async () => {
    for (const item of await run("SELECT * FROM c")) assert.ok(!("low" in item));
    assert.ok(!("low" in (await container.item("3", "3").read()).resource));
  });

  test("stored as defined; an invalid definition is 400", async () => {
    assert.deepEqual((await container.read()).resource.computedProperties, computedProperties);
    await refused(world.make("/pk", { computedProperties: [{ name: "a", query: "SELECT c.a FROM c" }] }), 400);
  });
});
