"use strict";
// S130: consistency levels hold for a container as a whole, regardless of the number of partitions.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { split } = require("./management");
const { count, overBoth, refused } = require("./support");

overBoth("consistency", (world) => {
  for (const throughput of [400, 50000]) {
    test(`S130: a level weaker than the account's is accepted, a stronger one is 400 (${throughput} RU/s)`, async () => {
      const { id } = await world.make("/pk", { throughput });
      const withLevel = (consistencyLevel) =>
        world.connect({ consistencyLevel }).database(world.database.id).container(id);
      for (const n of count(5)) await withLevel("Session").items.create({ id: `${n}`, pk: `k${n}` });
      for (const level of ["Session", "ConsistentPrefix", "Eventual"]) {
        const container = withLevel(level);
        assert.equal((await container.item("3", "k3").read()).resource.id, "3");
        assert.equal((await container.items.readAll().fetchAll()).resources.length, 5);
      }
      for (const level of ["BoundedStaleness", "Strong"]) await refused(withLevel(level).item("3", "k3").read(), 400);
    });

    test(`S130: a session token makes a write visible to another client, also after a split (${throughput} RU/s)`, async () => {
      const container = await world.make("/pk", { throughput });
      const other = world.connect().database(world.database.id).container(container.id);
      for (const n of count(9)) {
        if (n % 3 === 2) await split(container);
        const { headers } = await container.items.create({ id: "x", pk: `k${n}`, n });
        const sessionToken = headers["x-ms-session-token"];
        assert.equal((await other.item("x", `k${n}`).read({ sessionToken })).resource.n, n);
      }
    });
  }
});
