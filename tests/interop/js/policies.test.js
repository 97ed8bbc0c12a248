"use strict";
// Policies that are validated, stored and returned unchanged.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { split } = require("./management");
const { overBoth, refused } = require("./support");

overBoth("policies", (world) => {
  test("a conflict resolution policy is stored", async () => {
    const conflictResolutionPolicy = { mode: "LastWriterWins", conflictResolutionPath: "/version" };
    const container = await world.make("/pk", { throughput: 12000, conflictResolutionPolicy });
    await container.items.create({ id: "x", pk: "a", version: 1 });
    await split(container);
    const stored = (await container.read()).resource.conflictResolutionPolicy;
    assert.equal(stored.mode, "LastWriterWins");
    assert.equal(stored.conflictResolutionPath, "/version");
    assert.deepEqual((await container.conflicts.readAll().fetchAll()).resources, []);
    await refused(world.make("/pk", { conflictResolutionPolicy: { mode: "Quarrel" } }), 400);
  });
});
