"use strict";
// Global secondary indexes: the SDK sends the definition unchanged.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { split } = require("./management");
const { overBoth, refused, unique } = require("./support");

/** An index is maintained asynchronously. */
async function eventually(read, expected) {
  const deadline = Date.now() + 20_000;
  let found = await read();
  while (JSON.stringify(found) !== JSON.stringify(expected) && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    found = await read();
  }
  assert.deepEqual(found, expected);
}

overBoth("global secondary indexes", (world) => {
  test("an index is filled and maintained, and rejects writes", async () => {
    const source = await world.make("/customer", { throughput: 30000 });
    for (let n = 0; n < 9; n++) {
      await source.items.create({ id: `${n}`, customer: `c${n % 4}`, city: ["Rome", "Oslo", "Lima"][n % 3], n });
    }
    const { container: index } = await world.database.containers.create({
      id: unique("i"),
      partitionKey: { paths: ["/city"], kind: "Hash", version: 2 },
      globalSecondaryIndexDefinition: { sourceCollectionId: source.id, definition: "SELECT c.id, c.city FROM c" },
    });
    const inCity = (city) => async () => {
      const { resources } = await index.items.query("SELECT VALUE c._id FROM c", { partitionKey: city }).fetchAll();
      return resources.sort();
    };
    await eventually(inCity("Rome"), ["0", "3", "6"]);
    await source.item("0", "c0").patch([{ op: "set", path: "/city", value: "Lima" }]);
    await source.item("3", "c3").delete();
    await eventually(inCity("Rome"), ["6"]);
    await eventually(inCity("Lima"), ["0", "2", "5", "8"]);
    await split(source);
    await source.item("6", "c2").delete();
    await split(index);
    await source.items.create({ id: "9", customer: "new", city: "Rome", n: 9 });
    await eventually(inCity("Rome"), ["9"]);
    await refused(index.items.create({ id: "x", city: "Rome" }), 403);
    const { resource } = await index.read();
    assert.equal(resource.globalSecondaryIndexDefinition.status, "Active");
    await index.delete();
  });
});
