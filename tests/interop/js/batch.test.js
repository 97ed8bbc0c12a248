"use strict";
// Transactional batches, bulk requests and patches.

const assert = require("node:assert/strict");
const { BulkOperationType } = require("@azure/cosmos");
const { before, test } = require("node:test");
const { overBoth, refused } = require("./support");

const codes = (response) => response.result.map((result) => result.statusCode);

for (const throughput of [400, 30000]) {
  overBoth(`batch, bulk and patch at ${throughput} RU/s`, (world) => {
    let container;
    before(async () => {
      container = await world.make("/pk", { throughput });
    });

    test("a batch of every verb", async () => {
      await container.items.create({ id: "r", pk: "a" });
      await container.items.create({ id: "d", pk: "a" });
      const response = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "c", pk: "a", n: 1 } },
          { operationType: "Upsert", resourceBody: { id: "u", pk: "a" } },
          { operationType: "Replace", id: "r", resourceBody: { id: "r", pk: "a", n: 2 } },
          { operationType: "Patch", id: "c", resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
          { operationType: "Read", id: "c" },
          { operationType: "Delete", id: "d" },
        ],
        "a",
      );
      assert.equal(response.code, 200);
      assert.deepEqual(codes(response), [201, 201, 200, 200, 200, 204]);
      assert.equal(response.result[4].resourceBody.n, 2);
      assert.equal((await container.item("c", "a").read()).resource.n, 2);
    });

    test("a failed batch changes nothing", async () => {
      await container.items.create({ id: "existing", pk: "b" });
      const response = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "new", pk: "b" } },
          { operationType: "Create", resourceBody: { id: "existing", pk: "b" } },
        ],
        "b",
      );
      assert.deepEqual(codes(response), [424, 409]);
      assert.equal((await container.item("new", "b").read()).statusCode, 404);
    });

    test("bulk over many keys, each operation with its own status", async () => {
      await container.items.create({ id: "7", pk: "key 7" });
      const creates = Array.from({ length: 250 }, (_, n) => ({
        operationType: BulkOperationType.Create,
        partitionKey: `key ${n}`,
        resourceBody: { id: `${n}`, pk: `key ${n}` },
      }));
      const results = await container.items.executeBulkOperations(creates);
      assert.equal(results.length, 250);
      results.forEach((result, n) => {
        if (n === 7) assert.equal(result.error.code, 409);
        else assert.equal(result.response.statusCode, 201);
      });
      const reads = [8, 9].map((n) => ({ operationType: BulkOperationType.Read, id: `${n}`, partitionKey: `key ${n}` }));
      const read = await container.items.executeBulkOperations(reads);
      assert.deepEqual(read.map((result) => result.response.resourceBody.id), ["8", "9"]);
    });

    test("patch, with and without a condition", async () => {
      await container.items.create({ id: "p", pk: "p", n: 1 });
      const item = container.item("p", "p");
      const { resource } = await item.patch([{ op: "incr", path: "/n", value: 2 }, { op: "add", path: "/tags", value: ["x"] }]);
      assert.deepEqual([resource.n, resource.tags], [3, ["x"]]);
      const sold = { condition: "from c where c.n > 3", operations: [{ op: "set", path: "/n", value: 0 }] };
      await refused(item.patch(sold), 412);
      await refused(item.patch([{ op: "replace", path: "/missing", value: 1 }]), 400);
      assert.equal((await item.read()).resource.n, 3);
    });
  });
}
