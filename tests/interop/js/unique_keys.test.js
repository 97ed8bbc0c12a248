"use strict";
// Unique keys: values that may occur once in a logical partition (S12).

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { overBoth, refused } = require("./support");

const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/mail"] }, { paths: ["/name/first", "/name/last"] }] };

overBoth("unique keys", (world) => {
  const person = (n, more = {}) => ({ id: `${n}`, pk: "a", mail: `${n}@x`, name: { first: `f${n}` }, ...more });

  test("a duplicate value is 409 for create, upsert and replace; it is free after a delete", async () => {
    const container = await world.make("/pk", { uniqueKeyPolicy });
    await container.items.create(person(1));
    await container.items.create(person(2));
    await refused(container.items.create(person(3, { mail: "1@x" })), 409);
    await refused(container.items.upsert(person(3, { name: { first: "f1" } })), 409);
    await refused(container.item("2", "a").replace(person(2, { mail: "1@x" })), 409);
    await container.items.create(person(1, { pk: "b" }));
    await container.item("1", "a").delete();
    await container.items.create(person(3, { mail: "1@x" }));
  });

  test("the policy is stored and cannot change", async () => {
    const container = await world.make("/pk", { uniqueKeyPolicy });
    const { resource } = await container.read();
    assert.deepEqual(resource.uniqueKeyPolicy, uniqueKeyPolicy);
    await refused(container.replace({ ...resource, uniqueKeyPolicy: { uniqueKeys: [] } }), 403);
  });
});
