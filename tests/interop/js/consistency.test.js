"use strict";
// S130: consistency levels hold for a container as a whole, however many partitions it has.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { count, overBoth, refused } = require("./support");

overBoth("consistency", (world) => {
  for (const throughput of [400, 50000]) {
    test(`S130: less than the account promises may be asked for, more may not (${throughput} RU/s)`, async () => {
      const { id } = await world.make("/pk", { throughput });
      const through = (consistencyLevel) =>
        world.connect({ consistencyLevel }).database(world.database.id).container(id);
      for (const n of count(5)) await through("Session").items.create({ id: `${n}`, pk: `k${n}` });
      for (const level of ["Session", "ConsistentPrefix", "Eventual"]) {
        const container = through(level);
        assert.equal((await container.item("3", "k3").read()).resource.id, "3");
        assert.equal((await container.items.readAll().fetchAll()).resources.length, 5);
      }
      for (const level of ["BoundedStaleness", "Strong"]) await refused(through(level).item("3", "k3").read(), 400);
    });
  }
});
