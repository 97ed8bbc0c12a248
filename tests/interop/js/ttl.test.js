"use strict";
// Time to live, also while the partition splits.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { split } = require("./management");
const { count, missing, overBoth, refused } = require("./support");

overBoth("time to live", (world) => {
  const ids = async (container) => (await container.items.query("SELECT VALUE c.id FROM c").fetchAll()).resources;

  test("items expire", async () => {
    const container = await world.make("/pk", { throughput: 12000, defaultTtl: 3 });
    for (const n of count(10)) {
      await container.items.create({ id: "expires", pk: `key ${n}` });
      await container.items.create({ id: "stays", pk: `key ${n}`, ttl: -1 });
    }
    await split(container);
    const deadline = Date.now() + 20_000;
    while ((await ids(container)).length > 10 && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.deepEqual(await ids(container), Array(10).fill("stays"));
    await missing(container.item("expires", "key 3"));
    await container.items.create({ id: "expires", pk: "key 3", ttl: -1 });
    assert.equal((await container.read()).resource.defaultTtl, 3);
  });

  test("an invalid time to live is 400", async () => {
    const container = await world.make("/pk", { defaultTtl: 5 });
    for (const ttl of [0, -10, null]) await refused(container.items.create({ id: "x", pk: "a", ttl }), 400);
  });
});
